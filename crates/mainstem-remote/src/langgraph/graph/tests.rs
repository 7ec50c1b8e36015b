//! Whatever a server sends, in whatever order, the events are admitted, and the turn ends once.

use std::time::Instant;

use mainstem_event::Decision;
use proptest::prelude::*;
use serde_json::json;

use super::{
    super::wire::{Run, State},
    *,
};
use crate::admission::{Admission, Admitted, ROOT as ASKED};

fn turn(levels: u16) -> RemoteTurn {
    RemoteTurn {
        session: "sub-far".parse().unwrap(),
        id: "reply-1".parse().unwrap(),
        task: "go".to_owned(),
        user: None,
        attributes: serde_json::Map::new(),
        levels,
        budget: Default::default(),
        plan_mode: false,
        is_attended: true,
        history: Vec::new(),
        rules: Default::default(),
        trace_parent: None,
    }
}

const NAMESPACES: [&str; 6] = ["", "tools:t1", "tools:t1|1", "helper:t2", "tools:t1|deep:t3", "a/b|7"];
const TASKS: [&str; 4] = ["t1", "t2", "t3", "t4"];
const CALLS: [&str; 3] = ["call_1", "call_2", "call_3"];

/// A frame of the stream.
fn frame() -> impl Strategy<Value = (String, String)> {
    let namespace = prop::sample::select(&NAMESPACES[..]);
    (namespace, prop_oneof![message(), task(), update(), other()]).prop_map(|(namespace, (mode, data))| {
        let event = if namespace.is_empty() { mode.to_owned() } else { format!("{mode}|{namespace}") };
        (event, data.to_string())
    })
}

fn message() -> impl Strategy<Value = (&'static str, Value)> {
    let kind = prop::sample::select(&["AIMessageChunk", "ai", "tool", "human", "remove"][..]);
    let content = prop::sample::select(vec![
        json!("text"),
        json!(""),
        Value::Null,
        json!(["a", { "type": "text", "text": "b" }, { "type": "reasoning", "reasoning": "c" }]),
        json!([{ "type": "image", "data": "" }]),
    ]);
    let call = prop::sample::select(&CALLS[..]);
    let part = prop_oneof![
        Just(json!([])),
        (call.clone(), 0..2_u8).prop_map(|(id, index)| {
            json!([{ "id": id, "name": "task", "args": "{\"description\": \"north\"}", "index": index }])
        }),
        (0..2_u8).prop_map(|index| json!([{ "id": null, "name": null, "args": "x", "index": index }])),
    ];
    let last = prop::sample::select(vec![json!("last"), Value::Null]);
    (kind, 0..4_u8, content, part, call, last).prop_map(|(kind, id, content, part, call, last)| {
        let message = json!({
            "type": kind, "id": format!("m{id}"), "content": content, "tool_call_chunks": part,
            "tool_calls": [{ "id": call, "name": "task", "args": {} }], "chunk_position": last,
            "tool_call_id": (kind == "tool").then_some(call), "name": "task",
            "usage_metadata": { "input_tokens": 1, "output_tokens": 1, "input_token_details": null },
        });
        ("messages", json!([message, { "ls_model_name": "m" }]))
    })
}

fn task() -> impl Strategy<Value = (&'static str, Value)> {
    let id = prop::sample::select(&TASKS[..]);
    prop_oneof![
        id.clone().prop_map(
            |id| json!({ "id": id, "input": { "messages": [{ "type": "human", "content": "north" }] } })
        ),
        (id.clone(), prop::sample::select(&CALLS[..]))
            .prop_map(|(id, call)| json!({ "id": id, "input": { "tool_call": { "id": call } } })),
        id.clone().prop_map(|id| json!({ "id": id, "error": null, "interrupts": [] })),
        id.clone().prop_map(|id| json!({ "id": id, "error": "ValueError()", "interrupts": null })),
        id.prop_map(|id| json!({ "id": id, "interrupts": [{ "id": "i1", "value": "sure?" }] })),
    ]
    .prop_map(|data| ("tasks", data))
}

fn update() -> impl Strategy<Value = (&'static str, Value)> {
    let value = prop::sample::select(vec![
        json!("sure?"),
        json!({ "action_requests": [{ "name": "task", "args": {} }, { "name": "task", "args": {} }] }),
        json!([{ "action_request": { "action": "task", "args": {} } }]),
    ]);
    prop_oneof![
        value.prop_map(|value| json!({ "__interrupt__": [{ "id": "i2", "value": value }] })),
        Just(json!({ "node": { "messages": [], "todos": [1] } })),
        Just(json!([1])),
    ]
    .prop_map(|data| ("updates", data))
}

fn other() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        Just(("custom", json!({ "progress": 1 }))),
        Just(("metadata", json!({ "attempt": 2 }))),
        Just(("unheard", json!(1))),
    ]
}

fn ending() -> impl Strategy<Value = (Run, State)> {
    let status = prop::sample::select(&["success", "error", "interrupted", "timeout", "?"][..]);
    let answer = json!({ "type": "ai", "id": "m9", "content": "done" });
    let asked = json!({ "type": "human", "id": "reply-1", "content": "go" });
    let values = prop::sample::select(vec![
        json!({ "messages": [&asked, answer] }),
        json!({ "messages": [asked, { "type": "ai", "id": "m1", "content": "text" }] }),
        json!({ "answer": 42 }),
        Value::Null,
    ]);
    let next = prop_oneof![4 => Just(Vec::new()), 1 => Just(vec!["node".to_owned()])];
    (status, values, next).prop_map(|(status, values, next)| {
        let run = Run { status: status.to_owned(), ..Run::default() };
        (run, State { values, next, tasks: Vec::new() })
    })
}

/// Admits events; returns how many ends of the turn and which questions are among them.
fn admit(admission: &mut Admission, events: Vec<RemoteEvent>) -> Result<(u32, Vec<Asked>), TestCaseError> {
    let (mut ends, mut asked) = (0, Vec::new());
    for event in events {
        let shown = format!("{event:?}");
        let admitted = admission.admit(event);
        match admitted.map_err(|error| TestCaseError::fail(format!("{error}: {shown}")))? {
            Admitted::End { invocation: ASKED, .. } => ends += 1,
            Admitted::Ask { id, .. } => asked.push(id),
            _ => {}
        }
    }
    Ok((ends, asked))
}

type Asked = mainstem_message::ConfirmId;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn any_stream_is_lawful(
        levels in 0..4_u16,
        first in prop::collection::vec(frame(), 0..40),
        second in prop::collection::vec(frame(), 0..20),
        endings in (ending(), ending()),
        decision in prop::sample::select(vec![Decision::Allow, Decision::Deny("no".into()), Decision::AllowWith(json!(1))]),
    ) {
        let mut graph = Graph::new(turn(levels), "assistant");
        let mut admission = Admission::new("sub-far".parse().unwrap(), levels);
        let mut ends = 0;
        for (frames, (run, state)) in [(first, endings.0), (second, endings.1)] {
            for (event, data) in frames {
                prop_assert_eq!(graph.take_in(&event, &data), Ok(()));
            }
            let asks = graph.settle(&run, &state).unwrap();
            let (ended, asked) = admit(&mut admission, graph.take())?;
            ends += ended;
            prop_assert_eq!(asks, !asked.is_empty());
            if !asks {
                break;
            }
            let mut resumed = None;
            for id in &asked {
                prop_assert!(resumed.is_none());
                resumed = graph.answer(id, decision.clone());
            }
            prop_assert!(resumed.is_some());
        }
        graph.cancelled();
        ends += admit(&mut admission, graph.take())?.0;
        prop_assert_eq!(ends, 1);
    }
}

#[test]
fn a_frame_that_is_not_json_is_refused_and_many_graphs_are_bounded() {
    let mut graph = Graph::new(turn(3), "assistant");
    assert!(graph.take_in("messages", "[").unwrap_err().starts_with("\"messages\" is not as expected"));
    assert!(graph.take_in(&"m".repeat(2_000), "1").unwrap_err().contains("1024 bytes"));
    for number in 0..2_000 {
        let data = json!({ "__interrupt__": [{ "id": format!("i{number}"), "value": "?" }] }).to_string();
        graph.take_in("updates", &data).unwrap();
        let data = json!({ "id": format!("t{number}"), "input": { "tool_call": { "id": "c" } } }).to_string();
        graph.take_in("tasks", &data).unwrap();
    }
    assert_eq!((graph.interrupts.len(), graph.calls.len()), (MAX_QUESTIONS, MAX_TASKS));
    let started = Instant::now();
    for number in 0..2_000 {
        let data = json!([{ "type": "ai", "id": format!("m{number}"), "content": "a" }, {}]).to_string();
        graph.take_in(&format!("messages|node:{number}"), &data).unwrap();
    }
    assert_eq!(graph.agents.len(), MAX_AGENTS + 1);
    assert!(started.elapsed().as_secs() < 5);
}

#[test]
fn a_message_that_is_removed_while_it_is_streamed_is_taken_back() {
    let mut agent = Translation::new("m");
    agent.start("far", Vec::new());
    let mut speaker = Speaker::new(agent);
    let mut say = |message: Value| {
        let message = serde_json::from_value(message).unwrap();
        speaker.say(&message, &serde_json::from_value(json!({})).unwrap()).unwrap();
        let shown = |event: RemoteEvent| match event.kind.taken_back() {
            Some(taken_back) => format!("takes back {}", taken_back.blocks.len()),
            None => event.kind.name().to_owned(),
        };
        speaker.agent.take().into_iter().map(shown).collect::<Vec<_>>().join(" ")
    };
    let part = |id: &str, text: &str| json!({ "type": "AIMessageChunk", "id": id, "content": text });
    let removed = |id: &str| json!({ "type": "remove", "id": id, "content": "" });
    let begun = "AGENT_START MODEL_CALL_START TEXT_BLOCK_START TEXT_BLOCK_DELTA";
    assert_eq!(say(part("m1", "I th")), begun);
    assert_eq!(say(removed("m0")), "CUSTOM", "it is another message of the state");
    assert_eq!(say(removed("m1")), "TEXT_BLOCK_END takes back 1");
    let next = "MODEL_CALL_END MODEL_CALL_START TEXT_BLOCK_START TEXT_BLOCK_DELTA";
    assert_eq!(say(part("m2", "Gold.")), next);
}
