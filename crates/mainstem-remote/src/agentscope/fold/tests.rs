//! What servers send, of each detail, becomes lawful events.

use mainstem_encode::agent_protocol::{EXTRA, PendingConfirm};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::admission::{Admission, Admitted, ROOT};

fn fold() -> TaskFold {
    TaskFold::new("far", "sub-far".parse().unwrap(), Arc::default())
}

fn typed(kind: EventType) -> TaskEvent {
    TaskEvent::of(kind)
}

fn text(text: &str) -> TaskEvent {
    TaskEvent { text: Some(text.to_owned()), ..typed(EventType::TextDelta) }
}

fn call(kind: EventType, id: &str) -> TaskEvent {
    TaskEvent { tool_call_id: Some(id.to_owned()), tool_name: Some("search".to_owned()), ..typed(kind) }
}

fn status(status: &str) -> TaskEvent {
    TaskEvent { status: Some(status.to_owned()), ..typed(EventType::Status) }
}

/// An event of a verbose stream, as AgentScope writes it: the type twice.
fn payload(kind: &str, fields: &str) -> TaskEvent {
    let comma = if fields.is_empty() { "" } else { "," };
    let payload = format!("{{\"type\":\"{kind}\",\"id\":\"1\"{comma}{fields},\"type\":\"{kind}\"}}");
    TaskEvent { payload: Some(payload), event_type: Some(kind.to_owned()), ..typed(EventType::AgentEvent) }
}

fn shown(events: &[RemoteEvent]) -> String {
    let show = |event: &RemoteEvent| {
        let place = event.source.as_deref().map_or(String::new(), |source| format!("{}:", source.agent_id));
        format!("{place}{}", event.kind)
    };
    events.iter().map(show).collect::<Vec<_>>().join("\n")
}

/// Reads events, ends as the last of them says, and returns what is lawful of it.
fn read(events: impl IntoIterator<Item = TaskEvent>, result: Option<&str>) -> String {
    let mut fold = fold();
    for event in events {
        if let Some(snapshot) = fold.read(&event) {
            fold.end(Snapshot { result: result.map(str::to_owned), ..snapshot });
        }
    }
    let events = fold.take();
    let mut admission = Admission::new("sub-far".parse().unwrap(), 3);
    for event in &events {
        admission.admit(event.clone()).unwrap_or_else(|error| panic!("{error}\n{}", shown(&events)));
    }
    shown(&events)
}

#[test]
fn typed_fields_are_enough() {
    let events = [
        typed(EventType::RunStarted),
        TaskEvent { text: Some("Hm.".to_owned()), ..typed(EventType::ThinkingDelta) },
        text("I look. "),
        call(EventType::ToolCallStart, "call-1"),
        call(EventType::ToolCallEnd, "call-1"),
        TaskEvent { status: Some("SUCCESS".to_owned()), ..call(EventType::ToolResult, "call-1") },
        text("Found "),
        text("it."),
        typed(EventType::RunFinished),
        status("success"),
    ];
    insta::assert_snapshot!(read(events, None), @r#"
    AGENT_START far ""
    MODEL_CALL_START far #1
    THINKING_BLOCK_START
    THINKING_BLOCK_DELTA "Hm."
    THINKING_BLOCK_END
    TEXT_BLOCK_START
    TEXT_BLOCK_DELTA "I look. "
    TEXT_BLOCK_END
    TOOL_CALL_START search (call-1)
    TOOL_CALL_END search (call-1)
    MODEL_CALL_END tool_calls
    TOOL_RESULT_START search null (call-1)
    TOOL_RESULT_END search success (call-1)
    MODEL_CALL_START far #2
    TEXT_BLOCK_START
    TEXT_BLOCK_DELTA "Found "
    TEXT_BLOCK_DELTA "it."
    TEXT_BLOCK_END
    MODEL_CALL_END stop
    AGENT_END success 0/0 tok
    "#);
}

#[test]
fn a_payload_says_more_than_the_typed_fields() {
    let events = [
        payload("AGENT_START", r#""name":"worker","replyId":"r""#),
        payload("MODEL_CALL_START", r#""replyId":"r""#),
        payload("TEXT_BLOCK_START", r#""blockId":"text""#),
        payload("TEXT_BLOCK_DELTA", r#""blockId":"text","delta":"I look.""#),
        payload("TEXT_BLOCK_END", r#""blockId":"text""#),
        payload("TOOL_CALL_START", r#""toolCallId":"c","toolCallName":"search""#),
        payload("TOOL_CALL_DELTA", r#""toolCallId":"c","toolCallName":"search","delta":"{\"q\":1}""#),
        payload("TOOL_CALL_END", r#""toolCallId":"c","toolCallName":"search""#),
        payload(
            "MODEL_CALL_END",
            r#""usage":{"inputTokens":10,"outputTokens":20,"cachedTokens":3,"time":0.5}"#,
        ),
        payload("TOOL_RESULT_START", r#""toolCallId":"c","toolCallName":"search""#),
        payload("TOOL_RESULT_TEXT_DELTA", r#""toolCallId":"c","toolCallName":"search","delta":"found""#),
        payload("TOOL_RESULT_END", r#""toolCallId":"c","toolCallName":"search","state":"success""#),
        payload("HINT_BLOCK", r#""blockId":"h","hintSource":"inbox","hint":"note""#),
        payload("REQUEST_STOP", r#""reason":"stop""#),
        payload("MODEL_CALL_START", r#""replyId":"r""#),
        payload(
            "AGENT_RESULT",
            r#""result":{"role":"ASSISTANT","content":[{"type":"text","text":"Done."}]}"#,
        ),
        payload("AGENT_END", r#""replyId":"r""#),
        status("success"),
    ];
    insta::assert_snapshot!(read(events, None), @r#"
    AGENT_START far ""
    MODEL_CALL_START far #1
    TEXT_BLOCK_START
    TEXT_BLOCK_DELTA "I look."
    TEXT_BLOCK_END
    TOOL_CALL_START search (c)
    TOOL_CALL_DELTA "{\"q\":1}" (c)
    TOOL_CALL_END search (c)
    MODEL_CALL_END tool_calls
    TOOL_RESULT_START search {"q":1} (c)
    TOOL_RESULT_TEXT_DELTA "found" (c)
    TOOL_RESULT_END search success (c)
    HINT_BLOCK inbox "note"
    CUSTOM agentscope.REQUEST_STOP {"type":"REQUEST_STOP","id":"1","reason":"stop"}
    MODEL_CALL_START far #2
    TEXT_BLOCK_START
    TEXT_BLOCK_DELTA "Done."
    TEXT_BLOCK_END
    MODEL_CALL_END stop
    AGENT_END success 0/0 tok
    "#);
}

#[test]
fn agents_below_are_told_apart_as_far_as_a_server_does() {
    let below = |kind: &str, fields: &str| payload(kind, &format!(r#""source":"task-1/kid"{fields}"#));
    let events = [
        payload("AGENT_START", r#""name":"worker""#),
        below("AGENT_START", r#","name":"Kid""#),
        below("TEXT_BLOCK_DELTA", r#","delta":"Mine.""#),
        payload("TEXT_BLOCK_DELTA", r#""delta":"Ours.""#),
        below("AGENT_END", ""),
        below("AGENT_START", r#","name":"Kid""#),
        below("TEXT_BLOCK_DELTA", r#","delta":"Again.""#),
        status("success"),
    ];
    insta::assert_snapshot!(read(events, None), @r#"
    AGENT_START far ""
    kid:AGENT_START Kid ""
    kid:MODEL_CALL_START kid #1
    kid:TEXT_BLOCK_START
    kid:TEXT_BLOCK_DELTA "Mine."
    MODEL_CALL_START far #1
    TEXT_BLOCK_START
    TEXT_BLOCK_DELTA "Ours."
    kid:TEXT_BLOCK_END
    kid:MODEL_CALL_END stop
    kid:AGENT_END success 0/0 tok
    kid:AGENT_START Kid ""
    kid:MODEL_CALL_START kid #1
    kid:TEXT_BLOCK_START
    kid:TEXT_BLOCK_DELTA "Again."
    kid:TEXT_BLOCK_END
    kid:MODEL_CALL_END stop
    kid:AGENT_END error 0/0 tok (remote_no_end: the remote sent no end of this agent)
    TEXT_BLOCK_END
    MODEL_CALL_END stop
    AGENT_END success 0/0 tok
    "#);
}

#[test]
fn an_answer_is_completed_from_the_status() {
    /// Returns the texts of the last answer, and the end.
    #[track_caller]
    fn check(events: &[TaskEvent], result: &str, expected: &str) {
        let all = read(events.iter().cloned().chain([status("success")]), Some(result));
        let last = all.rsplit("MODEL_CALL_START").next().unwrap();
        let kept = last.lines().filter_map(|line| line.strip_prefix("TEXT_BLOCK_DELTA "));
        let end = all.lines().last().unwrap();
        assert_eq!(format!("{} {end}", kept.collect::<String>()), expected, "{all}");
    }
    let end = "AGENT_END success 0/0 tok";
    check(&[], "Done.", &format!("\"Done.\" {end}"));
    check(&[text("Done.")], "Done.", &format!("\"Done.\" {end}"));
    // A part was lost at the end, or somewhere else.
    check(&[text("Do")], "Done.", &format!("\"Do\"\"ne.\" {end}"));
    check(&[text("Dne.")], "Done.", &format!("\"Done.\" {end}"));
    // Blocks are joined with line breaks.
    check(&[text("One. "), text("Two.")], "One.\nTwo.", &format!("\"One. \"\"Two.\" {end}"));
    check(
        &[],
        "",
        " AGENT_END error 0/0 tok (remote_no_answer: the remote agent succeeded without an answer)",
    );
}

fn events() -> impl Strategy<Value = TaskEvent> {
    let id = (0..3_u8).prop_map(|id| format!("call-{id}"));
    let kind = prop_oneof![
        Just("AGENT_START"),
        Just("AGENT_END"),
        Just("AGENT_RESULT"),
        Just("MODEL_CALL_START"),
        Just("MODEL_CALL_END"),
        Just("TEXT_BLOCK_DELTA"),
        Just("TEXT_BLOCK_END"),
        Just("THINKING_BLOCK_DELTA"),
        Just("DATA_BLOCK_START"),
        Just("DATA_BLOCK_DELTA"),
        Just("TOOL_CALL_START"),
        Just("TOOL_CALL_DELTA"),
        Just("TOOL_CALL_END"),
        Just("TOOL_RESULT_START"),
        Just("TOOL_RESULT_TEXT_DELTA"),
        Just("TOOL_RESULT_DATA_DELTA"),
        Just("TOOL_RESULT_END"),
        Just("REQUIRE_USER_CONFIRM"),
        Just("USER_CONFIRM_RESULT"),
        Just("HINT_BLOCK"),
        Just("CUSTOM"),
        Just("EXCEED_MAX_ITERS"),
        Just("SUBAGENT_EXPOSED"),
    ];
    let whose = prop_oneof![Just(""), Just(""), Just("task/kid"), Just("task/other")];
    let of_payload = (kind, id.clone(), whose).prop_map(|(kind, id, source)| {
        let call = json!({ "type": "tool_use", "id": id, "name": "search", "input": {} });
        let fields = json!({
            "type": kind, "toolCallId": id, "toolCallName": "search", "delta": "{}", "name": "n",
            "data": { "type": "text", "text": "t" }, "hint": "h", "hintSource": "s", "blockId": "b",
            "maxIters": 1, "currentIter": 1, "value": {}, "toolCalls": [call], "source": source,
            "confirmResults": [{ "confirmed": true, "toolCall": call }], "state": "error",
            "result": { "content": [{ "type": "text", "text": "Done." }] }, "metadata": { EXTRA: {} },
        });
        TaskEvent { payload: Some(fields.to_string()), ..typed(EventType::AgentEvent) }
    });
    let kinds = prop_oneof![
        Just(EventType::RunStarted),
        Just(EventType::RunFinished),
        Just(EventType::TextDelta),
        Just(EventType::ThinkingDelta),
        Just(EventType::ToolCallStart),
        Just(EventType::ToolCallEnd),
        Just(EventType::ToolResult),
        Just(EventType::RequireConfirm),
        Just(EventType::AgentEvent),
    ];
    let of_fields = (kinds, id).prop_map(|(kind, id)| TaskEvent {
        text: Some("text".to_owned()),
        pending_confirms: Some(vec![PendingConfirm {
            tool_call_id: id.clone(),
            ..PendingConfirm::default()
        }]),
        ..call(kind, &id)
    });
    prop_oneof![3 => of_payload, 2 => of_fields]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_order_is_lawful(
        events in prop::collection::vec(events(), 0..40),
        last in prop_oneof![Just("success"), Just("error"), Just("cancelled")],
    ) {
        let mut fold = fold();
        for event in &events {
            prop_assert!(fold.read(event).is_none());
        }
        fold.end(Snapshot {
            status: Some(Status::from(last)), result: Some("The result.".to_owned()), ..Snapshot::default()
        });
        let out = fold.take();
        let mut admission = Admission::new("sub-far".parse().unwrap(), 3);
        let mut ends = 0;
        for event in &out {
            let admitted = admission.admit(event.clone())
                .map_err(|error| TestCaseError::fail(format!("{error}\n{}", shown(&out))))?;
            ends += u32::from(matches!(admitted, Admitted::End { invocation: ROOT, .. }));
        }
        prop_assert_eq!(ends, 1);
    }
}

#[test]
fn what_was_read_is_not_read_again() {
    let mut fold = fold();
    for seq in [1, 2, 2, 1, 3] {
        fold.read(&TaskEvent { seq, ..text(&format!("{seq} ")) });
    }
    let said: Vec<Value> = fold
        .take()
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::TextBlockDelta { delta, .. } => Some(json!(delta)),
            _ => None,
        })
        .collect();
    assert_eq!(json!(said), json!(["1 ", "2 ", "3 "]));
    assert_eq!(fold.last(), 3);
}
