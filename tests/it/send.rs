//! Messages to children: between turns, during one, from code; closing children, cancelling a
//! subtree.

use mainstem::{event::fold::ROOT, message::AgentKey, model::scripted::Turn, prelude::*};
use mainstem_testing::{laws, render};
use serde_json::{Value, json};

use crate::support::{OpenNow, Spawns, harness, ms, spawn_args};

fn fleet(model: ScriptedModel) -> HarnessBuilder {
    harness(model)
        .with_subagent(AgentSpec::new("kid", "K"))
        .with_subagent(AgentSpec::new("lead", "L").with_tools(["agent_spawn", "lookup"]))
}

fn in_background(agent_id: &str, task: &str) -> Value {
    let mut call = spawn_args(agent_id, task);
    call["timeout_seconds"] = 0.into();
    call
}

fn to_kid(message: &str, mode: &str) -> Value {
    json!({ "agent_key": "agent:kid:1", "message": message, "mode": mode })
}

async fn read(run: Run) -> Vec<AgentEvent> {
    let events: Vec<_> = run.collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events
}

/// Returns the messages of one agent, in order: `<text` in, `>text` out.
fn talk(events: &[AgentEvent], label: &str) -> String {
    let mut talk = String::new();
    for event in events.iter().filter(|event| event.agent_label() == label) {
        talk += &match &event.kind {
            EventKind::AgentStart { input, .. } => format!("<{}\n", input[0].text()),
            EventKind::HintBlock { hint, hint_source, .. } => format!("<{hint_source}: {hint}\n"),
            EventKind::TextBlockStart { .. } => ">".to_owned(),
            EventKind::TextBlockDelta { delta, .. } => delta.clone(),
            EventKind::TextBlockEnd { .. } => "\n".to_owned(),
            _ => continue,
        };
    }
    talk
}

fn result_of(events: &[AgentEvent], call: &str) -> String {
    let text = |event: &AgentEvent| match &event.kind {
        EventKind::ToolResultTextDelta { tool_call_id, delta } if *tool_call_id == *call => {
            Some(delta.clone())
        }
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// Begins a child in the background, and sends to it after 15 ms.
fn sending(mode: &str, child: [Turn; 3]) -> ScriptedModel {
    ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new()
                    .call("agent_spawn", in_background("kid", "go"))
                    .call("lookup", json!({ "word": "x", "takes": 15 })),
                Turn::new().call("agent_send", to_kid("rather blue", mode)),
                Turn::new().call("task_wait", json!({})),
                Turn::new().text("Done."),
            ],
        )
        .agent("kid", child)
}

#[tokio::test(start_paused = true)]
async fn a_message_steers_the_present_turn() {
    let child = [
        Turn::new().pace(ms(10)).say("I paint it red").call("lookup", json!({ "word": "red", "takes": 10 })),
        Turn::new().text("It is blue now."),
        Turn::new().text("unused"),
    ];
    let events = read(fleet(sending("steer", child)).build().unwrap().stream_events("go")).await;
    insta::assert_snapshot!(render(&events), @r#"
     0 main AGENT_START main "go"
     0 main MODEL_CALL_START scripted #1
     0 main TOOL_CALL_START agent_spawn (call-1)
     0 main TOOL_CALL_DELTA "{\"agent_id\":\"kid\",\"task\":\"go\",\"timeout_seconds\":0}" (call-1)
     0 main TOOL_CALL_END agent_spawn (call-1)
     0 main TOOL_CALL_START lookup (call-2)
     0 main TOOL_CALL_DELTA "{\"word\":\"x\",\"takes\":15}" (call-2)
     0 main TOOL_CALL_END lookup (call-2)
     0 main MODEL_CALL_END tool_calls
     0 main TOOL_RESULT_START agent_spawn {"agent_id":"kid","task":"go","timeout_seconds":0} (call-1)
     0 main TOOL_RESULT_START lookup {"word":"x","takes":15} (call-2)
     0 main TOOL_RESULT_TEXT_DELTA "x " (call-2)
     0 main TASK_UPDATED task-1 pending → running
     0   kid#1@task-1 AGENT_START kid "go"
     0   kid#1@task-1 MODEL_CALL_START scripted #1
     0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:1\nagent_id: kid\nsession_id: sub-1\nstatus: accepted\ntask_id:"… (call-1)
     0 main TOOL_RESULT_END agent_spawn running (call-1)
    10   kid#1@task-1 TEXT_BLOCK_START
    10   kid#1@task-1 TEXT_BLOCK_DELTA "I "
    15 main TOOL_RESULT_TEXT_DELTA "found" (call-2)
    15 main TOOL_RESULT_END lookup success (call-2)
    15 main MODEL_CALL_START scripted #2
    15 main TOOL_CALL_START agent_send (call-3)
    15 main TOOL_CALL_DELTA "{\"agent_key\":\"agent:kid:1\",\"message\":\"rather blue\",\"mode\":\"steer\"}" (call-3)
    15 main TOOL_CALL_END agent_send (call-3)
    15 main MODEL_CALL_END tool_calls
    15 main TOOL_RESULT_START agent_send {"agent_key":"agent:kid:1","message":"rather blue","mode":"steer"} (call-3)
    15 main MESSAGE_SENT agent:kid:1 steer "rather blue"
    15 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:1\nstatus: sent\nIt reads the message before its next step; i"… (call-3)
    15 main TOOL_RESULT_END agent_send success (call-3)
    15 main MODEL_CALL_START scripted #3
    15 main TOOL_CALL_START task_wait (call-4)
    15 main TOOL_CALL_DELTA "{}" (call-4)
    15 main TOOL_CALL_END task_wait (call-4)
    15 main MODEL_CALL_END tool_calls
    15 main TOOL_RESULT_START task_wait {} (call-4)
    20   kid#1@task-1 TEXT_BLOCK_DELTA "paint it red" ×3
    50   kid#1@task-1 TEXT_BLOCK_END
    50   kid#1@task-1 TOOL_CALL_START lookup (call-5)
    50   kid#1@task-1 TOOL_CALL_DELTA "{\"word\":\"red\",\"takes\":10}" (call-5)
    50   kid#1@task-1 TOOL_CALL_END lookup (call-5)
    50   kid#1@task-1 MODEL_CALL_END tool_calls
    50   kid#1@task-1 TOOL_RESULT_START lookup {"word":"red","takes":10} (call-5)
    50   kid#1@task-1 TOOL_RESULT_TEXT_DELTA "red " (call-5)
    60   kid#1@task-1 TOOL_RESULT_TEXT_DELTA "found" (call-5)
    60   kid#1@task-1 TOOL_RESULT_END lookup success (call-5)
    60   kid#1@task-1 HINT_BLOCK message "rather blue"
    60   kid#1@task-1 MODEL_CALL_START scripted #2
    60   kid#1@task-1 TEXT_BLOCK_START
    60   kid#1@task-1 TEXT_BLOCK_DELTA "It is blue now."
    60   kid#1@task-1 TEXT_BLOCK_END
    60   kid#1@task-1 MODEL_CALL_END stop
    60   kid#1@task-1 AGENT_RESULT "It is blue now."
    60   kid#1@task-1 AGENT_END success 22/22 tok
    60 main TASK_UPDATED task-1 running → completed
    60 main TOOL_RESULT_TEXT_DELTA "1 of 1 tasks have ended.\n---\ntask_id: task-1\nagent_id: kid\nagent_key: agent:kid:"… (call-4)
    60 main TOOL_RESULT_END task_wait success (call-4)
    60 main MODEL_CALL_START scripted #4
    60 main TEXT_BLOCK_START
    60 main TEXT_BLOCK_DELTA "Done."
    60 main TEXT_BLOCK_END
    60 main MODEL_CALL_END stop
    60 main AGENT_RESULT "Done."
    60 main AGENT_END success 43/65 tok
    "#);
    assert_eq!(talk(&events, "kid"), "<go\n>I paint it red\n<message: rather blue\n>It is blue now.\n");
    let sent = events
        .iter()
        .find(|event| matches!(event.kind, EventKind::MessageSent { mode: SendMode::Steer, .. }));
    assert!(sent.is_some_and(|event| event.reply_id().is_none()), "it belongs to the session");
    assert!(result_of(&events, "call-3").contains("status: sent"), "{}", render(&events));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_with_the_last_word_is_answered_too() {
    let child =
        [Turn::new().pace(ms(10)).say("I paint it red"), Turn::new().text("Blue, then."), Turn::new()];
    let events = read(fleet(sending("steer", child)).build().unwrap().stream_events("go")).await;
    assert_eq!(talk(&events, "kid"), "<go\n>I paint it red\n<message: rather blue\n>Blue, then.\n");
    let ends = events
        .iter()
        .filter(|event| event.agent_label() == "kid" && matches!(event.kind, EventKind::AgentEnd { .. }));
    assert_eq!(ends.count(), 1, "in the same turn");
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_drops_the_model_call_and_keeps_what_was_said() {
    let child =
        [Turn::new().pace(ms(10)).say("I paint it red"), Turn::new().text("Blue, then."), Turn::new()];
    let harness = fleet(sending("interrupt", child)).build().unwrap();
    let run = harness.stream_events("go");
    let session = run.handle().session().clone();
    let events = read(run).await;
    insta::assert_snapshot!(render(&events), @r#"
     0 main AGENT_START main "go"
     0 main MODEL_CALL_START scripted #1
     0 main TOOL_CALL_START agent_spawn (call-1)
     0 main TOOL_CALL_DELTA "{\"agent_id\":\"kid\",\"task\":\"go\",\"timeout_seconds\":0}" (call-1)
     0 main TOOL_CALL_END agent_spawn (call-1)
     0 main TOOL_CALL_START lookup (call-2)
     0 main TOOL_CALL_DELTA "{\"word\":\"x\",\"takes\":15}" (call-2)
     0 main TOOL_CALL_END lookup (call-2)
     0 main MODEL_CALL_END tool_calls
     0 main TOOL_RESULT_START agent_spawn {"agent_id":"kid","task":"go","timeout_seconds":0} (call-1)
     0 main TOOL_RESULT_START lookup {"word":"x","takes":15} (call-2)
     0 main TOOL_RESULT_TEXT_DELTA "x " (call-2)
     0 main TASK_UPDATED task-1 pending → running
     0   kid#1@task-1 AGENT_START kid "go"
     0   kid#1@task-1 MODEL_CALL_START scripted #1
     0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:1\nagent_id: kid\nsession_id: sub-1\nstatus: accepted\ntask_id:"… (call-1)
     0 main TOOL_RESULT_END agent_spawn running (call-1)
    10   kid#1@task-1 TEXT_BLOCK_START
    10   kid#1@task-1 TEXT_BLOCK_DELTA "I "
    15 main TOOL_RESULT_TEXT_DELTA "found" (call-2)
    15 main TOOL_RESULT_END lookup success (call-2)
    15 main MODEL_CALL_START scripted #2
    15 main TOOL_CALL_START agent_send (call-3)
    15 main TOOL_CALL_DELTA "{\"agent_key\":\"agent:kid:1\",\"message\":\"rather blue\",\"mode\":\"interrupt\"}" (call-3)
    15 main TOOL_CALL_END agent_send (call-3)
    15 main MODEL_CALL_END tool_calls
    15 main TOOL_RESULT_START agent_send {"agent_key":"agent:kid:1","message":"rather blue","mode":"interrupt"} (call-3)
    15 main MESSAGE_SENT agent:kid:1 interrupt "rather blue"
    15 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:1\nstatus: sent\nIt stops what it is saying and reads the mes"… (call-3)
    15 main TOOL_RESULT_END agent_send success (call-3)
    15 main MODEL_CALL_START scripted #3
    15 main TOOL_CALL_START task_wait (call-4)
    15 main TOOL_CALL_DELTA "{}" (call-4)
    15 main TOOL_CALL_END task_wait (call-4)
    15 main MODEL_CALL_END tool_calls
    15 main TOOL_RESULT_START task_wait {} (call-4)
    15   kid#1@task-1 TEXT_BLOCK_END
    15   kid#1@task-1 MODEL_CALL_END cancelled
    15   kid#1@task-1 HINT_BLOCK message "rather blue"
    15   kid#1@task-1 MODEL_CALL_START scripted #2
    15   kid#1@task-1 TEXT_BLOCK_START
    15   kid#1@task-1 TEXT_BLOCK_DELTA "Blue, then."
    15   kid#1@task-1 TEXT_BLOCK_END
    15   kid#1@task-1 MODEL_CALL_END stop
    15   kid#1@task-1 AGENT_RESULT "Blue, then."
    15   kid#1@task-1 AGENT_END success 7/7 tok
    15 main TASK_UPDATED task-1 running → completed
    15 main TOOL_RESULT_TEXT_DELTA "1 of 1 tasks have ended.\n---\ntask_id: task-1\nagent_id: kid\nagent_key: agent:kid:"… (call-4)
    15 main TOOL_RESULT_END task_wait success (call-4)
    15 main MODEL_CALL_START scripted #4
    15 main TEXT_BLOCK_START
    15 main TEXT_BLOCK_DELTA "Done."
    15 main TEXT_BLOCK_END
    15 main MODEL_CALL_END stop
    15 main AGENT_RESULT "Done."
    15 main AGENT_END success 44/51 tok
    "#);
    assert_eq!(talk(&events, "kid"), "<go\n>I \n<message: rather blue\n>Blue, then.\n");
    assert_eq!(session.children()[0].turns, 1);
}

#[tokio::test(start_paused = true)]
async fn a_queued_message_begins_a_turn_after_the_present_one() {
    let child =
        [Turn::new().pace(ms(10)).say("I paint it red"), Turn::new().text("Blue, then."), Turn::new()];
    let events = read(fleet(sending("queue", child)).build().unwrap().stream_events("go")).await;
    insta::assert_snapshot!(render(&events), @r#"
     0 main AGENT_START main "go"
     0 main MODEL_CALL_START scripted #1
     0 main TOOL_CALL_START agent_spawn (call-1)
     0 main TOOL_CALL_DELTA "{\"agent_id\":\"kid\",\"task\":\"go\",\"timeout_seconds\":0}" (call-1)
     0 main TOOL_CALL_END agent_spawn (call-1)
     0 main TOOL_CALL_START lookup (call-2)
     0 main TOOL_CALL_DELTA "{\"word\":\"x\",\"takes\":15}" (call-2)
     0 main TOOL_CALL_END lookup (call-2)
     0 main MODEL_CALL_END tool_calls
     0 main TOOL_RESULT_START agent_spawn {"agent_id":"kid","task":"go","timeout_seconds":0} (call-1)
     0 main TOOL_RESULT_START lookup {"word":"x","takes":15} (call-2)
     0 main TOOL_RESULT_TEXT_DELTA "x " (call-2)
     0 main TASK_UPDATED task-1 pending → running
     0   kid#1@task-1 AGENT_START kid "go"
     0   kid#1@task-1 MODEL_CALL_START scripted #1
     0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:1\nagent_id: kid\nsession_id: sub-1\nstatus: accepted\ntask_id:"… (call-1)
     0 main TOOL_RESULT_END agent_spawn running (call-1)
    10   kid#1@task-1 TEXT_BLOCK_START
    10   kid#1@task-1 TEXT_BLOCK_DELTA "I "
    15 main TOOL_RESULT_TEXT_DELTA "found" (call-2)
    15 main TOOL_RESULT_END lookup success (call-2)
    15 main MODEL_CALL_START scripted #2
    15 main TOOL_CALL_START agent_send (call-3)
    15 main TOOL_CALL_DELTA "{\"agent_key\":\"agent:kid:1\",\"message\":\"rather blue\",\"mode\":\"queue\"}" (call-3)
    15 main TOOL_CALL_END agent_send (call-3)
    15 main MODEL_CALL_END tool_calls
    15 main TOOL_RESULT_START agent_send {"agent_key":"agent:kid:1","message":"rather blue","mode":"queue"} (call-3)
    20   kid#1@task-1 TEXT_BLOCK_DELTA "paint it red" ×3
    40   kid#1@task-1 TEXT_BLOCK_END
    40   kid#1@task-1 MODEL_CALL_END stop
    40   kid#1@task-1 AGENT_RESULT "I paint it red"
    40   kid#1@task-1 AGENT_END success 5/5 tok
    40 main TASK_UPDATED task-1 running → completed
    40   kid#1 turn 2 AGENT_START kid "rather blue"
    40   kid#1 turn 2 MODEL_CALL_START scripted #1
    40   kid#1 turn 2 TEXT_BLOCK_START
    40   kid#1 turn 2 TEXT_BLOCK_DELTA "Blue, then."
    40   kid#1 turn 2 TEXT_BLOCK_END
    40   kid#1 turn 2 MODEL_CALL_END stop
    40   kid#1 turn 2 AGENT_RESULT "Blue, then."
    40   kid#1 turn 2 AGENT_END success 10/10 tok
    40 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:1\nagent_id: kid\nsession_id: sub-1\nstatus: completed\nreply:\n"… (call-3)
    40 main TOOL_RESULT_END agent_send success (call-3)
    40 main HINT_BLOCK task_delivery "<system-reminder>\nBackground tasks delivered:\n- task_id=task-1, agent=kid, statu"…
    40 main MODEL_CALL_START scripted #3
    40 main TOOL_CALL_START task_wait (call-4)
    40 main TOOL_CALL_DELTA "{}" (call-4)
    40 main TOOL_CALL_END task_wait (call-4)
    40 main MODEL_CALL_END tool_calls
    40 main TOOL_RESULT_START task_wait {} (call-4)
    40 main TOOL_RESULT_TEXT_DELTA "You have no background task that has not ended." (call-4)
    40 main TOOL_RESULT_END task_wait success (call-4)
    40 main MODEL_CALL_START scripted #4
    40 main TEXT_BLOCK_START
    40 main TEXT_BLOCK_DELTA "Done."
    40 main TEXT_BLOCK_END
    40 main MODEL_CALL_END stop
    40 main AGENT_RESULT "Done."
    40 main AGENT_END success 115/130 tok
    "#);
    assert_eq!(talk(&events, "kid"), "<go\n>I paint it red\n<rather blue\n>Blue, then.\n");
    assert!(result_of(&events, "call-3").ends_with("status: completed\nreply:\nBlue, then."));
}

#[tokio::test(start_paused = true)]
async fn what_can_not_be_queued_in_time_is_not_sent() {
    let mut call = to_kid("rather blue", "queue");
    call["timeout_seconds"] = 1.into();
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", in_background("kid", "go")),
                Turn::new().call("agent_send", call),
                Turn::new().text("Done."),
            ],
        )
        .agent("kid", [Turn::new().wait(ms(5000)).text("Red.")]);
    let options = RunOptions::new().with_background(Background::Wait);
    let events =
        read(fleet(model).build().unwrap().stream_events(RunRequest::new("go").with_options(options))).await;
    assert_eq!(
        result_of(&events, "call-2"),
        "agent:kid:1 is still running, so nothing was sent; send with mode steer or interrupt, or later"
    );
}

#[tokio::test(start_paused = true)]
async fn code_can_steer_and_begin_turns() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().spawn("kid", "go"),
                Turn::new().call("lookup", json!({ "word": "x", "takes": 50 })),
                Turn::new().text("Done."),
            ],
        )
        .agent(
            "kid",
            [
                Turn::new().pace(ms(10)).say("I paint"),
                Turn::new().text("Blue."),
                Turn::new().text("And green."),
            ],
        );
    let harness = fleet(model).build().unwrap();
    let session = harness.session("s");
    let mut run = session.run("go").unwrap();
    let handle = run.handle();
    let key = AgentKey::try_from("agent:kid:1").unwrap();
    assert!(
        handle.send(&key, "early", SendMode::Steer).unwrap_err().to_string().contains("there is no child")
    );
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        match &event.kind {
            EventKind::TextBlockDelta { delta, .. } if delta == "I " => {
                handle.send(&key, "blue", SendMode::Interrupt).unwrap()
            }
            EventKind::ToolResultStart { tool_call_name, .. } if &**tool_call_name == "lookup" => {
                handle.send(&key, "and green", SendMode::Queue).unwrap();
            }
            _ => {}
        }
        events.push(event);
    }
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    assert_eq!(talk(&events, "kid"), "<go\n>I \n<message: blue\n>Blue.\n<and green\n>And green.\n");
    assert!(talk(&events, "main").contains("<task_delivery"), "the root is told");
    let tasks = session.tasks().await.unwrap();
    assert_eq!((tasks.len(), tasks[0].result.as_deref()), (1, Some("And green.")));
}

#[tokio::test(start_paused = true)]
async fn a_closed_child_is_stopped_and_forgotten() {
    let mut labelled = in_background("kid", "go");
    labelled["label"] = "painter".into();
    let by_label = json!({ "label": "painter" });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", labelled.clone()),
                Turn::new().call("agent_close", by_label.clone()),
                Turn::new().call("agent_send", to_kid("more", "queue")).call("agent_close", by_label),
                Turn::new().call("agent_spawn", labelled),
                Turn::new().call("agent_list", json!({})),
                Turn::new().text("Done."),
            ],
        )
        .agent("kid", [Turn::new().text("I").hang()]);
    let harness = fleet(model).build().unwrap();
    let options = RunOptions::new().with_background(Background::Cancel);
    let events = read(harness.stream_events(RunRequest::new("go").with_options(options))).await;
    insta::assert_snapshot!(render(&events), @r#"
    0 main AGENT_START main "go"
    0 main MODEL_CALL_START scripted #1
    0 main TOOL_CALL_START agent_spawn (call-1)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"kid\",\"task\":\"go\",\"timeout_seconds\":0,\"label\":\"painter\"}" (call-1)
    0 main TOOL_CALL_END agent_spawn (call-1)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"kid","task":"go","timeout_seconds":0,"label":"painter"} (call-1)
    0 main TASK_UPDATED task-1 pending → running
    0   kid#1@task-1 AGENT_START kid "go"
    0   kid#1@task-1 MODEL_CALL_START scripted #1
    0   kid#1@task-1 TEXT_BLOCK_START
    0   kid#1@task-1 TEXT_BLOCK_DELTA "I"
    0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:1\nagent_id: kid\nsession_id: sub-1\nstatus: accepted\ntask_id:"… (call-1)
    0 main TOOL_RESULT_END agent_spawn running (call-1)
    0 main MODEL_CALL_START scripted #2
    0 main TOOL_CALL_START agent_close (call-2)
    0 main TOOL_CALL_DELTA "{\"label\":\"painter\"}" (call-2)
    0 main TOOL_CALL_END agent_close (call-2)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_close {"label":"painter"} (call-2)
    0   kid#1@task-1 TEXT_BLOCK_END
    0   kid#1@task-1 MODEL_CALL_END cancelled
    0   kid#1@task-1 AGENT_END cancelled 0/0 tok (agent_cancelled: cancelled by agent `main` (agent `painter` and all below it))
    0 main TASK_UPDATED task-1 running → cancelled
    0 main AGENT_CLOSED agent:kid:1
    0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:1\nstatus: closed" (call-2)
    0 main TOOL_RESULT_END agent_close success (call-2)
    0 main HINT_BLOCK task_delivery "<system-reminder>\nBackground tasks delivered:\n- task_id=task-1, agent=kid, label"…
    0 main MODEL_CALL_START scripted #3
    0 main TOOL_CALL_START agent_send (call-3)
    0 main TOOL_CALL_DELTA "{\"agent_key\":\"agent:kid:1\",\"message\":\"more\",\"mode\":\"queue\"}" (call-3)
    0 main TOOL_CALL_END agent_send (call-3)
    0 main TOOL_CALL_START agent_close (call-4)
    0 main TOOL_CALL_DELTA "{\"label\":\"painter\"}" (call-4)
    0 main TOOL_CALL_END agent_close (call-4)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_send {"agent_key":"agent:kid:1","message":"more","mode":"queue"} (call-3)
    0 main TOOL_RESULT_TEXT_DELTA "agent:kid:1 was closed; start another with agent_spawn" (call-3)
    0 main TOOL_RESULT_END agent_send error (call-3)
    0 main TOOL_RESULT_START agent_close {"label":"painter"} (call-4)
    0 main TOOL_RESULT_TEXT_DELTA "there is no child \"painter\"; known: none" (call-4)
    0 main TOOL_RESULT_END agent_close error (call-4)
    0 main MODEL_CALL_START scripted #4
    0 main TOOL_CALL_START agent_spawn (call-5)
    0 main TOOL_CALL_DELTA "{\"agent_id\":\"kid\",\"task\":\"go\",\"timeout_seconds\":0,\"label\":\"painter\"}" (call-5)
    0 main TOOL_CALL_END agent_spawn (call-5)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_spawn {"agent_id":"kid","task":"go","timeout_seconds":0,"label":"painter"} (call-5)
    0 main TASK_UPDATED task-2 pending → running
    0   kid#2@task-2 AGENT_START kid "go"
    0   kid#2@task-2 MODEL_CALL_START scripted #1
    0   kid#2@task-2 TEXT_BLOCK_START
    0   kid#2@task-2 TEXT_BLOCK_DELTA "I"
    0 main TOOL_RESULT_TEXT_DELTA "agent_key: agent:kid:2\nagent_id: kid\nsession_id: sub-2\nstatus: accepted\ntask_id:"… (call-5)
    0 main TOOL_RESULT_END agent_spawn running (call-5)
    0 main MODEL_CALL_START scripted #5
    0 main TOOL_CALL_START agent_list (call-6)
    0 main TOOL_CALL_DELTA "{}" (call-6)
    0 main TOOL_CALL_END agent_list (call-6)
    0 main MODEL_CALL_END tool_calls
    0 main TOOL_RESULT_START agent_list {} (call-6)
    0 main TOOL_RESULT_TEXT_DELTA "[{\"agent_key\":\"agent:kid:1\",\"agent_id\":\"kid\",\"label\":null,\"title\":\"painter\",\"dep"… (call-6)
    0 main TOOL_RESULT_END agent_list success (call-6)
    0 main MODEL_CALL_START scripted #6
    0 main TEXT_BLOCK_START
    0 main TEXT_BLOCK_DELTA "Done."
    0 main TEXT_BLOCK_END
    0 main MODEL_CALL_END stop
    0   kid#2@task-2 TEXT_BLOCK_END
    0   kid#2@task-2 MODEL_CALL_END cancelled
    0   kid#2@task-2 AGENT_END cancelled 0/0 tok (run_ended: cancelled by the end of the run)
    0 main TASK_UPDATED task-2 running → cancelled
    0 main AGENT_RESULT "Done."
    0 main AGENT_END success 220/220 tok
    "#);
    assert_eq!(result_of(&events, "call-2"), "agent_key: agent:kid:1\nstatus: closed");
    assert_eq!(result_of(&events, "call-3"), "agent:kid:1 was closed; start another with agent_spawn");
    assert!(result_of(&events, "call-4").starts_with("there is no child \"painter\""));
    assert!(result_of(&events, "call-5").contains("status: accepted"), "the label is free");
    let list = result_of(&events, "call-6");
    assert!(list.contains("\"status\":\"closed\"") && list.contains("\"task_id\":\"task-2\""), "{list}");
}

#[tokio::test(start_paused = true)]
async fn a_subtree_is_stopped_and_its_siblings_go_on() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("lead", "left").spawn("lead", "right"), Turn::new().text("Done.")])
        .agent_on(
            "lead",
            "left",
            [Turn::new()
                .call("agent_spawn", in_background("kid", "a"))
                .call("agent_spawn", spawn_args("kid", "b"))],
        )
        .agent("lead", [Turn::new().spawn("kid", "c"), Turn::new().text("Right.")])
        .agent_on("kid", "c", [Turn::new().pace(ms(10)).say("It goes on and on")])
        .agent("kid", [Turn::new().text("I hang").hang()]);
    let harness = fleet(model).build().unwrap();
    let mut run = harness.stream_events("go");
    let handle = run.handle();
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        if matches!(&event.kind, EventKind::TextBlockDelta { delta, .. } if delta == "on ") {
            handle.cancel_agent(&AgentKey::try_from("agent:lead:1").unwrap());
        }
        events.push(event);
    }
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let mut ends: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::AgentEnd { outcome, .. } => {
                Some(format!("{} {}", event.agent_key().map_or("main", |key| key.as_str()), outcome.as_str()))
            }
            _ => None,
        })
        .collect();
    ends.sort();
    assert_eq!(
        ends,
        [
            "agent:kid:1 cancelled",
            "agent:kid:2 success",
            "agent:kid:3 cancelled",
            "agent:lead:1 cancelled",
            "agent:lead:2 success",
            "main success"
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_messages_at_once_none_is_lost() {
    let turns = (0..40).map(|n| Turn::new().text(format!("{n}")));
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("kid", "go"), Turn::new().text("Done.")])
        .agent("kid", std::iter::once(Turn::new().text("Hi")).chain(turns));
    let harness = fleet(model).build().unwrap();
    let session = harness.session("s");
    let _: Vec<_> = session.run("go").unwrap().collect().await;
    let key = session.children()[0].agent_key.clone();
    let mut events = session.subscribe_from(1);
    for n in 0..40 {
        session.send(&key, format!("message {n}"), SendMode::Queue).unwrap();
    }
    let mut heard = std::collections::BTreeSet::new();
    while heard.len() < 41 {
        let event = tokio::time::timeout(ms(20_000), events.next()).await;
        let event = event.unwrap_or_else(|_| panic!("only {heard:?}")).unwrap();
        if let EventKind::AgentStart { input, .. } = &event.kind
            && !event.is_root()
        {
            heard.insert(input.last().unwrap().text());
        }
    }
    harness.shutdown(ms(1000)).await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_code_begins_is_on_the_same_behalf() {
    let whoami =
        tool_fn("whoami", "For whom", |cx: ToolContext, _: serde_json::Map<String, Value>| async move {
            Ok::<_, ToolError>(format!("{:?} {}", cx.user(), Value::Object(cx.attributes().clone())))
        });
    let ask = || Turn::new().call("whoami", json!({}));
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("kid", "go"), Turn::new().text("Done.")])
        .agent("kid", [ask(), Turn::new().text("Hi"), ask(), Turn::new().text("Again")]);
    let harness = fleet(model).with_tool(whoami).build().unwrap();
    let session = harness.session("s");
    let mut options = RunOptions::new().with_user("ann");
    options.attributes.insert("project".to_owned(), "x".into());
    let _: Vec<_> = session.run(RunRequest::new("go").with_options(options)).unwrap().collect().await;
    let key = session.children()[0].agent_key.clone();
    session.send(&key, "more", SendMode::Queue).unwrap();
    while session.tasks().await.unwrap().iter().all(|task| task.result.is_none()) {
        tokio::time::sleep(ms(10)).await;
    }
    let mut log = session.subscribe_from(1);
    let events: Vec<_> = std::iter::from_fn(|| log.try_next()).collect();
    laws(&events).unwrap();
    let said = |event: &AgentEvent| match &event.kind {
        EventKind::ToolResultTextDelta { delta, .. } if !event.is_root() => Some(delta.clone()),
        _ => None,
    };
    let said: Vec<_> = events.iter().filter_map(said).collect();
    assert_eq!(said, [r#"Some("ann") {"project":"x"}"#; 2]);
}

/// A lead that looks something up, and answers what it is told meanwhile.
fn lead(last: &str) -> ScriptedModel {
    ScriptedModel::new().agent(
        "main",
        [
            Turn::new()
                .pace(ms(10))
                .say("I paint it red")
                .call("lookup", json!({ "word": "red", "takes": 5 })),
            Turn::new().text(last),
            Turn::new().text("Green."),
        ],
    )
}

#[tokio::test(start_paused = true)]
async fn the_leading_agent_reads_a_message_within_its_turn() {
    let root = AgentKey::from_lossy(ROOT);
    let check = async |mode: SendMode, expected: &str| {
        let harness = fleet(lead("Blue, then.")).build().unwrap();
        let session = harness.session("s");
        let mut run = session.run("go").unwrap();
        let handle = run.handle();
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            if matches!(&event.kind, EventKind::TextBlockDelta { delta, .. } if delta == "I ") {
                handle.send(&root, "rather blue", mode).unwrap();
            }
            events.push(event);
        }
        laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
        assert_eq!(talk(&events, "main"), expected, "{}", render(&events));
        let sent = events.iter().filter(|event| matches!(event.kind, EventKind::MessageSent { .. }));
        assert_eq!(sent.count(), 1);
        // The conversation of the next run has the message, too.
        assert_eq!(session.run("And?").unwrap().reply().await.unwrap().text(), "Green.");
        let told = session.history().iter().any(|message| message.text() == "rather blue");
        assert!(told, "{:?}", session.history());
    };
    check(SendMode::Steer, "<go\n>I paint it red\n<message: rather blue\n>Blue, then.\n").await;
    check(SendMode::Interrupt, "<go\n>I \n<message: rather blue\n>Blue, then.\n").await;
}

#[tokio::test(start_paused = true)]
async fn a_message_that_a_cancelled_turn_has_not_read_comes_before_the_next_question() {
    let root = AgentKey::from_lossy(ROOT);
    let check = async |resumes: bool, expected: &str| {
        let model = ScriptedModel::new().agent(
            "main",
            [
                Turn::new().text("I ").wait(ms(5000)).text("paint"),
                Turn::new().text("4."),
                Turn::new().text("5."),
            ],
        );
        let session = fleet(model).build().unwrap().session("s");
        let mut run = session.run("go").unwrap();
        let handle = run.handle();
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            if matches!(&event.kind, EventKind::TextBlockDelta { .. }) {
                handle.send(&root, "hurry", SendMode::Steer).unwrap();
                handle.cancel();
            }
            events.push(event);
        }
        if resumes {
            events.extend(read(session.resume(RunOptions::new()).unwrap()).await);
        }
        events.extend(read(session.run("2 + 2?").unwrap()).await);
        laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
        assert_eq!(talk(&events, "main"), expected, "{}", render(&events));
        let texts: Vec<_> = session.history().iter().map(|message| message.text()).collect();
        let order = ["go", "hurry", "2 + 2?"].map(|said| texts.iter().position(|text| text == said).unwrap());
        assert!(order.is_sorted(), "{texts:?}");
        assert_eq!(texts.iter().filter(|text| *text == "hurry").count(), 1, "{texts:?}");
    };
    check(false, "<go\n>I \n<hurry\n>4.\n").await;
    check(true, "<go\n>I \n<hurry\n>4.\n<2 + 2?\n>5.\n").await;
}

#[tokio::test(start_paused = true)]
async fn a_message_to_a_run_that_starts_comes_after_its_input() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Blue.")]);
    let session = fleet(model).build().unwrap().session("s");
    let run = session.run("go").unwrap();
    run.handle().send(&AgentKey::from_lossy(ROOT), "rather blue", SendMode::Steer).unwrap();
    let events = read(run).await;
    assert_eq!(talk(&events, "main"), "<go\n<message: rather blue\n>Blue.\n", "{}", render(&events));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_a_tool_does_not_take_messages_of_its_caller() {
    let poet = ScriptedModel::named("poet-model").agent("poet", [Turn::new().text("Roses are red.")]);
    let poet = Agent::builder("poet", poet).build().unwrap().into_tool("Writes a verse");
    let answer = Turn::new().call("poet", json!({ "task": "roses" })).wait(ms(100));
    let model = ScriptedModel::new().agent("main", [answer, Turn::new().text("Blue, then.")]);
    let mut run = fleet(model).with_tool(poet).build().unwrap().session("s").run("go").unwrap();
    let handle = run.handle();
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        if matches!(event.kind, EventKind::ToolCallEnd { .. }) {
            handle.send(&AgentKey::from_lossy(ROOT), "rather blue", SendMode::Steer).unwrap();
        }
        events.push(event);
    }
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    assert_eq!(talk(&events, "poet"), "<roses\n>Roses are red.\n", "{}", render(&events));
    assert_eq!(talk(&events, "main"), "<go\n<message: rather blue\n>Blue, then.\n", "{}", render(&events));
}

#[tokio::test(start_paused = true)]
async fn a_message_with_the_leading_agents_last_word_is_answered_in_the_same_run() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().pace(ms(10)).say("I paint it red"), Turn::new().text("Blue, then.")]);
    let harness = fleet(model).build().unwrap();
    let mut run = harness.session("s").run("go").unwrap();
    let handle = run.handle();
    let mut reply = None;
    while let Some(event) = run.next().await {
        match &event.kind {
            EventKind::TextBlockDelta { delta, .. } if delta == "I " => {
                handle.send(&AgentKey::from_lossy(ROOT), "blue", SendMode::Steer).unwrap();
            }
            EventKind::AgentResult { result } => reply = Some(result.text()),
            _ => {}
        }
    }
    assert_eq!(reply.as_deref(), Some("Blue, then."));
}

#[tokio::test(start_paused = true)]
async fn the_leading_agent_is_told_within_a_run_only() {
    let harness = fleet(lead("Red.")).build().unwrap();
    let session = harness.session("s");
    let root = AgentKey::from_lossy(ROOT);
    let refused = |mode| session.send(&root, "blue", mode).unwrap_err().to_string();
    let expected =
        "the leading agent reads messages within a running turn only; begin a run for its next turn";
    assert_eq!(refused(SendMode::Steer), expected);
    let run = session.run("go").unwrap();
    assert_eq!(refused(SendMode::Queue), expected);
    drop(run);
}
