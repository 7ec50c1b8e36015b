//! A vendor that holds its answer back, and says meanwhile that it works.

use std::time::Duration;

use futures_util::StreamExt;
use mainstem::{
    anthropic::Anthropic,
    model::{ErrorKind, IdleTimeout, Model, ModelDelta, ModelRequest},
    openai::OpenAi,
};
use mainstem_testing::raw::{Server, Step, chunk, head};

fn event(payload: &str) -> Step {
    chunk(format!("data: {payload}\n\n").as_bytes())
}

fn pause() -> Step {
    Step::Pause(Duration::from_millis(200))
}

/// Waits longer than the pulse of a response without a word, in the time of the test.
async fn wait() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
}

/// A model whose server begins an answer with these payloads, and then repeats what says that it
/// works.
async fn check<M: Model>(payloads: &[&str], alive: &str, model: impl FnOnce(&str) -> M) {
    let mut steps = vec![head("200 OK", "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n")];
    steps.extend(payloads.iter().map(|payload| event(payload)));
    steps.push(chunk(alive.as_bytes()));
    for _ in 0..3 {
        steps.extend([pause(), chunk(alive.as_bytes())]);
    }
    steps.push(Step::AwaitClose);
    let server = Server::start(vec![steps]).await;
    let model = model(&server.url());
    let mut stream = IdleTimeout::new(model, Duration::from_secs(15)).stream(ModelRequest::default());
    while stream.next().await.unwrap().unwrap() != ModelDelta::Text("Hi".into()) {}
    // Until the first of them is read.
    let quiet = tokio::time::timeout(Duration::from_millis(100), stream.next()).await;
    quiet.expect_err("it says nothing");
    for _ in 0..3 {
        wait().await;
        assert_eq!(stream.next().await.unwrap().unwrap(), ModelDelta::InProgress);
    }
    // Without them it is silent.
    let quiet = tokio::time::timeout(Duration::from_millis(100), stream.next()).await;
    quiet.expect_err("nothing comes");
    tokio::time::pause();
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
}

#[tokio::test]
async fn a_call_whose_vendor_pings_is_not_silent() {
    let payloads = [
        r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#,
    ];
    let model = |url: &str| Anthropic::new("claude-haiku-4-5").with_api_key("k").with_base_url(url).unwrap();
    check(&payloads, "data: {\"type\":\"ping\"}\n\n", model).await;
}

/// OpenRouter's [comments].
///
/// [comments]: https://openrouter.ai/docs/api/reference/streaming#additional-information
#[tokio::test]
async fn a_call_whose_vendor_sends_comments_is_not_silent() {
    let payloads = [r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}"#];
    let model = |url: &str| OpenAi::new("gpt-4o").with_api_key("k").with_base_url(url).unwrap();
    check(&payloads, ": OPENROUTER PROCESSING\n\n", model).await;
}
