//! Background tasks: begun as such, promoted, delivered, awaited, stopped.

use mainstem::{
    event::TaskStatus,
    message::{SessionId, TaskId},
    model::scripted::Turn,
    prelude::*,
    task::TaskFilter,
};
use mainstem_testing::{laws, render, timeline};
use serde_json::{Value, json};

use crate::support::{OpenNow, Spawns, harness, ms, spawn_args};

fn fleet(model: ScriptedModel) -> HarnessBuilder {
    harness(model)
        .with_subagent(AgentSpec::new("slow", "Takes its time"))
        .with_subagent(AgentSpec::new("lead", "Leads").with_tools(["agent_spawn", "lookup"]))
}

/// Arguments of a spawn that waits so long.
fn within(agent_id: &str, task: &str, seconds: u64) -> Value {
    let mut call = spawn_args(agent_id, task);
    call["timeout_seconds"] = seconds.into();
    call
}

/// Reads a whole session: the run, and the rest of its tasks after it.
async fn whole(harness: &Harness, run: Run) -> Vec<AgentEvent> {
    let session = run.handle().session().clone();
    let mut events: Vec<_> = run.collect().await;
    let open = harness.tasks().live_below(session.id());
    harness.tasks().wait(&open, ms(600_000)).await.unwrap();
    let mut rest = session.subscribe_from(events.last().unwrap().seq + 1);
    events.extend(std::iter::from_fn(|| rest.try_next()));
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events
}

#[tokio::test(start_paused = true)]
async fn a_task_from_the_start() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", within("slow", "dig", 0)),
                Turn::new().call("lookup", json!({ "word": "x", "takes": 30 })),
                Turn::new().text("It found gold."),
            ],
        )
        .agent("slow", [Turn::new().pace(ms(10)).say("a nugget")]);
    let run = timeline(fleet(model).build().unwrap().stream_events("dig")).await;
    insta::assert_snapshot!(run, @r#"
     0 main AGENT_START main "dig"
     0 main MODEL_CALL_START scripted #1
     0 main TOOL_CALL_START agent_spawn (call-1)
     0 main TOOL_CALL_DELTA "{\"agent_id\":\"slow\",\"task\":\"dig\",\"timeout_seconds\":0}" (call-1)
     0 main TOOL_CALL_END agent_spawn (call-1)
     0 main MODEL_CALL_END tool_calls
     0 main TOOL_RESULT_START agent_spawn {"agent_id":"slow","task":"dig","timeout_seconds":0} (call-1)
     0 main TASK_UPDATED task-1 pending → running
     0   slow#1@task-1 AGENT_START slow "dig"
     0   slow#1@task-1 MODEL_CALL_START scripted #1
     0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:slow:1\nagent_id: slow\nsession_id: sub-1\nstatus: accepted\ntask_i"… (call-1)
     0 main TOOL_RESULT_END agent_spawn running (call-1)
     0 main MODEL_CALL_START scripted #2
     0 main TOOL_CALL_START lookup (call-2)
     0 main TOOL_CALL_DELTA "{\"word\":\"x\",\"takes\":30}" (call-2)
     0 main TOOL_CALL_END lookup (call-2)
     0 main MODEL_CALL_END tool_calls
     0 main TOOL_RESULT_START lookup {"word":"x","takes":30} (call-2)
     0 main TOOL_RESULT_TEXT_DELTA "x " (call-2)
    10   slow#1@task-1 TEXT_BLOCK_START
    10   slow#1@task-1 TEXT_BLOCK_DELTA "a nugget" ×2
    20   slow#1@task-1 TEXT_BLOCK_END
    20   slow#1@task-1 MODEL_CALL_END stop
    20   slow#1@task-1 AGENT_RESULT "a nugget"
    20   slow#1@task-1 AGENT_END success 3/3 tok
    20 main TASK_UPDATED task-1 running → completed
    30 main TOOL_RESULT_TEXT_DELTA "found" (call-2)
    30 main TOOL_RESULT_END lookup success (call-2)
    30 main HINT_BLOCK task_delivery "<system-reminder>\nBackground tasks delivered:\n- task_id=task-1, agent=slow, stat"…
    30 main MODEL_CALL_START scripted #3
    30 main TEXT_BLOCK_START
    30 main TEXT_BLOCK_DELTA "It found gold."
    30 main TEXT_BLOCK_END
    30 main MODEL_CALL_END stop
    30 main AGENT_RESULT "It found gold."
    30 main AGENT_END success 61/64 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn what_is_promoted_does_not_wait_for_a_run_that_is_not_read() {
    let calls = Turn::new()
        .call("agent_spawn", within("lead", "dig", 1))
        .call("agent_spawn", within("slow", "hold the place", 600));
    // The lead's child waits for the slot of the other child, which advances only while the run is
    // read.
    let model = ScriptedModel::new()
        .agent("main", [calls, Turn::new().text("Dug.")])
        .agent("lead", [Turn::new().call("agent_spawn", within("kid", "dig", 600)), Turn::new().say("gold")])
        .agent(
            "kid",
            [
                Turn::new().wait(ms(10)).call("agent_spawn", within("grandkid", "dig", 600)),
                Turn::new().text("ore"),
            ],
        )
        .agent("grandkid", [Turn::new().wait(ms(10)).text("stone")])
        .agent("slow", [Turn::new().wait(ms(100_000)).text("held")]);
    let kid = AgentSpec::new("kid", "Digs").with_tools(["agent_spawn"]);
    let harness = fleet(model)
        .with_subagent(kid)
        .with_subagent(AgentSpec::new("grandkid", "Digs"))
        .with_max_children(1);
    let harness = harness.build().unwrap();
    let mut run = harness.stream_events("dig");
    let mut events = Vec::new();
    while !matches!(events.last().map(|event: &AgentEvent| &event.kind), Some(EventKind::TaskUpdated { .. }))
    {
        events.push(run.next().await.unwrap());
    }
    let open = harness.tasks().live_below(run.handle().session().id());
    let ended = harness.tasks().wait(&open, ms(60_000)).await.unwrap();
    let results = ended.map(|records| records.into_iter().map(|record| record.result).collect::<Vec<_>>());
    assert_eq!(results, Some(vec![Some("gold".to_owned())]));
    events.extend(run.collect::<Vec<_>>().await);
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
}

#[tokio::test(start_paused = true)]
async fn a_promoted_child_keeps_streaming() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", within("slow", "dig", 1)),
                Turn::new().call("task_wait", json!({})),
                Turn::new().text("It found gold."),
            ],
        )
        .agent("slow", [Turn::new().pace(ms(600)).say("a nugget of gold")]);
    let run = timeline(fleet(model).build().unwrap().stream_events("dig")).await;
    insta::assert_snapshot!(run, @r#"
       0 main AGENT_START main "dig"
       0 main MODEL_CALL_START scripted #1
       0 main TOOL_CALL_START agent_spawn (call-1)
       0 main TOOL_CALL_DELTA "{\"agent_id\":\"slow\",\"task\":\"dig\",\"timeout_seconds\":1}" (call-1)
       0 main TOOL_CALL_END agent_spawn (call-1)
       0 main MODEL_CALL_END tool_calls
       0 main TOOL_RESULT_START agent_spawn {"agent_id":"slow","task":"dig","timeout_seconds":1} (call-1)
       0   slow#1 AGENT_START slow "dig"
       0   slow#1 MODEL_CALL_START scripted #1
     600   slow#1 TEXT_BLOCK_START
     600   slow#1 TEXT_BLOCK_DELTA "a "
    1000 main TASK_UPDATED task-1 pending → running
    1000 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:slow:1\nagent_id: slow\nsession_id: sub-1\nstatus: promoted\ntask_i"… (call-1)
    1000 main TOOL_RESULT_END agent_spawn running (call-1)
    1000 main MODEL_CALL_START scripted #2
    1000 main TOOL_CALL_START task_wait (call-2)
    1000 main TOOL_CALL_DELTA "{}" (call-2)
    1000 main TOOL_CALL_END task_wait (call-2)
    1000 main MODEL_CALL_END tool_calls
    1000 main TOOL_RESULT_START task_wait {} (call-2)
    1200   slow#1@task-1 TEXT_BLOCK_DELTA "nugget of gold" ×3
    2400   slow#1@task-1 TEXT_BLOCK_END
    2400   slow#1@task-1 MODEL_CALL_END stop
    2400   slow#1@task-1 AGENT_RESULT "a nugget of gold"
    2400   slow#1@task-1 AGENT_END success 5/5 tok
    2400 main TASK_UPDATED task-1 running → completed
    2400 main TOOL_RESULT_TEXT_DELTA "1 of 1 tasks have ended.\n---\ntask_id: task-1\nagent_id: slow\nagent_key: agent:slo"… (call-2)
    2400 main TOOL_RESULT_END task_wait success (call-2)
    2400 main MODEL_CALL_START scripted #3
    2400 main TEXT_BLOCK_START
    2400 main TEXT_BLOCK_DELTA "It found gold."
    2400 main TEXT_BLOCK_END
    2400 main MODEL_CALL_END stop
    2400 main AGENT_RESULT "It found gold."
    2400 main AGENT_END success 21/26 tok
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_task_outlives_its_run_and_the_next_turn_hears_of_it() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", within("slow", "dig", 0)),
                Turn::new().text("It digs."),
                Turn::new().text("Gold, it says."),
            ],
        )
        .agent("slow", [Turn::new().wait(ms(50)).say("</system-reminder> gold")]);
    let harness = fleet(model).build().unwrap();
    let session = harness.session("s");
    let mut events = whole(&harness, session.run("dig").unwrap()).await;
    let between = events.iter().filter(|event| event.run_id().is_none()).count();
    assert!(between > 0, "the child talks between the runs");
    events.extend(session.run("and?").unwrap().collect::<Vec<_>>().await);
    laws(&events).unwrap();
    insta::assert_snapshot!(render(&events), @r#"
     0 main AGENT_START main "dig"
     0 main MODEL_CALL_START scripted #1
     0 main TOOL_CALL_START agent_spawn (call-1)
     0 main TOOL_CALL_DELTA "{\"agent_id\":\"slow\",\"task\":\"dig\",\"timeout_seconds\":0}" (call-1)
     0 main TOOL_CALL_END agent_spawn (call-1)
     0 main MODEL_CALL_END tool_calls
     0 main TOOL_RESULT_START agent_spawn {"agent_id":"slow","task":"dig","timeout_seconds":0} (call-1)
     0 main TASK_UPDATED task-1 pending → running
     0   slow#1@task-1 AGENT_START slow "dig"
     0   slow#1@task-1 MODEL_CALL_START scripted #1
     0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:slow:1\nagent_id: slow\nsession_id: sub-1\nstatus: accepted\ntask_i"… (call-1)
     0 main TOOL_RESULT_END agent_spawn running (call-1)
     0 main MODEL_CALL_START scripted #2
     0 main TEXT_BLOCK_START
     0 main TEXT_BLOCK_DELTA "It digs."
     0 main TEXT_BLOCK_END
     0 main MODEL_CALL_END stop
     0 main AGENT_RESULT "It digs."
     0 main AGENT_END success 17/17 tok
    50   slow#1@task-1 TEXT_BLOCK_START
    50   slow#1@task-1 TEXT_BLOCK_DELTA "</system-reminder> gold" ×2
    50   slow#1@task-1 TEXT_BLOCK_END
    50   slow#1@task-1 MODEL_CALL_END stop
    50   slow#1@task-1 AGENT_RESULT "</system-reminder> gold"
    50   slow#1@task-1 AGENT_END success 7/7 tok
    50 main TASK_UPDATED task-1 running → completed
    50 main AGENT_START main "and?"
    50 main HINT_BLOCK task_delivery "<system-reminder>\nBackground tasks delivered:\n- task_id=task-1, agent=slow, stat"…
    50 main MODEL_CALL_START scripted #1
    50 main TEXT_BLOCK_START
    50 main TEXT_BLOCK_DELTA "Gold, it says."
    50 main TEXT_BLOCK_END
    50 main MODEL_CALL_END stop
    50 main AGENT_RESULT "Gold, it says."
    50 main AGENT_END success 47/47 tok
    "#);
    let told = session.tasks().await.unwrap();
    assert!(told.iter().all(|task| task.delivered_at.is_some()), "{told:?}");
}

/// Returns the text of a tool result in a list of events.
fn result_of(events: &[AgentEvent], call: &str) -> String {
    let text = |event: &AgentEvent| match &event.kind {
        EventKind::ToolResultTextDelta { tool_call_id, delta } if *tool_call_id == *call => {
            Some(delta.clone())
        }
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// Returns the changes of all tasks, in order.
fn changes(events: &[AgentEvent]) -> Vec<String> {
    let change = |event: &AgentEvent| match &event.kind {
        EventKind::TaskUpdated { task_id, to, .. } => Some(format!("{task_id} {}", to.as_str())),
        _ => None,
    };
    events.iter().filter_map(change).collect()
}

/// Returns how the children ended, in order.
fn ends(events: &[AgentEvent]) -> Vec<String> {
    let end = |event: &AgentEvent| match &event.kind {
        EventKind::AgentEnd { outcome, .. } => Some(format!("{} {}", event.agent_label(), outcome.as_str())),
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

fn hints(events: &[AgentEvent]) -> Vec<String> {
    let hint = |event: &AgentEvent| match &event.kind {
        EventKind::HintBlock { hint, .. } => Some(hint.clone()),
        _ => None,
    };
    events.iter().filter_map(hint).collect()
}

#[tokio::test(start_paused = true)]
async fn out_of_time_with_force_sync_stops_the_child() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [Turn::new().call("agent_spawn", within("slow", "dig", 1)), Turn::new().text("Too slow.")],
        )
        .agent("slow", [Turn::new().pace(ms(600)).say("a nugget of gold")]);
    let harness = fleet(model).build().unwrap();
    let events = whole(&harness, harness.stream_events(RunRequest::new("dig").with_force_sync(true))).await;
    assert_eq!(ends(&events), ["slow timeout", "main success"]);
    assert!(changes(&events).is_empty(), "there is no task");
    let result = result_of(&events, "call-1");
    assert!(result.contains("status: timeout\n"), "{result}");
}

#[tokio::test(start_paused = true)]
async fn force_sync_waits_even_for_what_was_not_to_be_waited_for() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("agent_spawn", within("slow", "dig", 0)), Turn::new().text("Gold.")])
        .agent("slow", [Turn::new().wait(ms(29_000)).say("gold")]);
    let harness = fleet(model).build().unwrap();
    let events = whole(&harness, harness.stream_events(RunRequest::new("dig").with_force_sync(true))).await;
    assert_eq!(ends(&events), ["slow success", "main success"]);
    assert!(result_of(&events, "call-1").ends_with("status: completed\nreply:\ngold"));
}

#[tokio::test(start_paused = true)]
async fn more_than_the_longest_wait_is_clamped_and_said() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [Turn::new().call("agent_spawn", within("slow", "dig", 9999)), Turn::new().text("Gold.")],
        )
        .agent("slow", [Turn::new().wait(ms(700_000)).say("gold")]);
    let harness = fleet(model).build().unwrap();
    let events = whole(&harness, harness.stream_events("dig")).await;
    let result = result_of(&events, "call-1");
    assert!(
        result.contains("note: timeout_seconds is 600 at most") && result.contains("status: promoted"),
        "{result}"
    );
}

#[tokio::test(start_paused = true)]
async fn time_during_which_nobody_polls_does_not_count() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [Turn::new().call("agent_spawn", within("slow", "dig", 10)), Turn::new().text("Gold.")],
        )
        .agent("slow", [Turn::new().pace(ms(1000)).say("a nugget of gold")]);
    let harness = fleet(model).build().unwrap();
    let mut run = harness.stream_events("dig");
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        if matches!(&event.kind, EventKind::TextBlockDelta { delta, .. } if delta == "a ") {
            tokio::time::sleep(ms(60_000)).await;
        }
        events.push(event);
    }
    laws(&events).unwrap();
    assert!(changes(&events).is_empty(), "a caller who pauses promotes nothing: {:?}", changes(&events));
    assert_eq!(ends(&events), ["slow success", "main success"]);
}

#[tokio::test(start_paused = true)]
async fn failures_are_told_with_their_error_and_cancels_with_who_asked() {
    let cut = |turn: Turn| turn.text("It").cut();
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new()
                    .call("agent_spawn", within("slow", "fails", 0))
                    .call("agent_spawn", within("slow", "panics", 0))
                    .call("agent_spawn", within("slow", "hangs", 0)),
                Turn::new()
                    .call("task_list", json!({ "status": "running" }))
                    .call("lookup", json!({ "word": "x", "takes": 5 })),
                Turn::new().call("task_cancel", json!({ "task_id": "task-3" })),
                Turn::new().call("task_output", json!({ "task_id": "task-1", "block": false })),
                Turn::new()
                    .call("task_cancel", json!({ "task_id": "task-3" }))
                    .call("task_wait", json!({ "task_ids": ["task-9"] })),
                Turn::new().text("I see."),
            ],
        )
        .agent_on("slow", "fails", [cut(Turn::new())])
        .agent_on("slow", "panics", [Turn::new().panic("oh no")])
        .agent_on("slow", "hangs", [Turn::new().text("I hang").hang()]);
    let harness = fleet(model).build().unwrap();
    let events = whole(&harness, harness.stream_events("go")).await;
    assert_eq!(
        changes(&events),
        [
            "task-1 running",
            "task-1 failed",
            "task-2 running",
            "task-2 failed",
            "task-3 running",
            "task-3 cancelled"
        ]
    );
    insta::assert_snapshot!(hints(&events).join("\n\n"), @"
    <system-reminder>
    Background tasks delivered:
    - task_id=task-1, agent=slow, status=FAILED
      error: transport: the connection was cut
      partial_reply:
      It
      agent_key: agent:slow:1
      note: all of this stays in its conversation: agent_send tells it to go on where it stopped, or in another way
    - task_id=task-2, agent=slow, status=FAILED
      error: panic: a panic in the agent: oh no
    </system-reminder>
    ");
    insta::assert_snapshot!([4, 6, 7, 8, 9].map(|n| result_of(&events, &format!("call-{n}"))).join("\n\n"), @r#"
    Background tasks that are running (1):
    - task_id: task-3  agent: slow  status: running  created_at: 2026-01-01T00:00:00.000000Z

    task_id: task-3
    agent_id: slow
    agent_key: agent:slow:3
    status: cancelled
    created_at: 2026-01-01T00:00:00.000000Z
    updated_at: 2026-01-01T00:00:00.005000Z
    cancelled by agent `main`

    task_id: task-1
    agent_id: slow
    agent_key: agent:slow:1
    status: failed
    created_at: 2026-01-01T00:00:00.000000Z
    updated_at: 2026-01-01T00:00:00.000000Z
    error: transport: the connection was cut
    partial_reply:
    It
    note: all of this stays in its conversation: agent_send tells it to go on where it stopped, or in another way

    It had ended before, and stays as it is.
    task_id: task-3
    agent_id: slow
    agent_key: agent:slow:3
    status: cancelled
    created_at: 2026-01-01T00:00:00.000000Z
    updated_at: 2026-01-01T00:00:00.005000Z
    cancelled by agent `main`

    unknown task_id "task-9"; task_list shows this session's tasks
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_or_cancelled_run_spares_its_tasks() {
    for cancel in [false, true] {
        let model = ScriptedModel::new()
            .agent(
                "main",
                [Turn::new()
                    .call("agent_spawn", within("slow", "dig", 0))
                    .call("lookup", json!({ "word": "x", "takes": 500 }))],
            )
            .agent("slow", [Turn::new().pace(ms(100)).say("a nugget of gold")]);
        let harness = fleet(model).build().unwrap();
        let session = harness.session("s");
        let mut run = session.run("dig").unwrap();
        let handle = run.handle();
        while !matches!(run.next().await.unwrap().kind, EventKind::TextBlockDelta { .. }) {}
        if cancel {
            handle.cancel();
            let _rest: Vec<_> = run.collect().await;
        } else {
            drop(run);
        }
        let task = TaskId::try_from("task-1").unwrap();
        let done = harness.tasks().wait(&[task], ms(60_000)).await.unwrap().unwrap();
        assert_eq!(done[0].result.as_deref(), Some("a nugget of gold"), "cancel: {cancel}");
        let mut all = session.subscribe_from(1);
        let events: Vec<_> = std::iter::from_fn(|| all.try_next()).collect();
        laws(&events).unwrap();
        let mut ends = ends(&events);
        ends.sort();
        assert_eq!(ends, ["main cancelled", "slow success"], "cancel: {cancel}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_tasks_at_the_end_of_a_run() {
    let model = || {
        ScriptedModel::new()
            .agent(
                "main",
                [
                    Turn::new()
                        .call("agent_spawn", within("slow", "dig", 0))
                        .call("agent_spawn", within("slow", "dive", 0)),
                    Turn::new().text("Begun."),
                    Turn::new().text("Gold and pearls."),
                ],
            )
            .agent_on("slow", "dig", [Turn::new().wait(ms(50)).say("gold")])
            .agent("slow", [Turn::new().wait(ms(70)).say("pearls")])
    };
    for (background, reply, expected) in [
        (Background::Detach, "Begun.", "main success, slow success, slow success"),
        (Background::Wait, "Gold and pearls.", "slow success, slow success, main success"),
        (Background::Cancel, "Begun.", "slow cancelled, slow cancelled, main success"),
    ] {
        let harness = fleet(model()).build().unwrap();
        let run = harness.stream_events(RunRequest::new("go").with_background(background));
        let handle = run.handle();
        let events = whole(&harness, run).await;
        assert_eq!(ends(&events).join(", "), expected, "{background:?}");
        let outcome = handle.outcome().await.unwrap();
        assert_eq!(outcome.answer.unwrap().text(), reply, "{background:?}");
        assert_eq!(harness.tasks().live(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_is_told_once_even_if_the_call_that_told_it_failed() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new()
                    .call("agent_spawn", within("slow", "dig", 0))
                    .call("lookup", json!({ "word": "x", "takes": 50 })),
                Turn::new().text("Go").cut(),
                Turn::new().text("Gold."),
                Turn::new().text("Gold!"),
            ],
        )
        .agent("slow", [Turn::new().say("gold")]);
    let harness = fleet(model).build().unwrap();
    let session = harness.session("s");
    let mut events = Vec::new();
    let mut delivered = Vec::new();
    for input in ["dig", "and?", "sure?"] {
        events.extend(session.run(input).unwrap().collect::<Vec<_>>().await);
        delivered.push(session.tasks().await.unwrap()[0].delivered_at.is_some());
    }
    laws(&events).unwrap();
    assert_eq!(delivered, [false, true, true], "marked when a model has read it");
    assert_eq!(hints(&events).len(), 1);
    let told = session.history().iter().filter(|message| message.text().contains("task_id=task-1")).count();
    assert_eq!(told, 1);
}

#[tokio::test(start_paused = true)]
async fn a_promoted_grandchild_is_its_parents_task() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("lead", "go"), Turn::new().text("Done.")])
        .agent(
            "lead",
            [
                Turn::new().call("agent_spawn", within("slow", "dig", 1)),
                Turn::new().call("lookup", json!({ "word": "x", "takes": 3000 })),
                Turn::new().text("It dug."),
            ],
        )
        .agent("slow", [Turn::new().pace(ms(700)).say("a nugget of gold")]);
    let harness = fleet(model).build().unwrap();
    let events = whole(&harness, harness.stream_events("go")).await;
    assert_eq!(ends(&events), ["slow success", "lead success", "main success"]);
    let task = &harness.tasks().list(&TaskFilter::all()).await.unwrap()[0];
    assert_eq!(
        (&*task.parent_agent_id, &task.parent_session_id),
        ("lead", &SessionId::try_from("sub-1").unwrap())
    );
    let hint = events.iter().find(|event| matches!(event.kind, EventKind::HintBlock { .. })).unwrap();
    assert_eq!(hint.agent_label(), "lead");
}

#[tokio::test(start_paused = true)]
async fn a_task_may_have_a_task_and_the_root_sees_both() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", within("lead", "go", 0)),
                Turn::new().call("lookup", json!({ "word": "x", "takes": 1500 })),
                Turn::new().call("task_output", json!({ "task_id": "task-2" })).call("task_list", json!({})),
                Turn::new().text("Done."),
            ],
        )
        .agent(
            "lead",
            [Turn::new().call("agent_spawn", within("slow", "dig", 1)), Turn::new().text("It digs.")],
        )
        .agent("slow", [Turn::new().pace(ms(700)).say("a nugget of gold")]);
    let harness = fleet(model).build().unwrap();
    let events = whole(&harness, harness.stream_events("go")).await;
    assert_eq!(ends(&events), ["lead success", "slow success", "main success"]);
    let tasks = |label: &str| {
        let of = events.iter().filter(|event| event.agent_label() == label);
        let mut tasks: Vec<_> =
            of.filter_map(|event| event.source()?.task_id.clone()).map(|id| id.to_string()).collect();
        tasks.dedup();
        tasks
    };
    assert_eq!(tasks("lead"), ["task-1"]);
    assert_eq!(tasks("slow"), ["task-1", "task-2"]);
    assert!(result_of(&events, "call-4").contains("result:\na nugget of gold"));
    assert!(
        result_of(&events, "call-5").starts_with("Background tasks (1):\n- task_id: task-1"),
        "only its own"
    );
}

#[tokio::test(start_paused = true)]
async fn no_more_than_so_many_tasks() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new()
                    .call("agent_spawn", within("slow", "a", 0))
                    .call("agent_spawn", within("slow", "b", 0)),
                Turn::new().text("Begun."),
            ],
        )
        .agent("slow", [Turn::new().wait(ms(50)).say("gold")]);
    let harness = fleet(model).with_max_tasks(1).build().unwrap();
    let events = whole(&harness, harness.stream_events("go")).await;
    assert!(result_of(&events, "call-1").contains("status: accepted"));
    assert!(result_of(&events, "call-2").starts_with("background tasks are limited to 1 at a time"));
    assert_eq!(ends(&events).len(), 2, "the refused one was never created");
}

#[tokio::test(start_paused = true)]
async fn after_a_shutdown_nothing_is_alive_and_everything_has_an_end() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new()
                    .call("agent_spawn", within("slow", "gentle", 0))
                    .call("agent_spawn", within("slow", "deaf", 0)),
                Turn::new().text("Begun."),
                Turn::new().call("agent_spawn", within("slow", "late", 0)),
                Turn::new().text("No."),
            ],
        )
        .agent_on("slow", "gentle", [Turn::new().text("I hang").hang()])
        .agent("slow", [Turn::new().call("deaf", json!({}))]);
    let deaf = tool_fn("deaf", "Never ends", |_, _: serde_json::Map<String, Value>| async {
        std::future::pending::<()>().await;
        Ok::<_, ToolError>("")
    });
    let harness = fleet(model).with_tool(deaf).build().unwrap();
    let session = harness.session("s");
    let run: Vec<_> = session.run("go").unwrap().collect().await;
    assert_eq!(harness.tasks().live(), 2);
    harness.shutdown(ms(100)).await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
    assert_eq!(harness.tasks().live(), 0);
    let mut all = session.subscribe_from(1);
    let events: Vec<_> = std::iter::from_fn(|| all.try_next()).collect();
    laws(&events).unwrap();
    assert_eq!(ends(&events), ["main success", "slow cancelled", "slow cancelled"]);
    assert!(session.tasks().await.unwrap().iter().all(|task| task.status == TaskStatus::Cancelled));
    assert!(run.len() < events.len());
    // No task can begin, and an attempt fails.
    let late = whole(&harness, session.run("more").unwrap()).await;
    assert!(result_of(&late, "call-4").contains("the harness is shutting down"), "{}", render(&late));
}

#[tokio::test(start_paused = true)]
async fn a_fanout_that_takes_too_long_goes_on_in_the_background() {
    let spawns = json!([spawn_args("slow", "short"), spawn_args("slow", "long"), spawn_args("ghost", "boo")]);
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_fanout", json!({ "spawns": spawns, "timeout_seconds": 1 })),
                Turn::new().text("Hm."),
            ],
        )
        .agent_on("slow", "short", [Turn::new().text("quick")])
        .agent("slow", [Turn::new().wait(ms(2000)).text("late")]);
    let harness = fleet(model).build().unwrap();
    let events = whole(&harness, harness.stream_events("go")).await;
    assert_eq!(ends(&events), ["slow success", "main success", "slow success"]);
    let result = result_of(&events, "call-1");
    for part in ["# result 1 of 3", "status: completed", "status: promoted", "unknown agent_id \"ghost\""] {
        assert!(result.contains(part), "{part}: {result}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_out_of_time_is_waited_for_while_there_are_too_many_tasks() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new()
                    .call("agent_spawn", within("slow", "a", 0))
                    .call("agent_spawn", within("slow", "b", 1))
                    .call("agent_spawn", within("slow", "c", 1)),
                Turn::new().text("Begun."),
            ],
        )
        .agent_on("slow", "a", [Turn::new().wait(ms(3_500)).text("gold")])
        .agent_on("slow", "b", [Turn::new().wait(ms(6_000)).text("iron")])
        .agent_on("slow", "c", [Turn::new().wait(ms(2_500)).text("tin")]);
    let harness = fleet(model).with_max_tasks(1).build().unwrap();
    let events = whole(&harness, harness.stream_events("go")).await;
    // Out of time after one second; a slot for one more task is free after three and a half.
    assert!(result_of(&events, "call-2").contains("status: promoted"), "{}", result_of(&events, "call-2"));
    assert!(result_of(&events, "call-3").ends_with("reply:\ntin"), "{}", result_of(&events, "call-3"));
    assert_eq!(
        changes(&events),
        ["task-1 running", "task-1 completed", "task-2 running", "task-2 completed"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_that_can_not_begin_leaves_nothing_behind() {
    let mut labelled = within("slow", "late", 0);
    labelled["label"] = "digger".into();
    let model = ScriptedModel::new().agent(
        "main",
        [
            Turn::new().call("agent_spawn", labelled.clone()),
            Turn::new().call("agent_spawn", labelled),
            Turn::new().text("No."),
        ],
    );
    let harness = fleet(model).build().unwrap();
    let session = harness.session("s");
    harness.shutdown(ms(100)).await;
    let events: Vec<_> = session.run("go").unwrap().collect().await;
    laws(&events).unwrap();
    for call in ["call-1", "call-2"] {
        let result = result_of(&events, call);
        assert!(result.contains("the harness is shutting down"), "the label is free again: {result}");
    }
    assert!(session.children().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_session_is_woken_by_its_tasks() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new()
                    .call("agent_spawn", within("slow", "a", 0))
                    .call("agent_spawn", within("slow", "b", 0)),
                Turn::new().text("Begun."),
                Turn::new().text("The first is there."),
                Turn::new().text("I am told of the other, too."),
            ],
        )
        .agent_on("slow", "a", [Turn::new().wait(ms(50)).text("gold")])
        .agent_on("slow", "b", [Turn::new().wait(ms(90)).text("tin")]);
    let harness = fleet(model).with_on_task_finished(OnTaskFinished::Wake).build().unwrap();
    let session = harness.session("s");
    let mut all = session.subscribe_from(1);
    session.run(RunRequest::new("go").with_user("ann")).unwrap().reply().await.unwrap();
    assert!(session.active().is_none());
    let (mut events, mut roots) = (Vec::new(), 0);
    while roots < 3 {
        let event = all.next().await.unwrap();
        roots += usize::from(event.is_run_end());
        events.push(event);
    }
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    insta::assert_snapshot!(timeline(futures_util::stream::iter(events)).await, @r#"
     0 main AGENT_START main "go"
     0 main MODEL_CALL_START scripted #1
     0 main TOOL_CALL_START agent_spawn (call-1)
     0 main TOOL_CALL_DELTA "{\"agent_id\":\"slow\",\"task\":\"a\",\"timeout_seconds\":0}" (call-1)
     0 main TOOL_CALL_END agent_spawn (call-1)
     0 main TOOL_CALL_START agent_spawn (call-2)
     0 main TOOL_CALL_DELTA "{\"agent_id\":\"slow\",\"task\":\"b\",\"timeout_seconds\":0}" (call-2)
     0 main TOOL_CALL_END agent_spawn (call-2)
     0 main MODEL_CALL_END tool_calls
     0 main TOOL_RESULT_START agent_spawn {"agent_id":"slow","task":"a","timeout_seconds":0} (call-1)
     0 main TOOL_RESULT_START agent_spawn {"agent_id":"slow","task":"b","timeout_seconds":0} (call-2)
     0 main TASK_UPDATED task-1 pending → running
     0   slow#1@task-1 AGENT_START slow "a"
     0   slow#1@task-1 MODEL_CALL_START scripted #1
     0 main TASK_UPDATED task-2 pending → running
     0   slow#2@task-2 AGENT_START slow "b"
     0   slow#2@task-2 MODEL_CALL_START scripted #1
     0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:slow:1\nagent_id: slow\nsession_id: sub-1\nstatus: accepted\ntask_i"… (call-1)
     0 main TOOL_RESULT_END agent_spawn running (call-1)
     0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:slow:2\nagent_id: slow\nsession_id: sub-2\nstatus: accepted\ntask_i"… (call-2)
     0 main TOOL_RESULT_END agent_spawn running (call-2)
     0 main MODEL_CALL_START scripted #2
     0 main TEXT_BLOCK_START
     0 main TEXT_BLOCK_DELTA "Begun."
     0 main TEXT_BLOCK_END
     0 main MODEL_CALL_END stop
     0 main AGENT_RESULT "Begun."
     0 main AGENT_END success 29/29 tok
    50   slow#1@task-1 TEXT_BLOCK_START
    50   slow#1@task-1 TEXT_BLOCK_DELTA "gold"
    50   slow#1@task-1 TEXT_BLOCK_END
    50   slow#1@task-1 MODEL_CALL_END stop
    50   slow#1@task-1 AGENT_RESULT "gold"
    50   slow#1@task-1 AGENT_END success 2/2 tok
    50 main TASK_UPDATED task-1 running → completed
    50 main AGENT_START main ""
    50 main HINT_BLOCK task_delivery "<system-reminder>\nBackground tasks delivered:\n- task_id=task-1, agent=slow, stat"…
    50 main MODEL_CALL_START scripted #1
    50 main TEXT_BLOCK_START
    50 main TEXT_BLOCK_DELTA "The first is there."
    50 main TEXT_BLOCK_END
    50 main MODEL_CALL_END stop
    50 main AGENT_RESULT "The first is there."
    50 main AGENT_END success 41/41 tok
    90   slow#2@task-2 TEXT_BLOCK_START
    90   slow#2@task-2 TEXT_BLOCK_DELTA "tin"
    90   slow#2@task-2 TEXT_BLOCK_END
    90   slow#2@task-2 MODEL_CALL_END stop
    90   slow#2@task-2 AGENT_RESULT "tin"
    90   slow#2@task-2 AGENT_END success 2/2 tok
    90 main TASK_UPDATED task-2 running → completed
    90 main AGENT_START main ""
    90 main HINT_BLOCK task_delivery "<system-reminder>\nBackground tasks delivered:\n- task_id=task-2, agent=slow, stat"…
    90 main MODEL_CALL_START scripted #1
    90 main TEXT_BLOCK_START
    90 main TEXT_BLOCK_DELTA "I am told of the other, too."
    90 main TEXT_BLOCK_END
    90 main MODEL_CALL_END stop
    90 main AGENT_RESULT "I am told of the other, too."
    90 main AGENT_END success 81/81 tok
    "#);
    let said: Vec<_> = session.history().iter().map(|message| message.text()).collect();
    assert_eq!(
        said.iter().filter(|text| text.contains("Background tasks delivered")).count(),
        2,
        "{said:#?}"
    );
    // Everything is delivered: the session waits, and the next run is an ordinary one.
    tokio::time::sleep(ms(60_000)).await;
    assert_eq!(all.try_next().map(|event| event.kind.clone()), None);
    harness.shutdown(ms(100)).await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_detached_run_goes_on_unread() {
    let model = || ScriptedModel::new().agent("main", [Turn::new().pace(ms(10)).say("I think of it")]);
    let harness = fleet(model()).build().unwrap();
    let session = harness.session("s");
    let mut all = session.subscribe_from(1);
    let handle = session.run(RunRequest::new("go").with_buffer(2)).unwrap().detach();
    assert_eq!(handle.outcome().await.unwrap().outcome, Outcome::Success);
    let events: Vec<_> = std::iter::from_fn(|| all.try_next()).collect();
    laws(&events).unwrap();
    assert_eq!(ends(&events), ["main success"]);
    // It can be stopped from the handle, or with everything else.
    for by_handle in [true, false] {
        let harness = fleet(model()).build().unwrap();
        let session = harness.session("s");
        let handle = session.run("go").unwrap().detach();
        tokio::time::sleep(ms(15)).await;
        assert_eq!(session.active().unwrap().id(), handle.id());
        if by_handle {
            handle.cancel();
            assert_eq!(handle.outcome().await.unwrap().outcome, Outcome::Cancelled);
        } else {
            harness.shutdown(ms(100)).await;
            assert_eq!(handle.outcome().await.unwrap().outcome, Outcome::Cancelled);
        }
        let mut all = session.subscribe_from(1);
        let events: Vec<_> = std::iter::from_fn(|| all.try_next()).collect();
        laws(&events).unwrap();
        assert_eq!(ends(&events), ["main cancelled"]);
    }
}
