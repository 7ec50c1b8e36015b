//! Agents that continue where they stopped when they are spawned again.

use mainstem::{model::scripted::Turn, prelude::*};
use mainstem_testing::{laws, render};
use serde_json::{Value, json};

use crate::support::{OpenNow, harness, ms};

fn spawn(agent_id: &str, task: &str, more: Value) -> Turn {
    let mut arguments = json!({ "agent_id": agent_id, "task": task });
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Turn::new().call("agent_spawn", arguments)
}

fn fleet(turns: impl IntoIterator<Item = Turn>) -> Session {
    let says = |prefix: &str| ["one", "two", "three"].map(|n| Turn::new().text(format!("{prefix} {n}")));
    let slow = [Turn::new().wait(ms(50)).text("slow one"), Turn::new().text("slow two")];
    let model = ScriptedModel::new()
        .agent("main", turns)
        .agent_on("keeper", "slow", slow)
        .agent("keeper", says("keeper"))
        .agent("fresh", says("fresh"));
    let harness = harness(model)
        .with_subagent(AgentSpec::new("keeper", "Goes on").with_persist_session(true))
        .with_subagent(AgentSpec::new("fresh", "Begins anew"))
        .build()
        .unwrap();
    harness.session("s")
}

/// Checks the laws; returns who began which turn, and the failed calls of the root.
async fn run(session: &Session, options: RunOptions) -> String {
    let events: Vec<_> = session.run(RunRequest::new("go").with_options(options)).unwrap().collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let line = |event: &AgentEvent| {
        let source = event.source();
        match &event.kind {
            EventKind::AgentResult { .. } => {
                source.map(|by| format!("{} turn {}: {}\n", by.agent_key, by.turn, event.kind))
            }
            EventKind::ToolResultTextDelta { delta, .. } if !delta.starts_with("agent_key") => {
                Some(format!("{delta}\n"))
            }
            _ => None,
        }
    };
    events.iter().filter_map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn the_same_agent_under_the_same_label_goes_on() {
    let session = fleet([
        spawn("keeper", "1", json!({})),
        spawn("keeper", "2", json!({ "label": " " })),
        spawn("keeper", "3", json!({ "label": "Aside" })),
        spawn("keeper", "4", json!({ "label": "aside" })),
        spawn("fresh", "5", json!({})),
        spawn("fresh", "6", json!({})),
        Turn::new().text("Done."),
    ]);
    insta::assert_snapshot!(run(&session, RunOptions::new()).await, @r#"
    agent:keeper:1 turn 1: AGENT_RESULT "keeper one"
    agent:keeper:1 turn 2: AGENT_RESULT "keeper two"
    agent:keeper:2 turn 1: AGENT_RESULT "keeper one"
    agent:keeper:2 turn 2: AGENT_RESULT "keeper two"
    agent:fresh:1 turn 1: AGENT_RESULT "fresh one"
    agent:fresh:2 turn 1: AGENT_RESULT "fresh one"
    "#);
}

#[tokio::test(start_paused = true)]
async fn it_goes_on_in_later_runs_and_for_the_same_user() {
    let turns = || [spawn("keeper", "1", json!({})), Turn::new().text("Done.")];
    let session = fleet([turns(), turns(), turns()].into_iter().flatten());
    let mut all = String::new();
    for user in ["ann", "bob", "ann"] {
        all.push_str(&run(&session, RunOptions::new().with_user(user)).await);
    }
    insta::assert_snapshot!(all, @r#"
    agent:keeper:1 turn 1: AGENT_RESULT "keeper one"
    agent:keeper:2 turn 1: AGENT_RESULT "keeper one"
    agent:keeper:1 turn 2: AGENT_RESULT "keeper two"
    "#);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_at_work_is_not_spawned_and_one_that_was_closed_begins_anew() {
    let both =
        json!({ "spawns": [{ "agent_id": "keeper", "task": "a" }, { "agent_id": "keeper", "task": "b" }] });
    let close = json!({ "agent_key": "agent:keeper:1" });
    let session = fleet([
        spawn("keeper", "slow", json!({ "timeout_seconds": 0 })),
        spawn("keeper", "again", json!({})),
        Turn::new().call("agent_close", close),
        Turn::new().call("agent_fanout", both),
        Turn::new().text("Done."),
    ]);
    insta::assert_snapshot!(run(&session, RunOptions::new()).await, @r#"
    agent:keeper:1 would go on where it stopped, but is still running; use agent_send to tell it more
    agent:keeper:2 turn 1: AGENT_RESULT "keeper one"
    agent:keeper:2 turn 2: AGENT_RESULT "keeper two"
    # result 1 of 2
    agent_key: agent:keeper:2
    agent_id: keeper
    session_id: sub-2
    status: completed
    reply:
    keeper one

    # result 2 of 2
    agent_key: agent:keeper:2
    agent_id: keeper
    session_id: sub-2
    status: completed
    reply:
    keeper two
    "#);
}
