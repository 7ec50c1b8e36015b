//! Whatever happens in a session, the frames keep the protocol's order, and a client that goes on
//! after any of them has read the same.

use std::{collections::BTreeSet, sync::Arc};

use mainstem_event::{AgentEvent, EventKind, EventSource, Origin, Outcome, Rollup, Timestamp};
use mainstem_message::{Message, Role, StopReason, ToolCall, ToolCallId, ToolState};
use mainstem_sse::{Decoder, SseEvent};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::Encoder;

/// Returns an event of the leader (0), or of an agent below it: 1 and 2 are children, 3 is below 1.
fn event(seq: u64, agent: u8, kind: EventKind) -> AgentEvent {
    let session =
        |agent: u8| if agent == 0 { "s".parse().unwrap() } else { format!("sub-{agent}").parse().unwrap() };
    let source = (agent > 0).then(|| {
        Arc::new(EventSource {
            agent_key: format!("agent:far:{agent}").parse().unwrap(),
            agent_id: "far".into(),
            agent_name: None,
            label: None,
            title: None,
            session_id: session(agent),
            parent_session_id: session(if agent == 3 { 1 } else { 0 }),
            depth: if agent == 3 { 2 } else { 1 },
            path: "s/far".into(),
            task_id: None,
            turn: 1,
            parent_tool_call_id: Some(ToolCallId::new(format!("call-{agent}"))),
            stream_id: agent.into(),
        })
    });
    let origin = Origin {
        session_id: session(0),
        run_id: Some("run-1".parse().unwrap()),
        reply_id: Some(format!("reply-{agent}").parse().unwrap()),
        source,
        root_id: None,
    };
    AgentEvent::new(seq, Timestamp::default(), Arc::new(origin), kind)
}

fn options(modes: &[StreamMode], position: Option<FrameId>) -> LangGraphOptions {
    let mut options = LangGraphOptions::new("run-1", "s", "main");
    options.modes = modes.iter().copied().collect();
    options.subgraphs = true;
    options.announces = position.is_none();
    options.position = position;
    options
}

/// Encodes events, and decodes the frames.
fn read(events: &[AgentEvent], mut encoder: impl Encoder) -> Vec<SseEvent> {
    let mut bytes = encoder.begin().to_vec();
    events.iter().for_each(|event| bytes.extend_from_slice(&encoder.event(event)));
    bytes.extend_from_slice(&encoder.keep_alive());
    bytes.extend_from_slice(&encoder.end());
    let (mut decoder, mut frames, mut rest) = (Decoder::new(), Vec::new(), bytes.as_slice());
    while let Some(frame) = decoder.decode(&mut rest).unwrap() {
        frames.push(frame);
    }
    frames
}

/// Returns an event of each kind that may come more than once.
fn others() -> Vec<EventKind> {
    EventKind::examples().into_iter().filter(|kind| kind.name() != "AGENT_START").collect()
}

fn kind() -> impl Strategy<Value = EventKind> {
    let call = prop::sample::select(&["c1", "c2"][..]);
    let named = (call, prop::sample::select(&["agent_spawn", "echo"][..]));
    prop_oneof![
        2 => prop::sample::select(others()),
        1 => Just(EventKind::model_call_start("m", 1)),
        3 => "[a-z ]{1,4}".prop_map(|delta| EventKind::TextBlockDelta { block_id: "b".parse().unwrap(), delta }),
        1 => Just(EventKind::model_call_end(StopReason::Stop, 0)),
        3 => named.prop_flat_map(|(id, name)| {
            let tool_call_id = ToolCallId::new(id);
            prop::sample::select(vec![
                EventKind::ToolCallStart { tool_call_id: tool_call_id.clone(), tool_call_name: name.into() },
                EventKind::ToolCallDelta { tool_call_id: tool_call_id.clone(), delta: "{\"task\":\"t\"}".to_owned() },
                EventKind::ToolCallEnd { tool_call_id: tool_call_id.clone(), tool_call_name: name.into(), opaque: Default::default(), discarded: false },
                EventKind::tool_result_start(tool_call_id.clone(), name, Value::Null),
                EventKind::ToolResultTextDelta { tool_call_id: tool_call_id.clone(), delta: "r".to_owned() },
                EventKind::tool_result_end(tool_call_id, name, ToolState::Success, 0),
            ])
        }),
    ]
}

fn session() -> impl Strategy<Value = Vec<AgentEvent>> {
    prop::collection::vec((0..4_u8, kind()), 1..40).prop_map(|all| {
        let end = (0, EventKind::agent_end(Outcome::Success, Rollup::default(), 0));
        let all = (0..4).map(|agent| (agent, start())).chain(all).chain([end]);
        (1..).zip(all).map(|(seq, (agent, kind))| event(seq, agent, kind)).collect()
    })
}

fn start() -> EventKind {
    EventKind::agent_start("far", Role::Assistant, vec![Arc::new(Message::user("go"))])
}

fn position(id: &str) -> FrameId {
    FrameId::parse(id).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn frames_are_in_order(events in session()) {
        let frames = read(&events, LangGraph::new(options(&StreamMode::ALL, None)));
        prop_assert_eq!(&*frames[0].event, "metadata");
        let last = &frames[frames.len() - 1].event;
        prop_assert!(matches!(&**last, "end" | "error"));
        prop_assert!(frames[1..frames.len() - 1].iter().all(|frame| !matches!(&*frame.event, "end" | "error" | "metadata")));
        let ids: Vec<_> = frames[1..frames.len() - 1].iter().map(|frame| position(frame.id.as_ref().unwrap())).collect();
        prop_assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", ids);
        let (mut announced, mut complete) = (BTreeSet::new(), BTreeSet::new());
        for frame in &frames {
            let data: Value = serde_json::from_str(&frame.data).unwrap();
            match &*frame.event {
                "messages/metadata" => announced.extend(data.as_object().unwrap().keys().cloned()),
                "messages/partial" | "messages/complete" => {
                    let id = data[0]["id"].as_str().unwrap().to_owned();
                    prop_assert!(announced.contains(&id), "{}", id);
                    prop_assert!(frame.event == "messages/complete" || !complete.contains(&id));
                    if frame.event == "messages/complete" {
                        complete.insert(id);
                    }
                }
                event if event.starts_with("messages") => {
                    let namespace = event.split_once('|').map_or("", |(_, namespace)| namespace);
                    prop_assert_eq!(&data[1]["langgraph_checkpoint_ns"], namespace);
                    prop_assert!(data[0]["id"].is_string() && data[0]["type"].is_string());
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_stream_goes_on_after_any_frame(events in session(), place in any::<prop::sample::Index>()) {
        let modes = [StreamMode::Values, StreamMode::Updates, StreamMode::MessagesTuple, StreamMode::Custom];
        let frames = read(&events, LangGraph::new(options(&modes, None)));
        let at = 1 + place.index(frames.len() - 1);
        let Some(seen) = frames[at - 1].id.as_deref().filter(|_| at > 1).map(position) else { return Ok(()) };
        let rest = read(&events, LangGraph::new(options(&modes, Some(seen))));
        let shown = |frames: &[SseEvent]| -> Vec<_> {
            frames.iter().map(|frame| (frame.event.to_string(), frame.data.clone())).collect()
        };
        prop_assert_eq!(shown(&rest), shown(&frames[at..]));
    }

    #[test]
    fn the_state_is_that_of_the_values(events in session()) {
        let mut state = LangGraphThread::new();
        events.iter().for_each(|event| state.apply(event));
        let frames = read(&events, LangGraph::new(options(&[StreamMode::Values], None)));
        let last = frames.iter().rev().map(|frame| (&frame.event, serde_json::from_str::<Value>(&frame.data).unwrap()));
        let last = last.into_iter().find(|(event, data)| *event == "values" && data.get("__interrupt__").is_none());
        if let Some((_, values)) = last {
            prop_assert_eq!(values, state.values());
        }
    }
}

fn text(delta: &str) -> EventKind {
    EventKind::TextBlockDelta { block_id: "b".parse().unwrap(), delta: delta.to_owned() }
}

#[test]
fn children_are_in_namespaces_and_a_spawn_is_a_task() {
    let spawn = |delta: &str| EventKind::ToolCallDelta {
        tool_call_id: ToolCallId::new("c"),
        delta: delta.to_owned(),
    };
    let events: Vec<_> = (1..)
        .zip([
            (0, start()),
            (0, EventKind::model_call_start("m", 1)),
            (
                0,
                EventKind::ToolCallStart {
                    tool_call_id: ToolCallId::new("c"),
                    tool_call_name: "agent_spawn".into(),
                },
            ),
            (0, spawn("{\"agent_id\": \"far\", ")),
            (0, spawn("\"task\": \"look\", \"label\": \"x\"}")),
            (
                0,
                EventKind::ToolCallEnd {
                    tool_call_id: ToolCallId::new("c"),
                    tool_call_name: "agent_spawn".into(),
                    opaque: Default::default(),
                    discarded: false,
                },
            ),
            (0, EventKind::model_call_end(StopReason::ToolCalls, 0)),
            (1, start()),
            (3, start()),
            (3, text("deep")),
            (1, text("hi")),
        ])
        .map(|(seq, (agent, kind))| event(seq, agent, kind))
        .collect();
    let frames = read(&events, LangGraph::new(options(&[StreamMode::MessagesTuple], None)));
    let shown: Vec<_> = frames
        .iter()
        .filter(|frame| frame.event.starts_with("messages"))
        .map(|frame| {
            let data: Value = serde_json::from_str(&frame.data).unwrap();
            let call = &data[0]["tool_call_chunks"][0];
            format!("{} {} {} {}", frame.id.as_ref().unwrap(), frame.event, data[0]["content"], call["args"])
        })
        .collect();
    assert_eq!(
        shown,
        [
            r#"6 messages "" "{\"label\":\"x\",\"subagent_type\":\"far\",\"description\":\"look\"}""#,
            r#"7 messages "" null"#,
            r#"10 messages|tools:call-1|tools:call-3 "deep" null"#,
            r#"11 messages|tools:call-1 "hi" null"#,
        ]
    );
}

#[test]
fn a_run_that_asks_or_fails_says_so() {
    let calls = vec![ToolCall::new("c", "send", "{\"to\":1}")];
    let ask = event(2, 0, EventKind::require_user_confirm("q".parse().unwrap(), calls));
    let fail = EventKind::agent_end(Outcome::Error, Rollup::default(), 0)
        .with_error(mainstem_message::Failure::new("model", "no answer"));
    let fail = event(3, 0, fail);
    #[track_caller]
    fn check(events: &[AgentEvent], modes: &[StreamMode], expected: &[&str], outcome: Value) {
        let frames = read(events, LangGraph::new(options(modes, None)));
        let shown = frames.iter().skip(1).map(|frame| format!("{} {}", frame.event, frame.data));
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        let mut waiting = LangGraphOutcome::new(LangGraphThread::new());
        events.iter().for_each(|event| assert!(waiting.event(event).is_empty()));
        assert_eq!(serde_json::from_slice::<Value>(&waiting.end()).unwrap(), outcome);
    }
    let interrupt = json!([interrupt(&"q".parse().unwrap(), &[ToolCall::new("c", "send", "{\"to\":1}")])]);
    let asked = json!({ "__interrupt__": interrupt });
    check(
        std::slice::from_ref(&ask),
        &[StreamMode::Updates],
        &[&format!("updates {asked}"), "end null"],
        asked,
    );
    let failed = r#"error {"error":"model","message":"no answer"}"#;
    let error = json!({ "__error__": { "error": "model", "message": "no answer" } });
    check(&[fail], &[StreamMode::Updates], &[failed], error);
}

#[test]
fn a_last_event_id_is_read() {
    let read = |id: &str| FrameId::parse(id).map(|read| (read.seq, read.frame));
    assert_eq!(read("12"), Some((12, u64::MAX)));
    assert_eq!(read("12-3"), Some((12, 3)));
    assert_eq!(read("-1"), Some((0, 0)));
    assert_eq!([read(""), read("a"), read("1-a")], [None, None, None]);
}
