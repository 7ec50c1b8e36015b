//! A tool that is an agent does not show where its agent runs.

use mainstem::{model::scripted::Turn, prelude::*};
use serde_json::json;

use crate::{
    anywhere::serve,
    chain::{builder, events, nameless, remote},
    support::ms,
};

/// A caller whose first call is promoted, and which then sends to the child.
fn caller() -> ScriptedModel {
    let first = json!({ "task": "look", "label": "scout", "timeout_seconds": 1 });
    let turns = [
        Turn::new().call("second", first),
        Turn::new().call("task_wait", json!({})),
        Turn::new().call("agent_send", json!({ "label": "scout", "message": "and now?" })),
        Turn::new().text("All done."),
    ];
    ScriptedModel::new().agent("main", turns)
}

fn callee(model: ScriptedModel) -> ScriptedModel {
    model.agent("second", [Turn::new().wait(ms(1_500)).text("I look."), Turn::new().text("I see.")])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_local_agent_one_in_code_and_a_remote_one_are_tools_alike() {
    let tool = || AgentTool::new("second", "Helps");
    let declared = builder("main", callee(caller())).with_subagent(AgentSpec::new("second", "Helps"));
    let in_code = Agent::builder("second", callee(ScriptedModel::new())).build().unwrap();
    let in_code = builder("main", caller()).with_tool(in_code.into_tool("Helps"));
    let served = builder("second", callee(ScriptedModel::new())).build().unwrap();
    let (url, serving) = serve(served).await;
    let far = builder("main", caller()).with_subagent(remote("second", &url)).with_tool(tool());
    let mut seen = Vec::new();
    for harness in [declared.with_tool(tool()), in_code, far] {
        seen.push(nameless(&events(&harness.build().unwrap()).await));
    }
    serving.abort();
    assert_eq!(seen[1], seen[0], "in code, and declared");
    assert_eq!(seen[2], seen[0], "remote, and local");
    insta::assert_snapshot!(seen[0]);
}
