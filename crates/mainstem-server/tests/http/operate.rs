//! What operators and browsers need: a description, a cookie, and patience that has an end.

use std::collections::BTreeSet;

use mainstem::{
    model::scripted::Turn,
    prelude::{ScriptedModel, ToolError, tool_fn},
};
use reqwest::Method;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    rig::{Rig, TOKEN, events, fleet, ms},
    servers::journal,
};

fn hello() -> ScriptedModel {
    ScriptedModel::new().agent("main", [Turn::new().text("Hello."), Turn::new().text("Again.")])
}

#[tokio::test]
async fn every_path_that_is_described_is_there_and_the_other_way_round() {
    let rig = Rig::of(hello()).await;
    let document: Value =
        rig.stranger(Method::GET, "/openapi.json").send().await.unwrap().json().await.unwrap();
    assert_eq!(document, mainstem::api::openapi(""));
    let mut ids = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{path} {method}");
            let filled = path.replace('{', "x").replace('}', "");
            let method = method.to_uppercase().parse().unwrap();
            let response = rig.stranger(method, &filled).send().await.unwrap();
            let is_open = operation["security"] == json!([]);
            assert_eq!(response.status() != 401, is_open, "{path}: {}", response.status());
            assert_ne!(response.status(), 405, "{path}");
        }
    }
    // Whatever is referred to is there.
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
    assert_eq!(
        rig.get_json("/v1/models").await["items"],
        json!([{ "id": "scripted", "agents": ["main", "general-purpose", "kid"], "selectable": false }])
    );
}

#[tokio::test]
async fn a_browser_keeps_its_token_in_a_cookie() {
    let rig = Rig::of(hello()).await;
    rig.run("s", "Hi").await;
    let login = |token: &str| rig.stranger(Method::POST, "/v1/login").json(&json!({ "token": token })).send();
    let wrong = login("wrong-wrong-wrong-wrong").await.unwrap();
    assert!(wrong.status() == 401 && !wrong.headers().contains_key("set-cookie"));
    let right = login(TOKEN).await.unwrap();
    let cookie = right.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(right.status() == 204 && cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    let asked = rig.stranger(Method::GET, "/v1/sessions/s/events?follow=false").header("cookie", pair);
    assert_eq!(asked.send().await.unwrap().status(), 200);
    let out = rig.stranger(Method::POST, "/v1/logout").send().await.unwrap();
    assert!(out.headers()["set-cookie"].to_str().unwrap().ends_with("; Max-Age=0"));
}

#[tokio::test]
async fn a_large_event_is_cut_in_a_stream_and_whole_by_itself() {
    let large = tool_fn("large", "Says much", |_, _: Map<String, Value>| async {
        Ok::<_, ToolError>("word ".repeat(12_000))
    });
    // One that has as much as may be in a piece of its own.
    let model = ScriptedModel::new().agent(
        "main",
        [Turn::new().call("large", json!({ "note": "n".repeat(400_000) })), Turn::new().text("Much.")],
    );
    let rig = Rig::start(fleet(model).with_tool(large), |builder| builder).await;
    rig.run("s", "go").await;
    let frames = rig.frames("/v1/sessions/s/events?follow=false", None).await;
    let longest = frames.iter().map(String::len).max().unwrap();
    assert!(longest < 300 << 10, "{longest}");
    let frames = events(&frames);
    let cut = frames.iter().find(|frame| frame.contains("\"truncated\"")).unwrap();
    let cut: Value = serde_json::from_str(cut.split_once("data: ").unwrap().1).unwrap();
    let whole = rig.get_json(cut["truncated"]["href"].as_str().unwrap()).await;
    assert_eq!(whole["seq"], cut["seq"]);
    assert_eq!(whole.to_string().len() as u64, cut["truncated"]["bytes"].as_u64().unwrap());
    for path in ["/v1/sessions/s/events/0", "/v1/sessions/s/events/99999", "/v1/sessions/s/events/x"] {
        assert_eq!(rig.get(path).await.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn a_client_that_is_slow_to_send_headers_is_disconnected() {
    let rig = Rig::of(hello()).await;
    let mut slow = rig.connect().await;
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").await.unwrap();
    let begun = std::time::Instant::now();
    let mut answer = Vec::new();
    // A byte now and then is not enough.
    let (mut reader, mut writer) = slow.split();
    let dripping = async {
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            if writer.write_all(b"x").await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        _ = reader.read_to_end(&mut answer) => {}
        () = dripping => {}
    }
    let took = begun.elapsed().as_secs_f64();
    assert!((9.0..15.0).contains(&took), "{took}");
    // Others were served meanwhile.
    assert_eq!(rig.get("/healthz").await.status(), 200);
}

#[tokio::test]
async fn a_client_that_sends_nothing_is_cut_off_too() {
    let rig = Rig::of(hello()).await;
    let begun = std::time::Instant::now();
    let silent = ["", "PRI * HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"].map(async |said| {
        let mut stream = rig.connect().await;
        stream.write_all(said.as_bytes()).await.unwrap();
        // Ended, or reset.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let all = futures_util::future::join_all(silent);
    tokio::time::timeout(std::time::Duration::from_secs(15), all).await.unwrap();
    assert!(begun.elapsed().as_secs() >= 9, "they have some time");
}

#[tokio::test]
async fn a_refused_request_begins_nothing() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Hello."), Turn::new().text("Again.")]);
    let rig = Rig::of(model).await;
    rig.run("s", "Hi").await;
    let schema = json!({ "input": "go", "options": { "output_schema": { "type": 7 } } });
    for (body, status) in [(json!({ "resume": true }), 404), (schema, 422)] {
        assert_eq!(rig.post("/v1/sessions/ghost/runs", body).await.status(), status);
    }
    assert_eq!(rig.get("/v1/sessions/ghost").await.status(), 404);
    // A message that could not be said is not taken for said.
    let path = "/v1/sessions/s/agents/agent:kid:9/messages";
    for _ in 0..2 {
        let tell =
            rig.ask(Method::POST, path).header("idempotency-key", "m").json(&json!({ "content": "?" }));
        assert_eq!(tell.send().await.unwrap().status(), 404);
    }
    let strange = rig.get("/v1/sessions/%ff").await;
    assert_eq!(strange.headers()["content-type"], "application/problem+json");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_are_not_kept_are_deleted() {
    let journal = journal().await;
    let harness = fleet(hello()).with_journal(journal.clone());
    let rig = Rig::start(harness, |builder| builder).await;
    rig.run("old", "go").await;
    rig.stop_now().await;
    let keep = mainstem::session::Keep::all().with_max_idle(ms(1));
    let harness = fleet(hello()).with_journal(journal.clone());
    let rig = Rig::start(harness, |builder| builder.with_retention(keep)).await;
    for _ in 0..200 {
        if rig.get_json("/v1/sessions").await["items"] == json!([]) {
            assert_eq!(rig.get("/v1/sessions/old").await.status(), 404);
            return;
        }
        tokio::time::sleep(ms(20)).await;
    }
    panic!("the session is still there");
}
