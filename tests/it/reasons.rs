//! The reason of a cancel, in the end of an invocation, in its task's record and in its parent's
//! result.

use std::time::Duration;

use mainstem::{
    event::{CancelReason, TaskStatus},
    message::{AgentKey, ToolState},
    model::scripted::Turn,
    prelude::*,
};
use mainstem_testing::{laws, render};
use serde_json::json;

use crate::support::{Spawns, harness, ms};

/// Returns how each agent ended: its id, the outcome, and why.
fn ends(events: &[AgentEvent]) -> Vec<String> {
    let end = |event: &AgentEvent| match &event.kind {
        EventKind::AgentEnd { outcome, error, .. } => {
            let why = error.as_ref().map(|error| format!(" {error}")).unwrap_or_default();
            Some(format!("{} {}{why}", event.agent_label(), outcome.as_str()))
        }
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

/// Returns the texts of the root's tool results, and how each ended.
fn results(events: &[AgentEvent]) -> (String, Vec<ToolState>) {
    let (mut text, mut states) = (String::new(), Vec::new());
    for event in events.iter().filter(|event| event.is_root()) {
        match &event.kind {
            EventKind::ToolResultTextDelta { delta, .. } => text.push_str(delta),
            EventKind::ToolResultEnd { state, .. } => states.push(*state),
            _ => {}
        }
    }
    (text, states)
}

/// Reads a run to its end; calls `then` once, at the first event that `when` selects.
async fn read(
    mut run: Run,
    when: impl Fn(&AgentEvent) -> bool,
    then: impl FnOnce(&RunHandle),
) -> Vec<AgentEvent> {
    let (handle, mut then, mut events) = (run.handle(), Some(then), Vec::new());
    while let Some(event) = run.next().await {
        if when(&event)
            && let Some(then) = then.take()
        {
            then(&handle);
        }
        events.push(event);
    }
    assert!(then.is_none(), "it never came");
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events
}

fn speaks(agent: &'static str) -> impl Fn(&AgentEvent) -> bool {
    move |event| event.agent_label() == agent && matches!(event.kind, EventKind::TextBlockDelta { .. })
}

/// `main` waits for `lead`, which waits for `kid`, which streams without end.
fn tree() -> Harness {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("lead", "go"), Turn::new().text("Done.")])
        .agent("lead", [Turn::new().spawn("kid", "go")])
        .agent("kid", [Turn::new().text("a").hang()]);
    let lead = AgentSpec::new("lead", "L").with_tools(["agent_spawn"]);
    harness(model).with_subagent(lead).with_subagent(AgentSpec::new("kid", "K")).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_subtree_is_stopped_by_the_user_and_its_parent_reads_that() {
    let stop =
        |handle: &RunHandle| assert!(handle.cancel_agent(&AgentKey::try_from("agent:lead:1").unwrap()));
    let events = read(tree().stream_events("go"), speaks("kid"), stop).await;
    let why = "agent_cancelled: cancelled by the user (agent `lead` and all below it)";
    assert_eq!(
        ends(&events),
        [format!("kid cancelled {why}"), format!("lead cancelled {why}"), "main success".to_owned()]
    );
    let (text, states) = results(&events);
    assert!(text.ends_with(&format!("status: cancelled\nerror: {why}")), "{text}");
    assert_eq!(states, [ToolState::Error]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_out_of_time_ends_so_and_its_children_with_it() {
    let stop = |handle: &RunHandle| {
        handle.cancel_because(CancelReason::Timeout { after: Duration::from_secs(2) });
    };
    let events = read(tree().stream_events("go"), speaks("kid"), stop).await;
    let why = "parent_stopped: cancelled with agent `main`: timed out after 2 s";
    assert_eq!(
        ends(&events),
        [
            format!("kid cancelled {why}"),
            format!("lead cancelled {why}"),
            "main timeout timeout: timed out after 2 s".to_owned()
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_after_a_cancel_ends_for_its_reason() {
    let mut run = tree().stream_events("go");
    let session = run.handle().session().clone();
    while let Some(event) = run.next().await {
        if speaks("kid")(&event) {
            run.handle().cancel_because(CancelReason::Timeout { after: ms(20) });
            break;
        }
    }
    drop(run);
    let mut cursor = session.subscribe_from(1);
    let events: Vec<_> = std::iter::from_fn(|| cursor.try_next()).collect();
    assert_eq!(ends(&events).last().unwrap(), "main timeout timeout: timed out after 20 ms");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_must_end_says_how_long_it_was_given() {
    let call = json!({ "agent_id": "kid", "task": "go", "timeout_seconds": 5 });
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("agent_spawn", call), Turn::new().text("Done.")])
        .agent("kid", [Turn::new().text("a").hang()]);
    let harness = harness(model).with_subagent(AgentSpec::new("kid", "K")).build().unwrap();
    let run = harness.stream_events(RunRequest::new("go").with_force_sync(true));
    let events = read(run, speaks("kid"), |_| {}).await;
    assert_eq!(ends(&events), ["kid timeout timeout: timed out after 5 s", "main success"]);
    let (text, _) = results(&events);
    assert!(text.contains("status: timeout\nerror: timeout: timed out after 5 s"), "{text}");
}

/// One task: its agent's end, its record and the tools' results. Waiting for a task that was
/// cancelled on purpose succeeds.
#[tokio::test(start_paused = true)]
async fn a_task_is_stopped_by_the_agent_that_asked() {
    let spawn = json!({ "agent_id": "kid", "task": "go", "timeout_seconds": 0 });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", spawn),
                Turn::new().call("task_cancel", json!({ "task_id": "task-1" })),
                Turn::new().call("task_wait", json!({ "task_ids": ["task-1"] })),
                Turn::new().call("task_output", json!({ "task_id": "task-1" })),
                Turn::new().text("Done."),
            ],
        )
        .agent("kid", [Turn::new().text("a").hang()]);
    let harness = harness(model).with_subagent(AgentSpec::new("kid", "K")).build().unwrap();
    let run = harness.stream_events("go");
    let session = run.handle().session().clone();
    let events = read(run, speaks("kid"), |_| {}).await;
    let why = "task_cancelled: cancelled by agent `main` (task `task-1`)";
    assert_eq!(ends(&events), [format!("kid cancelled {why}"), "main success".to_owned()]);
    let tasks = session.tasks().await.unwrap();
    let by = tasks[0].cancel.as_ref().map(|cancel| &*cancel.by);
    assert_eq!((tasks[0].status, by), (TaskStatus::Cancelled, Some("agent `main`")));
    let (text, states) = results(&events);
    assert_eq!(text.matches("status: cancelled").count(), 3, "{text}");
    assert_eq!(text.matches("cancelled by agent `main`").count(), 3, "{text}");
    assert_eq!(states[1..], [ToolState::Success; 3]);
}

/// At its limit, a child without text has failed, awaited or not; one with text has not.
#[tokio::test(start_paused = true)]
async fn a_child_at_its_limit_that_says_nothing_has_failed() {
    for (last, background) in [("", false), ("", true), ("What I have.", false), ("What I have.", true)] {
        let mut spawn = json!({ "agent_id": "kid", "task": "go" });
        if background {
            spawn["timeout_seconds"] = 0.into();
        }
        let look = || Turn::new().call("lookup", json!({ "word": "x" }));
        let model = ScriptedModel::new()
            .agent(
                "main",
                [
                    Turn::new().call("agent_spawn", spawn),
                    match background {
                        true => Turn::new().call("task_output", json!({ "task_id": "task-1" })),
                        false => look(),
                    },
                    Turn::new().text("Done."),
                ],
            )
            .agent("kid", [look(), Turn::new().text(last)]);
        let kid = AgentSpec::new("kid", "K").with_steps(1);
        let run = harness(model).with_subagent(kid).build().unwrap().stream_events("go");
        let session = run.handle().session().clone();
        let is_end = |event: &AgentEvent| {
            !event.is_root()
                && matches!(event.kind, EventKind::AgentEnd { outcome: Outcome::MaxIterations, .. })
        };
        let events = read(run, is_end, |_| {}).await;
        let (text, states) = results(&events);
        let failed = last.is_empty();
        assert_eq!(text.contains("it reached its limit of model calls and gave no answer"), failed, "{text}");
        let state = states[usize::from(background)];
        assert_eq!(state, if failed { ToolState::Error } else { ToolState::Success }, "{text}");
        if background {
            let status = session.tasks().await.unwrap()[0].status;
            assert_eq!(status, if failed { TaskStatus::Failed } else { TaskStatus::Completed });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_nobody_reads_ends_with_its_harness_and_says_so() {
    let harness = tree();
    let run = harness.stream_events("go");
    let session = run.handle().session().clone();
    let _handle = run.detach();
    tokio::time::sleep(ms(10)).await;
    harness.shutdown(ms(0)).await;
    let mut cursor = session.subscribe_from(1);
    let events: Vec<_> = std::iter::from_fn(|| cursor.try_next()).collect();
    let why = "cancelled shutdown: cancelled by the shutdown of the harness";
    assert_eq!(ends(&events), ["kid", "lead", "main"].map(|agent| format!("{agent} {why}")));
}
