//! The lines of each kind of event.

use std::sync::Arc;

use mainstem::message::{Failure, Message, RateLimit, Role, StopReason};
use mainstem_event::{EventSource, Origin, Rollup, Timestamp};

use super::*;

fn event(of: Option<&str>, kind: EventKind) -> AgentEvent {
    let source = of.map(|id| {
        Arc::new(EventSource {
            agent_key: format!("agent:{id}:1").parse().unwrap(),
            agent_id: id.into(),
            agent_name: None,
            label: None,
            title: None,
            session_id: format!("sub-{id}").parse().unwrap(),
            parent_session_id: "s".parse().unwrap(),
            depth: 1,
            path: format!("s/{id}").into(),
            task_id: None,
            turn: 1,
            parent_tool_call_id: None,
            stream_id: 1,
        })
    });
    let origin = Origin {
        reply_id: Some("r".parse().unwrap()),
        source,
        ..Origin::session("s".parse().unwrap(), None)
    };
    AgentEvent::new(1, Timestamp::default(), origin.into(), kind)
}

fn check(events: &[AgentEvent], expected: &[&str]) {
    let mut lines = Lines::new(Glyphs::UNICODE);
    let lines: Vec<_> = events
        .iter()
        .flat_map(|event| lines.event(event).0)
        .map(|line| format!("{} {}", line.lane, line.text))
        .collect();
    assert_eq!(lines, expected);
}

fn start(of: Option<&str>, task: &str) -> AgentEvent {
    let input = vec![Arc::new(Message::user(task))];
    let name = of.unwrap_or("lead");
    event(of, EventKind::agent_start(name, Role::Assistant, input))
}

fn end(of: Option<&str>, outcome: Outcome, error: Option<&str>) -> AgentEvent {
    let error = error.map(|message| Failure::new("code", message));
    event(of, EventKind::agent_end(outcome, Rollup::default(), 1_250).with_error(error))
}

fn text(of: Option<&str>, delta: &str) -> AgentEvent {
    event(of, EventKind::TextBlockDelta { block_id: "b".parse().unwrap(), delta: delta.to_owned() })
}

fn text_end(of: Option<&str>) -> AgentEvent {
    event(
        of,
        EventKind::TextBlockEnd {
            block_id: "b".parse().unwrap(),
            opaque: Default::default(),
            discarded: false,
        },
    )
}

fn call(of: Option<&str>) -> AgentEvent {
    event(of, EventKind::ToolCallStart { tool_call_id: "c".into(), tool_call_name: "t".into() })
}

#[test]
fn an_agents_life() {
    let a = Some("a");
    check(
        &[
            start(None, "Do\n it"),
            start(a, "Help"),
            end(a, Outcome::Error, Some("no\u{1b}[2J key")),
            end(None, Outcome::Cancelled, Some("x")),
        ],
        &[
            "0 started: Do it",
            "1 started by #1: Help",
            "1 ✖ failed, 1.2s, 0 tok: no key",
            "0 ■ cancelled, 1.2s, 0 tok",
        ],
    );
}

#[test]
fn nothing_foreign_reaches_the_terminal_as_it_is() {
    let (name, evil) = (Some("a"), "\u{1b}]0;x\u{7}t\u{202e}");
    let result = EventKind::tool_result_end("c", evil, ToolState::Success, 1);
    let fallback = EventKind::model_fallback(evil, evil, Failure::new(evil, evil));
    check(&[event(name, result), event(name, fallback)], &["0 ✔ t 0.0s", "0 ! t failed, t is asked: t: t"]);
}

#[test]
fn text_comes_in_lines() {
    let a = Some("a");
    let long = "word ".repeat(30);
    check(
        &[
            text(a, "one\ntw"),
            text(a, "o\n\n  indented\u{1b}[31m\t"),
            text(a, &long),
            text_end(a),
            text_end(a),
        ],
        &[
            "0 one",
            "0 two",
            "0   indented\tword word word word word word word word word word word word word word word word",
            "0 word word word word word word word word word word word word word word",
        ],
    );
}

#[test]
fn the_roots_reply_is_no_progress() {
    check(&[text(None, "Let me see."), text_end(None), call(None)], &["0 Let me see."]);
    check(
        &[text(None, "Hi."), text_end(None), end(None, Outcome::Success, None)],
        &["0 ✔ done, 1.2s, 0 tok"],
    );
    check(
        &[text(None, "Hi."), end(None, Outcome::Error, Some("cut"))],
        &["0 Hi.", "0 ✖ failed, 1.2s, 0 tok: cut"],
    );
}

#[test]
fn tools_tell_what_they_do_and_why_they_fail() {
    let a = Some("a");
    let begin = |name: &str| {
        let input = serde_json::json!({ "q": "x".repeat(200) });
        event(a, EventKind::tool_result_start("c", name, input))
    };
    let said =
        event(a, EventKind::ToolResultTextDelta { tool_call_id: "c".into(), delta: "bad\nluck".into() });
    let done = |name: &str, state| event(a, EventKind::tool_result_end("c", name, state, 400));
    let started = format!("0 → find {{\"q\":\"{}…", "x".repeat(114));
    check(
        &[
            begin("find"),
            said.clone(),
            done("find", ToolState::Success),
            said.clone(),
            done("find", ToolState::Error),
            done("find", ToolState::Interrupted),
        ],
        &[&started, "0 ✔ find 0.4s", "0 ✖ find failed, 0.4s: bad luck", "0 ■ find interrupted, 0.4s"],
    );
    check(
        &[
            begin("agent_spawn"),
            done("agent_spawn", ToolState::Success),
            said,
            done("agent_spawn", ToolState::Error),
        ],
        &["0 ✖ agent_spawn failed, 0.4s: bad luck"],
    );
}

#[test]
fn what_goes_wrong_on_the_way_is_told() {
    let failure = || Failure::new("rate_limited", "too many requests");
    let all = [
        EventKind::rate_limit_wait(RateLimit::Tokens, 0).with_wait_ms(1_500),
        EventKind::rate_limit_passed(1_500),
        EventKind::model_retry(1, 500, failure()),
        EventKind::model_fallback("a", "b", failure()),
        EventKind::StreamFallback { reason: "no streams here".to_owned() },
        EventKind::ExceedMaxIters { max_iters: 3, current_iter: 3 },
        EventKind::model_call_end(StopReason::Stop, 1),
        EventKind::Custom { name: "delegating".to_owned(), value: 1.into() },
        EventKind::Custom { name: "other".to_owned(), value: 1.into() },
        EventKind::Custom {
            name: "server_tool".to_owned(),
            value: serde_json::json!({ "tool": "web_search", "input": { "query": "weather" } }),
        },
    ];
    check(
        &all.map(|kind| event(None, kind)),
        &[
            "0 waits for the rate limit of tokens, 1.5s",
            "0 ! attempt 1 failed, next in 0.5s: too many requests",
            "0 ! a failed, b is asked: rate_limited: too many requests",
            "0 ! the reply comes in one piece: no streams here",
            "0 ! the limit of 3 turns",
            "0 delegates",
            "0 its vendor runs web_search {\"query\":\"weather\"}",
        ],
    );
}
