//! An answer that is cut at a remote is taken back there, and here in whatever protocol it speaks.

use mainstem::{
    model::{Retry, RetryPolicy, scripted::Turn},
    prelude::*,
    spec::Protocol as Speaks,
};
use mainstem_server::{Protocol, Server, Tokens};
use mainstem_testing::render;
use serde_json::json;
use tokio::net::TcpListener;

use crate::{
    anywhere::TOKEN,
    chain::{builder, child_end, events, remote},
    fallback::a2a,
    support::Spawns,
};

/// An agent whose first answer is cut once in its text, and once in its second.
fn far() -> Harness {
    let far = [
        Turn::new().text("I look at it. ").call("echo", json!({ "say": "a" })).cut_first(1),
        Turn::new().text("It is ").text("gold.").cut_first(1),
    ];
    repeating(ScriptedModel::new().agent("far", far))
}

/// Returns an agent whose model calls are repeated after a cut.
fn repeating(model: ScriptedModel) -> Harness {
    let mut policy = RetryPolicy::default();
    (policy.min_wait, policy.jitter) = (std::time::Duration::from_millis(20), false);
    let model = Retry::with_policy(model, policy);
    let echo = |_, given: serde_json::Map<String, serde_json::Value>| async move {
        Ok::<_, ToolError>(serde_json::Value::Object(given).to_string())
    };
    Harness::builder("far", model).with_tool(tool_fn("echo", "Echoes", echo)).build().unwrap()
}

/// Returns the address of a server with all protocols.
async fn serve(harness: Harness) -> String {
    let tokens = Tokens::new().with_token(TOKEN, None).unwrap();
    let protocols = [Protocol::A2a, Protocol::AgentProtocol];
    let server = Server::new(harness).with_tokens(tokens);
    let server = protocols.into_iter().fold(server, |server, protocol| server.with_protocol(protocol));
    let (server, listener) = (server.build().unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let url = format!("http://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move { server.serve(listener, Default::default()).await.unwrap() });
    url
}

async fn check(speaks: Speaks) {
    check_at(&serve(far()).await, speaks, 2).await;
}

async fn check_at(url: &str, speaks: Speaks, expected: usize) {
    let main = [Turn::new().spawn("far", "look"), Turn::new().text("All done.")];
    let declared = remote("far", url).with_protocol(speaks);
    let main = builder("main", ScriptedModel::new().agent("main", main)).with_subagent(declared);
    let events = events(&main.build().unwrap()).await;
    let text = render(&events);
    assert_eq!(child_end(&events, "far"), (Outcome::Success, ""), "{speaks:?}\n{text}");
    let taken_back = events.iter().filter(|event| event.depth() == 1 && event.kind.taken_back().is_some());
    assert_eq!(taken_back.count(), expected, "{speaks:?}\n{text}");
    let result = events.iter().find_map(|event| match &event.kind {
        EventKind::AgentResult { result } if event.depth() == 1 => Some(result.text()),
        _ => None,
    });
    assert_eq!(result.as_deref(), Some("It is gold."), "{speaks:?}\n{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_remote_takes_back_is_taken_back_here() {
    check(Speaks::Mainstem).await;
    check(Speaks::AgentScope).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_artifact_that_is_replaced_is_taken_back() {
    check(Speaks::A2a).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn artifacts_of_a_failed_attempt_are_discarded_also_without_our_extension() {
    let answer = Turn::new().text("It is ").thinking("Hm.").text("gold.").cut_first(1);
    let (url, serving) = a2a::serve(repeating(ScriptedModel::new().agent("far", [answer])), true).await;
    check_at(&url, Speaks::A2a, 1).await;
    serving.abort();
}
