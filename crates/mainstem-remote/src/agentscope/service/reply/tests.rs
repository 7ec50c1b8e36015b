//! Recorded replies are read whole, cut at each event, and in any order.

use mainstem_event::fold::Transcript;
use mainstem_message::ReplyId;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::admission::{Admission, Admitted, ROOT};

/// Recorded replies of AgentScope's service 2.0.11: the events of each, and its stored message.
const RECORDED: [(&str, &str); 7] = [
    ("asker", include_str!("../../../../tests/fixtures/agentscope_service/asker.sse")),
    ("broken", include_str!("../../../../tests/fixtures/agentscope_service/broken.sse")),
    ("chat", include_str!("../../../../tests/fixtures/agentscope_service/chat.sse")),
    ("endless", include_str!("../../../../tests/fixtures/agentscope_service/endless.sse")),
    ("mailer", include_str!("../../../../tests/fixtures/agentscope_service/mailer.sse")),
    ("picture", include_str!("../../../../tests/fixtures/agentscope_service/picture.sse")),
    ("shows", include_str!("../../../../tests/fixtures/agentscope_service/shows.sse")),
];

/// The events of a recorded reply, and its stored message.
fn recorded(text: &str) -> (Vec<&str>, Value) {
    let (stream, message) = text.split_once("=== state").unwrap();
    let events = stream.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    (events, serde_json::from_str(message).unwrap())
}

fn reply() -> Reply {
    Reply::new("far", "s", "sub-far".parse().unwrap(), Arc::default())
}

fn read(reply: &mut Reply, text: &str) {
    reply.read(&serde_json::from_str(text).unwrap(), text);
}

fn shown(events: &[RemoteEvent]) -> String {
    events.iter().map(|event| event.kind.to_string()).collect::<Vec<_>>().join("\n")
}

/// Checks that events are lawful and end once, and returns them.
fn lawful(events: Vec<RemoteEvent>) -> Result<Vec<RemoteEvent>, TestCaseError> {
    let mut admission = Admission::new("sub-far".parse().unwrap(), 3);
    let mut ends = 0;
    for event in &events {
        let admitted = admission
            .admit(event.clone())
            .map_err(|error| TestCaseError::fail(format!("{error}\n{}", shown(&events))))?;
        ends += u32::from(matches!(admitted, Admitted::End { invocation: ROOT, .. }));
    }
    prop_assert_eq!(ends, 1, "{}", shown(&events));
    Ok(events)
}

/// Returns what the messages of an invocation say, and its usage and end.
fn told(events: &[RemoteEvent]) -> String {
    let mut transcript = Transcript::new(ReplyId::from_lossy("r"));
    events.iter().for_each(|event| transcript.apply(&event.kind));
    let mut used = Usage::default();
    for event in events {
        if let EventKind::ModelCallEnd { usage: Some(usage), .. } = &event.kind {
            used += *usage;
        }
    }
    let end = events.last().map(|event| event.kind.to_string()).unwrap_or_default();
    let messages: Vec<_> = transcript.messages().iter().map(|message| json!(message.content)).collect();
    format!("{}\n{used:?}\n{end}", serde_json::to_string_pretty(&messages).unwrap())
}

/// Returns the message that the service has stored once it has sent these events of a reply.
fn stored(events: &[&str], whole: &Value) -> Message {
    let events: Vec<Event> = events.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let mut message = whole.clone();
    let has = |kind: &str, id: &str| {
        events.iter().any(|event| {
            let ids = [&event.block_id, &event.tool_call_id];
            event.kind == kind && ids.into_iter().flatten().any(|one| one == id)
        })
    };
    let deltas = |kind: &str, id: &str| -> String {
        let is_of = |event: &&Event| {
            let ids = [&event.block_id, &event.tool_call_id];
            event.kind == kind && ids.into_iter().flatten().any(|one| one == id)
        };
        events.iter().filter(is_of).filter_map(|event| event.delta.clone()).collect()
    };
    let blocks = message["content"].as_array_mut().unwrap();
    blocks.retain_mut(|block| {
        let (kind, id) =
            (block["type"].as_str().unwrap().to_owned(), block["id"].as_str().unwrap().to_owned());
        match &*kind {
            "text" | "thinking" => {
                let name = format!("{}_BLOCK", kind.to_uppercase());
                block[&kind] = json!(deltas(&format!("{name}_DELTA"), &id));
                has(&format!("{name}_START"), &id)
            }
            "hint" => has("HINT_BLOCK", &id),
            "data" => has("DATA_BLOCK_DELTA", &id),
            "tool_call" => {
                block["input"] = json!(deltas("TOOL_CALL_DELTA", &id));
                has("TOOL_CALL_START", &id)
            }
            _ => {
                let is_over = has("TOOL_RESULT_END", &id);
                if !is_over {
                    let parts = block["output"].as_array_mut().unwrap();
                    parts.retain(|part| part["type"] == "text" || has("TOOL_RESULT_DATA_DELTA", &id));
                    parts[0]["text"] = json!(deltas("TOOL_RESULT_TEXT_DELTA", &id));
                    block["state"] = json!("running");
                }
                has("TOOL_RESULT_START", &id)
            }
        }
    });
    let is_over = events.iter().any(|event| event.kind == "REPLY_END");
    if !is_over {
        (message["finished_reason"], message["error"]) = Default::default();
    }
    let sum = |tokens: fn(&Event) -> u64| events.iter().map(tokens).sum::<u64>();
    message["usage"] = json!({
        "input_tokens": sum(|event| event.input_tokens),
        "output_tokens": sum(|event| event.output_tokens),
        "cache_input_tokens": sum(|event| event.cache_input_tokens),
    });
    serde_json::from_value(message).unwrap()
}

#[test]
fn a_recorded_reply_becomes_lawful_events() {
    for (name, text) in RECORDED {
        let (events, _) = recorded(text);
        let mut reply = reply();
        events.iter().for_each(|event| read(&mut reply, event));
        assert!(reply.is_over(), "{name}");
        insta::assert_snapshot!(name, shown(&lawful(reply.take()).unwrap()));
    }
}

#[test]
fn a_reply_that_is_cut_anywhere_says_the_same() {
    for (name, text) in RECORDED {
        let (events, message) = recorded(text);
        let mut whole = reply();
        events.iter().for_each(|event| read(&mut whole, event));
        let whole = told(&whole.take());
        for from in 1..events.len() {
            for to in from..=events.len() {
                let mut reply = reply();
                events[..from].iter().for_each(|event| read(&mut reply, event));
                reply.catch_up(&stored(&events[..to], &message));
                events[to..].iter().for_each(|event| read(&mut reply, event));
                let events = lawful(reply.take()).unwrap();
                assert_eq!(told(&events), whole, "{name}, cut from {from} to {to}\n{}", shown(&events));
            }
        }
    }
}

#[test]
fn events_of_other_replies_say_nothing() {
    let mut reply = reply();
    read(&mut reply, r#"{"type":"TEXT_BLOCK_DELTA","reply_id":"old","block_id":"b","delta":"old"}"#);
    read(&mut reply, r#"{"type":"REPLY_END","reply_id":"old","finished_reason":"completed"}"#);
    assert!(reply.take().is_empty() && !reply.is_over());
    // One without a word is not this turn's.
    read(&mut reply, r#"{"type":"REPLY_START","reply_id":"stale"}"#);
    read(&mut reply, r#"{"type":"REPLY_START","reply_id":"new"}"#);
    read(&mut reply, r#"{"type":"TEXT_BLOCK_DELTA","reply_id":"new","block_id":"b","delta":"new"}"#);
    read(&mut reply, r#"{"type":"REPLY_START","reply_id":"woken"}"#);
    read(&mut reply, r#"{"type":"REPLY_END","reply_id":"woken","finished_reason":"completed"}"#);
    assert_eq!((reply.id(), reply.is_over()), (Some("new"), false));
}

#[test]
fn data_at_an_address_is_told_as_the_address() {
    let url = "https://host.example/p.png";
    let mut live = reply();
    read(&mut live, r#"{"type":"REPLY_START","reply_id":"r"}"#);
    for event in [
        json!({ "type": "DATA_BLOCK_START", "reply_id": "r", "block_id": "d", "media_type": "image/png" }),
        json!({ "type": "DATA_BLOCK_DELTA", "reply_id": "r", "block_id": "d", "media_type": "image/png", "url": url }),
        json!({ "type": "REPLY_END", "reply_id": "r", "finished_reason": "completed" }),
    ] {
        read(&mut live, &event.to_string());
    }
    let mut stored = reply();
    let block = json!({ "type": "data", "id": "d", "source": { "type": "url", "url": url } });
    let message = json!({ "id": "r", "content": [block], "finished_reason": "completed" });
    stored.catch_up(&serde_json::from_value(message).unwrap());
    for mut reply in [live, stored] {
        let events = lawful(reply.take()).unwrap();
        assert!(told(&events).contains(url), "{}", shown(&events));
    }
}

#[test]
fn texts_around_a_hint_are_said_once() {
    let text = |id: &str, text: &str| json!({ "type": "text", "id": id, "text": text });
    let content =
        [text("a", "First."), json!({ "type": "hint", "id": "h", "hint": "Go on." }), text("b", "Second.")];
    let message = json!({ "id": "r", "content": content, "finished_reason": "completed" });
    let mut reply = reply();
    reply.catch_up(&serde_json::from_value(message).unwrap());
    let events = lawful(reply.take()).unwrap();
    assert_eq!(told(&events).matches("First.").count(), 1, "{}", shown(&events));
    assert_eq!(told(&events).matches("Second.").count(), 1, "{}", shown(&events));
}

fn any_event() -> impl Strategy<Value = String> {
    let all: Vec<String> =
        RECORDED.iter().flat_map(|(_, text)| recorded(text).0).map(str::to_owned).collect();
    let replies = prop_oneof![Just("r"), Just("r"), Just("other")];
    (prop::sample::select(all), replies).prop_map(|(event, reply)| {
        let mut event: Value = serde_json::from_str(&event).unwrap();
        event["reply_id"] = json!(reply);
        event.to_string()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_order_is_lawful(
        events in prop::collection::vec(any_event(), 0..40),
        message in prop::sample::select(RECORDED.map(|(_, text)| text).to_vec()),
    ) {
        let mut reply = reply();
        read(&mut reply, r#"{"type":"REPLY_START","reply_id":"r"}"#);
        events.iter().for_each(|event| read(&mut reply, event));
        reply.catch_up(&serde_json::from_value(recorded(message).1).unwrap());
        lawful(reply.take())?;
    }
}
