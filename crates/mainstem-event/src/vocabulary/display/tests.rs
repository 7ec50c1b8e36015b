//! Events as lines for people.

use mainstem_message::{Failure, ToolCall};

use super::*;
use crate::fixture::*;

#[test]
fn every_kind_is_one_line() {
    let lines = (9..).zip(EventKind::examples()).map(|(seq, kind)| {
        let path = if seq % 2 == 0 { "" } else { "reviewer" };
        event(seq, path, kind).to_string()
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
     9 reviewer AGENT_START reviewer "review this"
    10 main AGENT_RESULT "Looks good."
    11 reviewer AGENT_END error 150/300 tok (rate_limited: api.example.com: too many requests)
    12 main MODEL_CALL_START gpt-4o-mini #1
    13 reviewer MODEL_CALL_END tool_calls
    14 main RATE_LIMIT_WAIT tokens behind 2, in 1500 ms (rate_limited: api.example.com: too many requests)
    15 reviewer RATE_LIMIT_PASSED after 2100 ms
    16 main MODEL_RETRY #1 in 500 ms (rate_limited: api.example.com: too many requests), takes back 1 block and 1 call
    17 reviewer MODEL_FALLBACK gpt-4o → gpt-4o-mini (rate_limited: api.example.com: too many requests)
    18 main TEXT_BLOCK_START
    19 reviewer TEXT_BLOCK_DELTA "Hello"
    20 main TEXT_BLOCK_END
    21 reviewer THINKING_BLOCK_START
    22 main THINKING_BLOCK_DELTA "Let me see"
    23 reviewer THINKING_BLOCK_END
    24 main DATA_BLOCK_START image/png
    25 reviewer DATA_BLOCK_DELTA "iVBORw0KGgo="
    26 main DATA_BLOCK_END
    27 reviewer TOOL_CALL_START search (call-1)
    28 main TOOL_CALL_DELTA "{\"query\":" (call-1)
    29 reviewer TOOL_CALL_END search (call-1)
    30 main TOOL_RESULT_START search {"query":"rust"} (call-1)
    31 reviewer TOOL_RESULT_TEXT_DELTA "42 hits" (call-1)
    32 main TOOL_RESULT_DATA_DELTA "more" (call-1)
    33 reviewer TOOL_RESULT_END search success (call-1)
    34 main REQUIRE_USER_CONFIRM search
    35 reviewer USER_CONFIRM_RESULT search no, search withdrawn
    36 main REQUIRE_EXTERNAL_EXECUTION search
    37 reviewer EXTERNAL_EXECUTION_RESULT search success
    38 main ALL_TOOLS_DENIED search
    39 reviewer RUN_CANCELLED cancelled by the user (over HTTP)
    40 main HINT_BLOCK task_delivery "<system-reminder>…</system-reminder>"
    41 reviewer EXCEED_MAX_ITERS 10/10
    42 main STREAM_FALLBACK the server answered without a stream
    43 reviewer TASK_UPDATED task-1 running → failed (rate_limited: api.example.com: too many requests)
    44 main MESSAGE_SENT agent:reviewer:1 steer "and the tests?"
    45 reviewer AGENT_CLOSED agent:reviewer:1
    46 main PLAN_MODE_CHANGED on
    47 reviewer STATE_CHECKPOINT agent:reviewer:1 messages=1
    48 main GAP 5 missed (5–9)
    49 reviewer CUSTOM progress {"percent":40}
    50 main FROM_THE_FUTURE
    "#);
}

#[test]
fn an_agent_is_shown_by_its_name_if_it_has_one() {
    let mut named = origin("reviewer");
    let source = crate::EventSource { agent_name: Some("Rita".into()), ..source("reviewer") };
    named.source = Some(std::sync::Arc::new(source));
    let event = AgentEvent::new(7, NOW, std::sync::Arc::new(named), text_start("b"));
    assert_eq!(event.to_string(), "   7 Rita TEXT_BLOCK_START");
}

#[test]
fn what_is_long_is_cut_between_characters() {
    let long = "ü".repeat(81);
    let check = |kind: EventKind, expected: String| assert_eq!(kind.to_string(), expected);
    check(text("b", &long), format!("TEXT_BLOCK_DELTA \"{}\"…", "ü".repeat(80)));
    check(text("b", &long[2..]), format!("TEXT_BLOCK_DELTA \"{}\"", "ü".repeat(80)));
    let custom = EventKind::Custom { name: "n".into(), value: long.into() };
    check(custom, format!("CUSTOM n \"{}…", "ü".repeat(79)));
}

/// Names, codes and messages come from models and servers.
#[test]
fn a_terminal_is_never_sent_a_control() {
    let evil = "a\u{1b}[2J\r\nb\u{202e}c";
    let shown = r"a\u{1b}[2J\r\nb\u{202e}c";
    let calls = vec![ToolCall::new("1", evil, "")];
    let kinds = [
        start(evil),
        text("b", evil),
        EventKind::ToolCallStart { tool_call_id: evil.into(), tool_call_name: evil.into() },
        EventKind::AllToolsDenied { denied_tool_calls: calls },
        EventKind::StreamFallback { reason: evil.into() },
        EventKind::model_retry(1, 0, Failure::new(evil, evil)),
        EventKind::Custom { name: evil.into(), value: evil.into() },
        EventKind::Unknown { name: evil.into(), value: [].into_iter().collect() },
    ];
    for kind in kinds {
        let line = event(1, evil, kind).to_string();
        assert!(!line.contains(char::is_control) && !line.contains('\u{202e}'), "{line:?}");
        assert!(line.contains(shown), "{line}");
    }
}
