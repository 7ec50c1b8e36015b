//! What each kind becomes, and AG-UI's laws for any events.

mod laws;

use std::sync::Arc;

use mainstem_event::{
    AgentEvent, ConfirmResult, EventKind, EventSource, FleetState, Origin, Outcome, Rollup, Timestamp,
};
use mainstem_message::{
    ContentBlock, DataSource, Failure, Message, Role, StopReason, ToolCall, ToolState, Usage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Agui, Asked, Children, Requested, tool_call_id, vendors_call_id};
use crate::Encoder;

/// Returns the source of a child: its key, and the session that it is below.
fn source(name: &str, parent: &str, turn: u32) -> EventSource {
    let parent_path = if parent == "s" { "s".to_owned() } else { format!("s/{parent}") };
    serde_json::from_value(json!({
        "agentKey": format!("agent:{name}:1"), "agentId": name, "title": format!("the {name}"),
        "sessionId": format!("sub-{name}"), "parentSessionId": if parent == "s" { "s".to_owned() } else { format!("sub-{parent}") },
        "depth": parent_path.matches('/').count() + 1, "path": format!("{parent_path}/{name}"),
        "turn": turn, "parentToolCallId": "c", "streamId": 1,
    }))
    .unwrap()
}

/// Returns an event: of the root, or of a child whose reply has its name.
fn event(seq: u64, of: Option<&EventSource>, kind: EventKind) -> AgentEvent {
    let reply = of.map_or_else(|| "reply-root".to_owned(), |of| format!("reply-{}-{}", of.agent_id, of.turn));
    let mut origin = Origin::session("s".parse().unwrap(), Some("r".parse().unwrap()));
    (origin.reply_id, origin.source) = (Some(reply.parse().unwrap()), of.cloned().map(Arc::new));
    AgentEvent::new(seq, Timestamp::from_micros(seq * 1000), Arc::new(origin), kind)
}

fn requested(children: Children) -> Requested {
    Requested {
        thread_id: "t".into(),
        run_id: "r".into(),
        parent_run_id: None,
        is_versioned: children != Children::Flatten,
        children,
        state: Value::Null,
        results: Default::default(),
    }
}

fn agui(children: Children) -> Agui {
    Agui::new(requested(children), FleetState::default())
}

fn parsed(frames: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(frames).unwrap();
    text.split("\n\n")
        .filter_map(|frame| Some(serde_json::from_str(frame.strip_prefix("data: ")?).unwrap()))
        .collect()
}

fn start() -> EventKind {
    EventKind::agent_start("n", Role::Assistant, vec![Arc::new(Message::user("go"))])
}

fn end(outcome: Outcome) -> EventKind {
    let error = (outcome != Outcome::Success).then(|| Failure::new("broken", "it broke"));
    EventKind::agent_end(outcome, Rollup::nothing(), 5).with_error(error)
}

/// Encodes kinds of one agent, and shows the events of AG-UI but for those of the shared state:
/// each its name, and its fields without time and metadata.
#[track_caller]
fn check(of: Option<&EventSource>, children: Children, kinds: Vec<EventKind>, expected: &[&str]) {
    let mut agui = agui(children);
    let _ = agui.begin();
    let mut frames = Vec::new();
    for (seq, kind) in (1..).zip(kinds) {
        frames.extend(agui.event(&event(seq, of, kind)));
    }
    frames.extend(agui.end());
    let shown: Vec<_> =
        parsed(&frames).into_iter().filter(|event| event["type"] != "STATE_DELTA").map(shown).collect();
    let read = |line: &&str| {
        let (name, fields) = line.split_once(' ').unwrap();
        (name.to_owned(), serde_json::from_str(fields).unwrap())
    };
    assert_eq!(shown, expected.iter().map(read).collect::<Vec<_>>());
}

fn shown(mut event: Value) -> (String, Value) {
    let fields = event.as_object_mut().unwrap();
    let name = fields.remove("type").unwrap();
    for field in ["timestamp", "metadata", "usage", "threadId", "runId"] {
        fields.remove(field);
    }
    (name.as_str().unwrap().to_owned(), event)
}

const OK: &str = r#"RUN_FINISHED {"outcome":{"type":"success"}}"#;

/// Checks events of a root that succeeds.
#[track_caller]
fn check_root(mut kinds: Vec<EventKind>, expected: &[&str]) {
    kinds.push(end(Outcome::Success));
    check(None, Children::Subagents, kinds, &[expected, &[OK]].concat());
}

/// Which events of AG-UI each kind becomes, for a child and for a client without subagents.
#[test]
fn no_kind_is_lost() {
    let kid = source("kid", "s", 1);
    let types = |children, of: Option<&EventSource>, kind: &EventKind| -> Vec<String> {
        let mut agui = agui(children);
        let _ = (agui.begin(), agui.event(&event(1, of, start())));
        let frames = parsed(&agui.event(&event(2, of, kind.clone())));
        let types = frames.iter().map(|event| event["type"].as_str().unwrap().to_owned());
        types.filter(|name| name != "STATE_DELTA").collect()
    };
    let unseen = |children, of| -> Vec<String> {
        let kinds = EventKind::examples();
        let unseen = kinds.iter().filter(|kind| types(children, of, kind).is_empty());
        unseen.map(|kind| kind.name().to_owned()).collect()
    };
    // Ends end what is open, a call needs its name, and results are seen as a whole.
    let later = [
        "TEXT_BLOCK_END",
        "THINKING_BLOCK_END",
        "TOOL_CALL_DELTA",
        "TOOL_CALL_END",
        "TOOL_RESULT_TEXT_DELTA",
        "TOOL_RESULT_DATA_DELTA",
    ];
    let of_root = ["AGENT_START", "AGENT_RESULT", "AGENT_END", "MODEL_CALL_END"];
    assert_eq!(unseen(Children::Subagents, None), sorted(&[&of_root[..], &later]));
    assert_eq!(
        unseen(Children::Subagents, Some(&kid)),
        sorted(&[&["AGENT_START", "AGENT_RESULT", "MODEL_CALL_END"], &later[..]])
    );
    assert_eq!(
        unseen(Children::Hide, Some(&kid)).len(),
        EventKind::examples().len(),
        "only the state has them"
    );
}

/// Returns the names in the order of the table.
fn sorted(names: &[&[&str]]) -> Vec<String> {
    let names = names.concat();
    EventKind::NAMES.iter().filter(|name| names.contains(name)).map(|name| (*name).to_owned()).collect()
}

#[test]
fn text_and_thinking_are_messages() {
    check_root(vec![start()], &[]);
    check_root(
        vec![
            EventKind::TextBlockStart { block_id: "reply-root.1".parse().unwrap() },
            EventKind::TextBlockDelta { block_id: "reply-root.1".parse().unwrap(), delta: "Hi".into() },
            EventKind::TextBlockDelta { block_id: "reply-root.1".parse().unwrap(), delta: "".into() },
            EventKind::TextBlockEnd {
                block_id: "reply-root.1".parse().unwrap(),
                opaque: Default::default(),
                discarded: false,
            },
        ],
        &[
            r#"TEXT_MESSAGE_START {"messageId":"reply-root.1","role":"assistant"}"#,
            r#"TEXT_MESSAGE_CONTENT {"delta":"Hi","messageId":"reply-root.1"}"#,
            r#"TEXT_MESSAGE_END {"messageId":"reply-root.1"}"#,
        ],
    );
    check_root(
        vec![
            EventKind::ThinkingBlockStart { block_id: "b".parse().unwrap() },
            EventKind::ThinkingBlockDelta { block_id: "b".parse().unwrap(), delta: "Hm".into() },
            EventKind::ThinkingBlockEnd {
                block_id: "b".parse().unwrap(),
                opaque: Default::default(),
                discarded: false,
            },
        ],
        &[
            r#"REASONING_START {"messageId":"reply-root/b"}"#,
            r#"REASONING_MESSAGE_START {"messageId":"reply-root/b","role":"reasoning"}"#,
            r#"REASONING_MESSAGE_CONTENT {"delta":"Hm","messageId":"reply-root/b"}"#,
            r#"REASONING_MESSAGE_END {"messageId":"reply-root/b"}"#,
            r#"REASONING_END {"messageId":"reply-root/b"}"#,
        ],
    );
}

#[test]
fn calls_are_in_a_message_and_have_their_result() {
    check_root(
        vec![
            EventKind::model_call_start("m", 2),
            EventKind::ToolCallStart { tool_call_id: "c".into(), tool_call_name: "look".into() },
            EventKind::ToolCallDelta { tool_call_id: "c".into(), delta: "{}".into() },
            EventKind::ToolCallEnd {
                tool_call_id: "c".into(),
                tool_call_name: "look".into(),
                opaque: Default::default(),
                discarded: false,
            },
            EventKind::model_call_end(StopReason::ToolCalls, 3).with_usage(Usage::new(1, 2)),
            EventKind::ToolResultTextDelta { tool_call_id: "c".into(), delta: "see".into() },
            EventKind::tool_result_end("c", "look", ToolState::Success, 4),
        ],
        &[
            r#"STEP_STARTED {"stepName":"model call 2"}"#,
            r#"TOOL_CALL_START {"parentMessageId":"reply-root/2","toolCallId":"reply-root/c","toolCallName":"look"}"#,
            r#"TOOL_CALL_ARGS {"delta":"{}","toolCallId":"reply-root/c"}"#,
            r#"TOOL_CALL_END {"toolCallId":"reply-root/c"}"#,
            r#"STEP_FINISHED {"stepName":"model call 2"}"#,
            r#"TOOL_CALL_RESULT {"content":"see","messageId":"reply-root/c/result","role":"tool","toolCallId":"reply-root/c"}"#,
        ],
    );
    let source = DataSource::Base64("AA==".into());
    let image = ContentBlock::Data { media_type: "image/png".into(), source, opaque: Default::default() };
    check_root(
        vec![
            EventKind::ToolResultDataDelta { tool_call_id: "c".into(), data: Box::new(image) },
            EventKind::tool_result_end("c", "look", ToolState::Success, 4),
        ],
        &[
            r#"TOOL_CALL_RESULT {"content":[{"source":{"mimeType":"image/png","type":"data","value":"AA=="},"type":"image"}],"messageId":"reply-root/c/result","role":"tool","toolCallId":"reply-root/c"}"#,
        ],
    );
    check_root(
        vec![EventKind::Custom { name: "theirs".into(), value: json!(1) }],
        &[r#"CUSTOM {"name":"mainstem.custom","value":{"name":"theirs","value":1}}"#],
    );
}

#[test]
fn runs_and_children_end_as_they_ended() {
    let kid = source("kid", "s", 2);
    let error = r#"RUN_ERROR {"code":"broken","message":"it broke"}"#;
    check(None, Children::Subagents, vec![start(), end(Outcome::Error)], &[error]);
    check(None, Children::Subagents, vec![start(), end(Outcome::Timeout)], &[error]);
    let cancelled = r#"RUN_FINISHED {"outcome":{"type":"cancelled"}}"#;
    check(None, Children::Subagents, vec![start(), end(Outcome::Cancelled)], &[cancelled]);
    check(None, Children::Flatten, vec![start(), end(Outcome::Cancelled)], &[error]);
    let lost = r#"RUN_ERROR {"code":"events_lost","message":"events were lost, among them the end of the run; read the session's events"}"#;
    let started =
        r#"SUBAGENT_STARTED {"description":"the kid","name":"kid","subagentRunId":"agent:kid:1#2"}"#;
    let finished = |outcome| [started, outcome, lost];
    let check = |kinds, outcome| check(Some(&kid), Children::Subagents, kinds, &finished(outcome));
    let answer = EventKind::AgentResult { result: Arc::new(Message::assistant("so")) };
    check(
        vec![start(), answer, end(Outcome::Success)],
        r#"SUBAGENT_FINISHED {"outcome":{"type":"success"},"result":"so","subagentRunId":"agent:kid:1#2"}"#,
    );
    check(
        vec![start(), end(Outcome::Error)],
        r#"SUBAGENT_ERROR {"code":"broken","message":"it broke","subagentRunId":"agent:kid:1#2"}"#,
    );
    check(
        vec![start()],
        r#"SUBAGENT_FINISHED {"outcome":{"type":"suspended"},"subagentRunId":"agent:kid:1#2"}"#,
    );
}

#[test]
fn a_question_ends_the_stream_and_its_answer_goes_on() {
    let kid = source("kid", "s", 1);
    let text =
        |delta: &str| EventKind::TextBlockDelta { block_id: "b".parse().unwrap(), delta: delta.into() };
    let call = ToolCall::new("k", "poke", "{}");
    let events = [
        event(1, None, start()),
        event(2, Some(&kid), start()),
        event(3, None, EventKind::TextBlockStart { block_id: "b".parse().unwrap() }),
        event(4, None, text("one")),
        event(5, Some(&kid), EventKind::require_user_confirm("q".parse().unwrap(), vec![call.clone()])),
        event(
            6,
            Some(&kid),
            EventKind::UserConfirmResult {
                confirm_id: "q".parse().unwrap(),
                confirm_results: vec![ConfirmResult::confirmed(call)],
            },
        ),
        event(7, None, text("two")),
    ];
    let mut first = agui(Children::Subagents);
    let _ = first.begin();
    assert!(first.patience().is_none() && !first.keep_alive().starts_with(b"data"), "nothing is asked");
    events[..5].iter().for_each(|event| drop(first.event(event)));
    assert!(first.patience().is_some() && !first.is_over());
    let paused: Vec<_> = parsed(&first.keep_alive())
        .into_iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(paused, ["SUBAGENT_FINISHED", "TEXT_MESSAGE_END", "STATE_DELTA", "RUN_FINISHED"]);
    assert!(first.is_over() && first.event(&events[5]).is_empty() && first.end().is_empty());

    let mut asked = Asked::default();
    events[..5].iter().for_each(|event| asked.apply(event));
    assert_eq!((asked.open.len(), asked.seqs["q"]), (1, 5));
    asked.open.clear();
    let mut second = agui(Children::Subagents).with_asked(asked).with_after(5);
    assert_eq!(parsed(&second.begin())[0]["type"], "RUN_STARTED");
    let frames: Vec<_> = events.iter().flat_map(|event| second.event(event).to_vec()).collect();
    let shown: Vec<_> = parsed(&frames)
        .into_iter()
        .map(|event| format!("{} {}", event["type"].as_str().unwrap(), event["delta"]))
        .collect();
    assert_eq!(
        shown.iter().filter(|shown| !shown.starts_with("STATE_DELTA")).collect::<Vec<_>>(),
        [
            "STATE_SNAPSHOT null",
            "SUBAGENT_STARTED null",
            "CUSTOM null",
            "TEXT_MESSAGE_START null",
            "TEXT_MESSAGE_CONTENT \"two\""
        ]
    );
    assert!(second.patience().is_none(), "the question has its answer");
}

#[test]
fn a_long_wait_ends_a_stream_that_is_never_silent() {
    let ask = EventKind::require_external_execution(vec![ToolCall::new("k", "poke", "{}")]);
    let mut agui = agui(Children::Subagents);
    let _ = agui.begin();
    let tick = || EventKind::Custom { name: "tick".into(), value: Value::Null };
    for (seq, kind) in [(1, start()), (2, ask), (10_001, tick())] {
        let _ = agui.event(&event(seq, None, kind));
    }
    assert!(!agui.is_over());
    let frames = parsed(&agui.event(&event(10_002, None, tick())));
    assert_eq!(
        frames.last().unwrap()["outcome"],
        json!({ "type": "success", "pendingToolCallIds": ["reply-root/k"] })
    );
}

#[test]
fn ids_of_calls_are_read_back() {
    let (reply, call) = ("reply-1".parse().unwrap(), "call/with a slash".into());
    assert_eq!(vendors_call_id(&tool_call_id(&reply, &call)), call);
}

#[test]
fn a_long_result_is_cut_at_a_character() {
    let mut parts = super::results::ResultParts::default();
    (0..200).for_each(|_| parts.push_text(&"é".repeat(1000)));
    let content = parts.content();
    let text = content.as_str().unwrap();
    assert!(
        text.len() < 263_000 && text.ends_with("[137856 more bytes are left out here]"),
        "{}",
        &text[text.len() - 60..]
    );
}

/// Something that an agent does.
fn act() -> impl Strategy<Value = EventKind> {
    let block = || prop_oneof![Just("x"), Just("y")].prop_map(|id| id.parse().unwrap());
    let call = || prop_oneof![Just("c"), Just("d")];
    prop_oneof![
        block().prop_map(|block_id| EventKind::TextBlockStart { block_id }),
        block().prop_map(|block_id| EventKind::TextBlockDelta { block_id, delta: "t".into() }),
        block().prop_map(|block_id| EventKind::TextBlockEnd {
            block_id,
            opaque: Default::default(),
            discarded: false
        }),
        call().prop_map(|call| EventKind::ToolCallStart {
            tool_call_id: call.into(),
            tool_call_name: "t".into()
        }),
        call().prop_map(|call| EventKind::ToolCallDelta { tool_call_id: call.into(), delta: "{".into() }),
        call().prop_map(|call| EventKind::ToolCallEnd {
            tool_call_id: call.into(),
            tool_call_name: "t".into(),
            opaque: Default::default(),
            discarded: false,
        }),
        call().prop_map(|call| EventKind::tool_result_end(call, "t", ToolState::Success, 1)),
        (1_u32..4).prop_map(|iteration| EventKind::model_call_start("m", iteration)),
        Just(EventKind::model_call_end(StopReason::Stop, 1)),
        call().prop_map(|call| EventKind::require_external_execution(vec![ToolCall::new(call, "t", "{}")])),
        block().prop_map(|id: mainstem_message::BlockId| {
            EventKind::require_user_confirm(id.as_str().parse().unwrap(), vec![ToolCall::new("c", "t", "{}")])
        }),
        block().prop_map(|id: mainstem_message::BlockId| {
            EventKind::UserConfirmResult { confirm_id: id.as_str().parse().unwrap(), confirm_results: vec![] }
        }),
    ]
}

/// What happens next in a fleet: an agent acts, ends, or begins its next turn; or events are lost.
fn fleet() -> impl Strategy<Value = Vec<(usize, Option<EventKind>)>> {
    prop::collection::vec((0_usize..5, prop::option::weighted(0.85, act())), 0..60)
}

/// Returns events of five agents, in a tree. Starts, ends and whatever else may be missing: an
/// encoder also reads streams with gaps.
fn events(acts: &[(usize, Option<EventKind>)]) -> Vec<AgentEvent> {
    let tree = [("", ""), ("a", "s"), ("b", "s"), ("c", "a"), ("d", "c")];
    let mut turns = [1_u32; 5];
    let mut kinds = Vec::new();
    for (agent, kind) in acts {
        let (name, parent) = tree[*agent];
        let of = (*agent > 0).then(|| source(name, parent, turns[*agent]));
        match kind {
            Some(kind) => kinds.push((of, kind.clone())),
            // The root ends with the stream.
            None if *agent == 0 => {
                kinds.push((None, EventKind::agent_end(Outcome::Success, Rollup::nothing(), 1)))
            }
            None => {
                kinds.push((of, end(Outcome::Success)));
                turns[*agent] += 1;
            }
        }
    }
    (1..).zip(kinds).map(|(seq, (of, kind))| event(seq, of.as_ref(), kind)).collect()
}

proptest! {
    #[test]
    fn streams_are_lawful_whatever_is_lost(
        acts in fleet(),
        pauses in prop::collection::vec(any::<bool>(), 60),
        children in prop_oneof![Just(Children::Subagents), Just(Children::Flatten), Just(Children::Hide)],
        after in 0_u64..40,
    ) {
        let events = events(&acts);
        let mut agui = agui(children).with_after(after);
        let mut frames = agui.begin().to_vec();
        for (event, pause) in events.iter().zip(pauses.iter().cycle()) {
            frames.extend(agui.event(event));
            if *pause && event.seq > after {
                frames.extend(agui.keep_alive());
            }
        }
        frames.extend(agui.end());
        prop_assert!(agui.is_over());
        let frames = parsed(&frames);
        prop_assert_eq!(laws::check(&frames), Ok(()), "{:#?}", frames);
    }
}
