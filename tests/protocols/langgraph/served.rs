//! The official SDKs, unchanged, as clients of our server.

use std::process::Stdio;

use mainstem::prelude::*;
use mainstem_server::Protocol;
use serde_json::json;

use super::proxy::{Fault, proxy};
use crate::support::{Folder, Served, TOKEN};

/// Runs a scenario of a script against a server, and returns what it prints; `None` if the packages
/// are not installed.
async fn run(script: &str, scenario: &str, model: ScriptedModel, fault: Option<Fault>) -> Option<String> {
    let folder = Folder::find("langgraph")?;
    let server = Served::start(&harness(model), &[Protocol::LangGraph]).await;
    let url = match fault {
        Some(fault) => proxy(&server.url, fault).await,
        None => server.url.clone(),
    };
    let mut command = folder.command(script);
    command.args([&url, TOKEN, scenario]).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let (said, why) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script} {scenario} failed\n{said}\n{why}");
    Some(said.into_owned())
}

fn harness(model: ScriptedModel) -> Harness {
    let send = |_, given: serde_json::Map<String, serde_json::Value>| async move {
        Ok::<_, ToolError>(format!("sent to {}", given["to"].as_str().unwrap_or_default()))
    };
    Harness::builder("main", model)
        .with_tool(tool_fn("send", "Sends", send))
        .with_subagent(AgentSpec::new("researcher", "Finds out"))
        .with_permissions(RuleSet::default().with_pattern(Effect::Ask, "send").unwrap())
        .build()
        .unwrap()
}

/// A leader that thinks and asks a child, and then answers a second message.
fn team() -> ScriptedModel {
    let spawn = json!({ "agent_id": "researcher", "task": "north" });
    let first = Turn::new().thinking("Hm.").text("I ask ").text("one.").call("agent_spawn", spawn);
    let turns = [first, Turn::new().text("All ").text("done."), Turn::new().text("Nothing new.")];
    ScriptedModel::new().agent("main", turns).agent("researcher", [Turn::new().text("It is ").text("cold.")])
}

fn long() -> ScriptedModel {
    let turn = (0..400).fold(Turn::new(), |turn, number| turn.text(format!("{number} ")));
    ScriptedModel::new().agent("main", [turn])
}

fn sender() -> ScriptedModel {
    let call = || Turn::new().call("send", json!({ "to": "you" }));
    let turns = [
        call(),
        Turn::new().text("Sent."),
        call(),
        Turn::new().text("Not sent."),
        call(),
        Turn::new().text("Sent."),
    ];
    ScriptedModel::new().agent("main", turns)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_reads_a_run_in_several_modes() {
    let Some(said) = run("sdk.py", "stream", team(), None).await else { return };
    insta::assert_snapshot!(said, @"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_reads_growing_messages() {
    let Some(said) = run("sdk.py", "messages", team(), None).await else { return };
    insta::assert_snapshot!(said, @"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_goes_on_after_a_cut() {
    for bytes in [20_000, 33_333] {
        let Some(said) = run("sdk.py", "long", long(), Some(Fault::Cut(bytes))).await else { return };
        assert_eq!(said, "text True True\nids True\n");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_answers_an_interrupt() {
    let Some(said) = run("sdk.py", "interrupt", sender(), None).await else { return };
    insta::assert_snapshot!(said, @"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_cancels_a_run() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("I hang").hang()]);
    let Some(said) = run("sdk.py", "cancel", model, None).await else { return };
    assert_eq!(said, "rejected 409 True\nrun interrupted\nstream error UserInterrupt\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_reads_why_a_request_is_refused() {
    let Some(said) = run("sdk.py", "refusals", team(), None).await else { return };
    insta::assert_snapshot!(said, @"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn javascript_shows_children_as_subagents() {
    let Some(said) = run("sdk.mjs", "subagents", team(), None).await else { return };
    insta::assert_snapshot!(said, @"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn javascript_goes_on_after_a_cut_and_answers_an_interrupt() {
    let Some(said) = run("sdk.mjs", "long", long(), Some(Fault::Cut(25_000))).await else { return };
    assert_eq!(said, "text true ids true\n");
    let Some(said) = run("sdk.mjs", "interrupt", sender(), None).await else { return };
    assert_eq!(
        said,
        "asked [{\"name\":\"send\",\"args\":{\"to\":\"you\"},\"description\":\"send requires approval\"}]\ndone \"Sent.\"\n"
    );
}
