//! Bounds of the page `docs/limits.md` that no other test goes beyond. Time is paused, and passes
//! where everything waits.

use mainstem::{model::scripted::Turn, prelude::ScriptedModel};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep},
};

use crate::rig::{Rig, TOKEN, fleet, ms};

fn slow() -> ScriptedModel {
    ScriptedModel::new().agent("main", [Turn::new().wait(ms(600_000)).text("Late.")])
}

/// A connection on which this was said.
async fn said(rig: &Rig, text: &str) -> TcpStream {
    let mut stream = rig.connect().await;
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

async fn heard(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // Ended, or reset.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test(start_paused = true)]
async fn a_body_has_to_come_in_time() {
    let rig = Rig::of(slow()).await;
    for (path, content_type, seconds) in
        [("runs", "application/json", 30), ("data", "application/octet-stream", 120)]
    {
        let begun = Instant::now();
        let head = format!(
            "POST /v1/sessions/s/{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: {content_type}\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{{\"input\": "
        );
        let answer = heard(said(&rig, &head).await).await;
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("body_too_slow"), "{answer}");
        assert!((seconds..seconds + 10).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn headers_have_a_bound() {
    let rig = Rig::of(slow()).await;
    let head = |bytes: usize| {
        let long = "x".repeat(bytes);
        format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Long: {long}\r\n\r\n")
    };
    let answer = heard(said(&rig, &head(60 << 10)).await).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let answer = heard(said(&rig, &head(200 << 10)).await).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_disconnected() {
    const ASKED: usize = 1_000;
    let rig = Rig::of(slow()).await;
    // More than the system keeps on the way.
    let ask =
        format!("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    let stream = said(&rig, &ask.repeat(ASKED)).await;
    sleep(ms(60_000)).await;
    let answered = heard(stream).await.matches("HTTP/1.1 200").count();
    assert!((1..ASKED).contains(&answered), "{answered}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_after_its_bound() {
    let rig = Rig::of(slow()).await;
    let begun = Instant::now();
    let request = rig.ask(Method::POST, "/v1/sessions/s/runs").header("prefer", "wait=3600");
    let answer = request.json(&json!({ "input": "go" })).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), begun.elapsed().as_secs()), (202, 60));
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_have_a_bound_in_all() {
    let harness = fleet(slow());
    let rig = Rig::start(harness, |builder| builder.with_max_readers(usize::MAX)).await;
    rig.post("/v1/sessions/s/runs", json!({ "input": "go" })).await;
    let mut readers = Vec::new();
    let refused = loop {
        let reader = rig.get("/v1/sessions/s/events").await;
        if reader.status() != 200 {
            break reader;
        }
        readers.push(reader);
        assert!(readers.len() <= 512);
    };
    assert_eq!((readers.len(), refused.status().as_u16()), (512, 429));
    assert_eq!(refused.json::<Value>().await.unwrap()["code"], "too_many_readers");
}
