//! A vendor that holds its answer back, and says meanwhile that it works.

use std::time::Duration;

use futures_util::StreamExt;
use mainstem::{
    anthropic::Anthropic,
    model::{ErrorKind, IdleTimeout, Model, ModelDelta, ModelRequest},
};
use mainstem_testing::raw::{Server, Step, chunk, head};

fn event(payload: &str) -> Step {
    chunk(format!("data: {payload}\n\n").as_bytes())
}

/// Waits longer than the pulse of a response without a word, in the time of the test.
async fn wait() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_call_whose_vendor_pings_is_not_silent() {
    let pause = || Step::Pause(Duration::from_millis(200));
    let mut steps = vec![head("200 OK", "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n")];
    for payload in [
        r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#,
        r#"{"type":"ping"}"#,
    ] {
        steps.push(event(payload));
    }
    for _ in 0..3 {
        steps.extend([pause(), event(r#"{"type":"ping"}"#)]);
    }
    steps.push(Step::AwaitClose);
    let server = Server::start(vec![steps]).await;
    let model = Anthropic::new("claude-haiku-4-5").with_api_key("k").with_base_url(&server.url()).unwrap();
    let mut stream = IdleTimeout::new(model, Duration::from_secs(15)).stream(ModelRequest::default());
    while stream.next().await.unwrap().unwrap() != ModelDelta::Text("Hi".into()) {}
    // Until the first ping is read.
    let quiet = tokio::time::timeout(Duration::from_millis(100), stream.next()).await;
    quiet.expect_err("a ping says nothing");
    for _ in 0..3 {
        wait().await;
        assert_eq!(stream.next().await.unwrap().unwrap(), ModelDelta::InProgress);
    }
    // Without pings it is silent.
    let quiet = tokio::time::timeout(Duration::from_millis(100), stream.next()).await;
    quiet.expect_err("nothing comes");
    tokio::time::pause();
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
}
