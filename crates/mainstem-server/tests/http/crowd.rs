//! Clients that are slow, greedy or many, and what is left for the others; paths under a prefix.

use std::time::Instant;

use futures_util::StreamExt;
use mainstem::{event::EventKind, model::scripted::Turn, prelude::ScriptedModel};
use mainstem_server::Server;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::timeout,
};

use crate::rig::{Rig, TOKEN, fleet, ms};

fn says() -> ScriptedModel {
    ScriptedModel::new().agent("main", [Turn::new().text("Hi."), Turn::new().text("Ho.")])
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_never_read_or_say_nothing_leave_room_for_others() {
    let rig = Rig::of(says()).await;
    let ask = rig.head("GET /openapi.json", "").repeat(60);
    let mut held = Vec::new();
    for number in 0..1_100 {
        let mut stream = rig.connect().await;
        if number % 2 == 0 {
            // May be cut off already.
            let _ = stream.write_all(ask.as_bytes()).await;
        }
        held.push(stream);
    }
    for _ in 0..5 {
        let begun = Instant::now();
        assert_eq!(rig.stranger(Method::GET, "/healthz").send().await.unwrap().status(), 200);
        assert!(begun.elapsed() < ms(2_000), "{:?}", begun.elapsed());
    }
    assert_eq!(rig.run("s", "go").await["status"], "success");
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_is_answered_so_often() {
    let rig = Rig::of(says()).await;
    let answers = async |more: &str| {
        let mut stream = rig.connect().await;
        stream.write_all(rig.head("GET /healthz", more).repeat(60).as_bytes()).await.unwrap();
        let (mut text, end) = (Vec::new(), tokio::time::sleep(ms(2_000)));
        // It may be cut off with requests that were not read.
        tokio::select! {
            _ = stream.read_to_end(&mut text) => {}
            () = end => {}
        }
        String::from_utf8_lossy(&text).matches("HTTP/1.1 200").count()
    };
    assert_eq!(answers("").await, 8);
    let mut caller = rig.connect().await;
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    for _ in 0..20 {
        caller.write_all(rig.head("GET /v1/sessions", &token).as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let count = caller.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..count]).to_lowercase();
        assert!(answer.starts_with("http/1.1 200") && !answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_tenant_cannot_take_the_bodies_and_connections_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = mainstem_server::Tokens::new();
    let tokens = tokens
        .with_token(TOKEN, Some("acme"))
        .unwrap()
        .with_token("the-token-of-globex", Some("globex"))
        .unwrap();
    let harness = fleet(says()).with_workspace(dir.path());
    let rig = Rig::start(harness, |builder| builder.with_tokens(tokens.clone())).await;
    let more = format!(
        "Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
    );
    let half = rig.head("POST /v1/sessions/s/runs", &more);
    let mut held = Vec::new();
    for _ in 0..80 {
        let mut stream = rig.connect().await;
        stream.write_all(half.as_bytes()).await.unwrap();
        stream.write_all(b"{").await.unwrap();
        held.push(stream);
    }
    let run = json!({ "input": "go" });
    let own = async |token: &str| {
        let request = rig.stranger(Method::POST, "/v1/sessions/s/runs").bearer_auth(token);
        request.json(&run).send().await.unwrap().status().as_u16()
    };
    // The server takes the requests up one by one.
    let mut status = 0;
    for _ in 0..100 {
        status = own(TOKEN).await;
        if status == 429 {
            break;
        }
        tokio::time::sleep(ms(20)).await;
    }
    assert_eq!(status, 429, "its own share of bodies is in use");
    assert_eq!(own("the-token-of-globex").await, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_carry_the_prefix_that_the_routes_are_nested_under() {
    let harness =
        fleet(ScriptedModel::new().agent("main", [Turn::new().text("x".repeat(300 << 10))])).build().unwrap();
    let server = Server::new(harness).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = axum::Router::new().nest("/agents", server.router());
    #[expect(clippy::disallowed_methods, reason = "ended with the test")]
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    let begun = client.post(format!("{url}/agents/v1/sessions/s/runs")).header("prefer", "wait=10");
    let begun = begun.json(&json!({ "input": "go" })).send().await.unwrap();
    let location = begun.headers()["location"].to_str().unwrap().to_owned();
    assert!(location.starts_with("/agents/v1/runs/run-"), "{location}");
    assert_eq!(client.get(format!("{url}{location}")).send().await.unwrap().status(), 200);
    let events = client.get(format!("{url}/agents/v1/sessions/s/events?follow=false")).send().await.unwrap();
    let text = events.text().await.unwrap();
    let href = text.split("\"href\":\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(href.starts_with("/agents/v1/sessions/s/events/"), "{href}");
    assert_eq!(client.get(format!("{url}{href}")).send().await.unwrap().status(), 200);
    let document: Value =
        client.get(format!("{url}/agents/openapi.json")).send().await.unwrap().json().await.unwrap();
    assert_eq!(document["servers"][0]["url"], "/agents");
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_encoded_once_for_all_readers_of_a_form() {
    let slow = Turn::new().pace(ms(2)).repeat("word ", 50);
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Hi."), slow]);
    let rig = Rig::of(model).await;
    let run = |rig: &Rig| rig.ask(Method::POST, "/v1/sessions/s/runs").json(&json!({ "input": "go" }));
    let first = run(&rig).header("prefer", "wait=10").send().await.unwrap();
    assert_eq!(first.status().as_u16(), 200);
    let last = rig.get_json("/v1/sessions/s").await["last_seq"].as_u64().unwrap();
    let path = format!("/v1/sessions/s/events?after={last}");
    let mut readers = Vec::new();
    for _ in 0..20 {
        readers.push(rig.get(&path).await);
    }
    assert_eq!(run(&rig).send().await.unwrap().status().as_u16(), 202);
    let mut texts = Vec::new();
    for mut reader in readers {
        let mut text = String::new();
        while !text.contains("event: AGENT_END") {
            text.push_str(&String::from_utf8_lossy(&reader.chunk().await.unwrap().unwrap()));
        }
        texts.push(text.replace(": still here\n\n", ""));
    }
    assert!(texts.iter().all(|text| *text == texts[0]), "all readers get the same bytes");
    let events = texts[0].matches("\nid: ").count() as u64;
    let (sent, encoded) = (rig.figure("events_sent_total").await, rig.figure("events_encoded_total").await);
    assert!(events > 50 && sent >= 20 * events, "{sent} of {events}");
    // Two readers may find an event at the same moment.
    assert!(encoded < 4 * events, "{encoded} of {events}");
}

/// As a reader does that had the end from another node.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_with_the_end_of_a_run_gets_no_stream_without_an_end() {
    let harness = fleet(says()).build().unwrap();
    let server = Server::new(harness.clone()).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = server.router();
    #[expect(clippy::disallowed_methods, reason = "ended with the test")]
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let session = harness.open_session("s").await.unwrap();
    let mut run = session.run("go").unwrap();
    // The log has the end when the run is next polled, and the run then returns what is before it.
    while let Some(event) = run.next().await
        && !matches!(event.kind, EventKind::AgentResult { .. })
    {}
    let last = session.log().last_seq();
    let end = session.log().committed_from(last).at_hand().await.unwrap();
    assert!(end.is_run_end() && run.outcome().is_none(), "{end}");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let path = format!("{url}/v1/sessions/s/events?run={}", run.id());
    let request = reqwest::Client::new().get(path).header("last-event-id", last).send();
    let (response, ended) = tokio::join!(timeout(ms(10_000), request), async {
        tokio::time::sleep(ms(100)).await;
        run.next().await
    });
    assert!(ended.is_some_and(|event| event.is_run_end()));
    assert_eq!(response.unwrap().unwrap().status().as_u16(), 204);
    serving.abort();
}
