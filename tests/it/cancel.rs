//! Stopping: drop, cancel, and what is left behind.

use mainstem::{model::scripted::Turn, prelude::*};
use mainstem_testing::{laws, render, timeline};
use serde_json::json;

use crate::support::{OpenNow, Spawns, harness, ms};

fn fleet() -> Harness {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [Turn::new().text("I ask.").spawn("a", "x").spawn("b", "y"), Turn::new().text("Done.")],
        )
        .agent("a", [Turn::new().pace(ms(10)).say("one two three four")])
        .agent(
            "b",
            [
                Turn::new().text("Wait.").call("lookup", json!({ "word": "w", "takes": 500 })),
                Turn::new().text("Late."),
            ],
        );
    harness(model)
        .with_subagent(AgentSpec::new("a", "A"))
        .with_subagent(AgentSpec::new("b", "B"))
        .build()
        .unwrap()
}

/// Returns the events that the session has recorded.
fn recorded(session: &Session) -> Vec<AgentEvent> {
    let mut cursor = session.log().subscribe_from(1);
    std::iter::from_fn(|| cursor.try_next()).collect()
}

#[tokio::test(start_paused = true)]
async fn drop_in_the_middle_closes_every_agent() {
    let session = fleet().session("s");
    let mut run = session.run("go").unwrap();
    while let Some(event) = run.next().await {
        if matches!(&event.kind, EventKind::TextBlockDelta { delta, .. } if delta == "two ") {
            break;
        }
    }
    drop(run);
    let events = recorded(&session);
    laws(&events).unwrap();
    insta::assert_snapshot!(render(&events), @r#"
     0 main AGENT_START main "go"
     0 main MODEL_CALL_START scripted #1
     0 main TEXT_BLOCK_START
     0 main TEXT_BLOCK_DELTA "I ask."
     0 main TEXT_BLOCK_END
     0 main TOOL_CALL_START agent_spawn (call-1)
     0 main TOOL_CALL_DELTA "{\"agent_id\":\"a\",\"task\":\"x\"}" (call-1)
     0 main TOOL_CALL_END agent_spawn (call-1)
     0 main TOOL_CALL_START agent_spawn (call-2)
     0 main TOOL_CALL_DELTA "{\"agent_id\":\"b\",\"task\":\"y\"}" (call-2)
     0 main TOOL_CALL_END agent_spawn (call-2)
     0 main MODEL_CALL_END tool_calls
     0 main TOOL_RESULT_START agent_spawn {"agent_id":"a","task":"x"} (call-1)
     0   a#1 AGENT_START a "x"
     0   a#1 MODEL_CALL_START scripted #1
     0 main TOOL_RESULT_START agent_spawn {"agent_id":"b","task":"y"} (call-2)
     0   b#1 AGENT_START b "y"
     0   b#1 MODEL_CALL_START scripted #1
     0   b#1 TEXT_BLOCK_START
     0   b#1 TEXT_BLOCK_DELTA "Wait."
     0   b#1 TEXT_BLOCK_END
     0   b#1 TOOL_CALL_START lookup (call-3)
     0   b#1 TOOL_CALL_DELTA "{\"word\":\"w\",\"takes\":500}" (call-3)
     0   b#1 TOOL_CALL_END lookup (call-3)
     0   b#1 MODEL_CALL_END tool_calls
     0   b#1 TOOL_RESULT_START lookup {"word":"w","takes":500} (call-3)
     0   b#1 TOOL_RESULT_TEXT_DELTA "w " (call-3)
    10   a#1 TEXT_BLOCK_START
    10   a#1 TEXT_BLOCK_DELTA "one two " ×2
    20   a#1 TEXT_BLOCK_END
    20   a#1 MODEL_CALL_END cancelled
    20   a#1 AGENT_END cancelled 0/0 tok (dropped: the stream was dropped before the agent had ended)
    20   b#1 TOOL_RESULT_END lookup interrupted (call-3)
    20   b#1 AGENT_END cancelled 9/9 tok (dropped: the stream was dropped before the agent had ended)
    20 main TOOL_RESULT_TEXT_DELTA "interrupted before it ended" (call-1)
    20 main TOOL_RESULT_END agent_spawn interrupted (call-1)
    20 main TOOL_RESULT_TEXT_DELTA "interrupted before it ended" (call-2)
    20 main TOOL_RESULT_END agent_spawn interrupted (call-2)
    20 main AGENT_END cancelled 16/25 tok (dropped: the stream was dropped before the agent had ended)
    "#);
    let said: Vec<_> = session.history().iter().map(|message| message.role).collect();
    assert_eq!(said, [Role::User, Role::Assistant, Role::Tool], "the history can go on from here");
}

#[tokio::test(start_paused = true)]
async fn cancel_is_acknowledged_and_keeps_the_partial_text() {
    let run = fleet().stream_events("go");
    let handle = run.handle();
    let watched = run.inspect(move |event| {
        if matches!(&event.kind, EventKind::TextBlockDelta { delta, .. } if delta == "two ") {
            handle.cancel();
        }
    });
    insta::assert_snapshot!(timeline(watched).await, @r#"
      0 main AGENT_START main "go"
      0 main MODEL_CALL_START scripted #1
      0 main TEXT_BLOCK_START
      0 main TEXT_BLOCK_DELTA "I ask."
      0 main TEXT_BLOCK_END
      0 main TOOL_CALL_START agent_spawn (call-1)
      0 main TOOL_CALL_DELTA "{\"agent_id\":\"a\",\"task\":\"x\"}" (call-1)
      0 main TOOL_CALL_END agent_spawn (call-1)
      0 main TOOL_CALL_START agent_spawn (call-2)
      0 main TOOL_CALL_DELTA "{\"agent_id\":\"b\",\"task\":\"y\"}" (call-2)
      0 main TOOL_CALL_END agent_spawn (call-2)
      0 main MODEL_CALL_END tool_calls
      0 main TOOL_RESULT_START agent_spawn {"agent_id":"a","task":"x"} (call-1)
      0   a#1 AGENT_START a "x"
      0   a#1 MODEL_CALL_START scripted #1
      0 main TOOL_RESULT_START agent_spawn {"agent_id":"b","task":"y"} (call-2)
      0   b#1 AGENT_START b "y"
      0   b#1 MODEL_CALL_START scripted #1
      0   b#1 TEXT_BLOCK_START
      0   b#1 TEXT_BLOCK_DELTA "Wait."
      0   b#1 TEXT_BLOCK_END
      0   b#1 TOOL_CALL_START lookup (call-3)
      0   b#1 TOOL_CALL_DELTA "{\"word\":\"w\",\"takes\":500}" (call-3)
      0   b#1 TOOL_CALL_END lookup (call-3)
      0   b#1 MODEL_CALL_END tool_calls
      0   b#1 TOOL_RESULT_START lookup {"word":"w","takes":500} (call-3)
      0   b#1 TOOL_RESULT_TEXT_DELTA "w " (call-3)
     10   a#1 TEXT_BLOCK_START
     10   a#1 TEXT_BLOCK_DELTA "one two " ×2
     20   a#1 TEXT_BLOCK_END
     20   a#1 MODEL_CALL_END cancelled
     20   a#1 AGENT_END cancelled 0/0 tok (cancelled_by_user: cancelled by the user)
     20 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:a:1\nagent_id: a\nsession_id: sub-1\nstatus: cancelled\nerror: canc"… (call-1)
     20 main TOOL_RESULT_END agent_spawn error (call-1)
    500   b#1 TOOL_RESULT_TEXT_DELTA "found" (call-3)
    500   b#1 TOOL_RESULT_END lookup success (call-3)
    500   b#1 AGENT_END cancelled 9/9 tok (cancelled_by_user: cancelled by the user)
    500 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:b:1\nagent_id: b\nsession_id: sub-2\nstatus: cancelled\nerror: canc"… (call-2)
    500 main TOOL_RESULT_END agent_spawn error (call-2)
    500 main AGENT_END cancelled 16/25 tok (cancelled_by_user: cancelled by the user)
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ignores_cancel_is_dropped_after_its_grace() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("lookup", json!({ "word": "w", "takes": 600_000 }))]);
    let run = harness(model).build().unwrap().stream_events("go");
    let handle = run.handle();
    let before = tokio::time::Instant::now();
    let (events, ()) = futures_util::join!(run.collect::<Vec<_>>(), async {
        tokio::time::sleep(ms(100)).await;
        handle.cancel();
    });
    laws(&events).unwrap();
    assert_eq!(before.elapsed(), ms(2100), "the grace is two seconds");
    let EventKind::AgentEnd { outcome, .. } = &events[events.len() - 1].kind else { panic!("no ending") };
    assert_eq!(*outcome, Outcome::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_never_polled_did_nothing() {
    let session = fleet().session("s");
    drop(session.run("go").unwrap());
    assert_eq!(session.log().last_seq(), 0);
}

/// Drops the run after every event: the laws hold each time, and no agent continues.
#[tokio::test(start_paused = true)]
async fn drop_after_every_event_leaves_a_lawful_log() {
    let whole = fleet().stream_events("go").count().await;
    for taken in 0..=whole {
        let session = fleet().session("s");
        let run = session.run("go").unwrap();
        assert_eq!(run.take(taken).count().await, taken);
        let before = session.log().last_seq();
        tokio::time::sleep(ms(10_000)).await;
        assert_eq!(session.log().last_seq(), before, "an agent continues after {taken} events");
        laws(&recorded(&session)).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn cancel_after_every_event_ends_every_agent_once() {
    let whole = fleet().stream_events("go").count().await;
    for at in 0..whole {
        let run = fleet().stream_events("go");
        let handle = run.handle();
        let mut seen = 0;
        let events: Vec<_> = run
            .inspect(|_| {
                seen += 1;
                if seen == at {
                    handle.cancel();
                }
            })
            .collect()
            .await;
        laws(&events).unwrap_or_else(|broken| panic!("cancel after {at}: {broken}\n{}", render(&events)));
    }
}
