//! What each event becomes.

use std::sync::Arc;

use mainstem_event::{AgentEvent, EventKind, EventSource, Origin, Outcome, Rollup, Timestamp};
use mainstem_message::{Message, Role, StopReason, ToolCallId, ToolState, Usage};

use super::Fleet;
use crate::Encoder;

fn source() -> Arc<EventSource> {
    Arc::new(EventSource {
        agent_key: "agent:kid:1".parse().unwrap(),
        agent_id: "kid".into(),
        agent_name: None,
        label: Some("left".into()),
        title: Some("left".into()),
        session_id: "sub-1".parse().unwrap(),
        parent_session_id: "s".parse().unwrap(),
        depth: 1,
        path: "s/kid".into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: Some(ToolCallId::new("call-1")),
        stream_id: 4,
    })
}

fn event(is_child: bool, kind: EventKind) -> AgentEvent {
    let origin = Origin {
        session_id: "s".parse().unwrap(),
        run_id: Some("run-1".parse().unwrap()),
        reply_id: Some("reply-1".parse().unwrap()),
        source: is_child.then(source),
        root_id: None,
    };
    AgentEvent::new(7, Timestamp::default(), Arc::new(origin), kind)
}

/// Returns the frames of these events without their ids.
fn encoded(encoder: &mut Fleet, is_child: bool, kinds: impl IntoIterator<Item = EventKind>) -> String {
    let mut out = String::new();
    for kind in kinds {
        let frames = String::from_utf8(encoder.event(&event(is_child, kind)).to_vec()).unwrap();
        out += &frames
            .replace("id: 7\n", "")
            .replace("event: ", "")
            .replace("\ndata: ", " ")
            .replace("\n\n", "\n");
    }
    out
}

fn start(input: &str) -> EventKind {
    EventKind::agent_start("kid", Role::Assistant, vec![Arc::new(Message::user(input))])
}

fn text(delta: &str) -> EventKind {
    EventKind::TextBlockDelta { block_id: "b".parse().unwrap(), delta: delta.to_owned() }
}

fn call_end() -> EventKind {
    EventKind::model_call_end(StopReason::Stop, 5).with_usage(Usage::new(3, 2))
}

#[test]
fn a_turn_of_a_child_is_a_slot() {
    let mut fleet = Fleet::new();
    let result = Arc::new(Message::assistant("Hi there"));
    let kinds = [
        start("go"),
        EventKind::model_call_start("m", 1),
        text("Hi"),
        call_end(),
        EventKind::tool_result_end(ToolCallId::new("call-2"), "search", ToolState::Error, 9),
        EventKind::AgentResult { result },
        EventKind::agent_end(Outcome::Success, Rollup::default(), 30),
    ];
    insta::assert_snapshot!(encoded(&mut fleet, true, kinds), @r#"
    stream_start {"agent_key":"agent:kid:1","label":"left","title":"left","tool_call_id":"call-1","agent":"kid","stream_id":4,"depth":1}
    agent_start {"agent":"kid","stream_id":4,"depth":1}
    text {"delta":"Hi","agent":"kid","stream_id":4,"depth":1}
    token_usage {"model":"m","input_tokens":3,"output_tokens":2,"cache_read_tokens":0,"cache_create_tokens":0,"agent":"kid","stream_id":4,"depth":1}
    tool_call {"tool":"search","ok":false,"id":"call-2","state":"error","duration_ms":9,"agent":"kid","stream_id":4,"depth":1}
    sub_agent_response {"content":"Hi there","agent":"kid","stream_id":4,"depth":1}
    stream_end {"ok":true,"outcome":"success","error":null,"agent":"kid","stream_id":4,"depth":1}
    "#);
    assert!(fleet.open.is_empty());
}

#[test]
fn the_leading_agent_begins_and_ends_the_stream() {
    let mut fleet = Fleet::new();
    let long = "x".repeat(300);
    let kinds = [
        start(&long),
        EventKind::model_call_start("m", 1),
        text("I ask."),
        EventKind::ToolCallStart {
            tool_call_id: ToolCallId::new("call-1"),
            tool_call_name: "agent_spawn".into(),
        },
        call_end(),
    ];
    insta::assert_snapshot!(encoded(&mut fleet, false, kinds), @r#"
    request_received {"request_id":"run-1","conversation_id":"s","agent":"main","message":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"}
    stream_start {"agent":"main","stream_id":0,"depth":0}
    text {"delta":"→ delegating: agent_spawn\n","withheld":"I ask.","agent":"main","stream_id":0,"depth":0}
    token_usage {"model":"m","input_tokens":3,"output_tokens":2,"cache_read_tokens":0,"cache_create_tokens":0,"agent":"main","stream_id":0,"depth":0}
    "#);
    encoded(&mut fleet, true, [start("go")]);
    let kinds = [
        EventKind::model_call_start("m", 2),
        text("All "),
        text("done."),
        EventKind::agent_end(Outcome::Success, Rollup::default(), 30),
    ];
    insta::assert_snapshot!(encoded(&mut fleet, false, kinds), @r#"
    text {"delta":"All done.","agent":"main","stream_id":0,"depth":0}
    stream_end {"agent":"kid","stream_id":4,"depth":1,"ok":true,"detached":true}
    stream_end {"ok":true,"outcome":"success","error":null,"agent":"main","stream_id":0,"depth":0}
    done {"ok":true,"content":"","input_tokens":0,"output_tokens":0,"request_id":"run-1","conversation_id":"s","duration_ms":30,"error":null,"error_code":null}
    "#);
}

#[test]
fn a_turn_whose_beginning_is_not_known_gets_a_slot_once() {
    let mut fleet = Fleet::new();
    insta::assert_snapshot!(encoded(&mut fleet, true, [text("a"), text("b")]), @r#"
    stream_start {"resumed":true,"agent":"kid","stream_id":4,"depth":1}
    text {"delta":"a","agent":"kid","stream_id":4,"depth":1}
    text {"delta":"b","agent":"kid","stream_id":4,"depth":1}
    "#);
}

#[test]
fn without_the_gate_prose_is_live() {
    let mut fleet = Fleet::new().with_gate(false);
    assert!(encoded(&mut fleet, false, [text("I ask.")]).contains("I ask."));
}
