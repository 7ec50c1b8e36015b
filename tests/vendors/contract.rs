//! Each vendor's API, one script: what an agent says and does is the same with every vendor's model
//! for it.

use std::sync::Arc;

use mainstem::{
    message::Usage,
    model::{Model, scripted::Turn},
    prelude::*,
    provider::{PROVIDERS, Provider, Setup},
};
use mainstem_testing::{CountedIds, FakeClock, ModelServer, laws, render};
use serde_json::{Map, Value, json};

/// Returns a call of `agent_spawn`.
fn spawn(turn: Turn, task: &str) -> Turn {
    turn.call("agent_spawn", json!({ "agent_id": "kid", "task": task }))
}

/// Returns a model of this vendor at a server that speaks its API.
pub(crate) fn model(vendor: &Provider, server: &ModelServer, name: &str) -> Arc<dyn Model> {
    let url = if vendor.base_url == "OPENAI_BASE_URL" { server.base_url() } else { server.root_url() };
    at(vendor, url, name)
}

/// Returns a model of this vendor at this base URL.
pub(crate) fn at(vendor: &Provider, url: String, name: &str) -> Arc<dyn Model> {
    let var = move |name: &str| match name {
        name if name == vendor.base_url => Some(url.clone()),
        name if name == vendor.key => Some("a-key-that-is-secret".to_owned()),
        _ => None,
    };
    vendor.model(name, &Setup::new(&var)).unwrap()
}

/// What the root is: every agent of a run asks with the model's name, which is what the script goes
/// by.
pub(crate) const ROOT: &str = "main";

pub(crate) fn builder(model: Arc<dyn Model>) -> HarnessBuilder {
    let noop = |_, _: Map<String, Value>| async { Ok::<_, ToolError>("42") };
    Harness::builder(ROOT, model)
        .with_clock(FakeClock::default())
        .with_ids(CountedIds::default())
        .with_tool(tool_fn("look", "Looks", noop))
        .with_tool(tool_fn("see", "Sees", noop))
}

/// Returns a run's events; times and what the vendor calls its calls taken out.
async fn events(run: Run) -> String {
    let events: Vec<_> = run.collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let lines = render(&events).lines().map(|line| line.trim_start().to_owned()).collect::<Vec<_>>();
    // Chat completions do not say that a call is complete before the answer is.
    let lines = lines.iter().filter(|line| !line.contains("TOOL_CALL_END"));
    let untimed = lines.map(|line| line.split_once(' ').map_or(line.as_str(), |(_, rest)| rest));
    let mut text = untimed.collect::<Vec<_>>().join("\n");
    let ids = events.iter().filter_map(|event| match &event.kind {
        EventKind::ToolCallStart { tool_call_id, .. } => Some(tool_call_id.to_string()),
        _ => None,
    });
    for (number, id) in ids.enumerate() {
        text = text.replace(&format!("({id})"), &format!("(call {number})"));
    }
    text
}

/// Runs a script on every vendor's API: all must give the same events.
async fn check(script: impl Fn() -> Vec<Turn>) -> String {
    let mut same: Option<(&str, String)> = None;
    for vendor in PROVIDERS {
        let server = ModelServer::start(ScriptedModel::new().agent(ROOT, script())).await.unwrap();
        let harness = builder(model(vendor, &server, ROOT)).build().unwrap();
        let seen = events(harness.stream_events("go")).await;
        let (first, expected) = same.get_or_insert_with(|| (vendor.name, seen.clone()));
        assert_eq!(&seen, expected, "{} and {first}", vendor.name);
        assert_eq!(server.requests().len(), script().len(), "{}", vendor.name);
    }
    same.unwrap().1
}

fn used(turn: Turn) -> Turn {
    let mut usage = Usage::new(12, 7);
    usage.cache_read_tokens = 4;
    turn.usage(usage)
}

#[tokio::test]
async fn all_vendors_give_the_same_events() {
    let text = check(|| vec![used(Turn::new().text("Hello ").text("there."))]).await;
    assert!(
        text.contains("TEXT_BLOCK_DELTA \"Hello there.\" ×2") && text.contains("AGENT_END success 19/19 tok"),
        "{text}"
    );
    check(|| vec![used(Turn::new().thinking("Hm. ").text("So."))]).await;
    check(|| vec![used(Turn::new().call("look", json!({"at": "it"}))), used(Turn::new().text("Seen."))])
        .await;
    let two =
        || Turn::new().text("Two. ").call("look", json!({"at": 1})).call("see", json!({"at": [2, "ü"]}));
    let both = check(|| vec![used(two()), used(Turn::new().text("Both."))]).await;
    insta::assert_snapshot!(both);
    let empty = || Turn::new().call("look", json!({}));
    check(|| vec![used(empty()), used(empty()), used(Turn::new().text("Done."))]).await;
    use mainstem::message::StopReason;
    // A text that reaches the limit of length goes on.
    let cut = || used(Turn::new().text("Cut o")).stop(StopReason::Length);
    check(|| vec![cut(), used(Turn::new().text("ff, and on."))]).await;
}

#[tokio::test]
async fn a_childs_model_may_be_another_vendors() {
    let script = ScriptedModel::new()
        .agent("root-model", [spawn(spawn(Turn::new(), "one"), "two"), Turn::new().text("Both did.")])
        .agent("kid-model", [Turn::new().text("Did it.")]);
    let server = ModelServer::start(script).await.unwrap();
    for root in PROVIDERS {
        for kid in PROVIDERS {
            let (root, kid_model) = (model(root, &server, "root-model"), model(kid, &server, "kid-model"));
            let spec = AgentSpec::new("kid", "A kid").with_model("kid's");
            let registry = ModelRegistry::new().with_model("kid's", kid_model);
            let harness = builder(root).with_registry(registry).with_subagent(spec).build().unwrap();
            assert_eq!(harness.call("go").await.unwrap().text(), "Both did.");
        }
    }
}
