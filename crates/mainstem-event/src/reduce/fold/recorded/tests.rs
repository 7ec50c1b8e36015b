//! What the record of a turn tells the process that continues it.

use serde_json::{Map, json};

use super::*;
use crate::{ConfirmResult, Outcome, fixture::*};

fn request() -> (ConfirmId, Vec<ToolCall>) {
    ("confirm-1".parse().unwrap(), vec![ToolCall::new("call-1", "shell", "{}")])
}

/// A child `a` with a child `a/b`, beside a child `c`; each model call costs 5.
fn recorded() -> RecordedTurn {
    let (id, calls) = request();
    let answered_before = ConfirmResult::confirmed(calls[0].clone());
    let all = [
        ("a", start("go")),
        ("c", start("beside")),
        ("a", ask()),
        ("c", ask()),
        ("a", answered()),
        ("a", EventKind::require_user_confirm("confirm-0".parse().unwrap(), calls.clone())),
        (
            "a",
            EventKind::UserConfirmResult {
                confirm_id: "confirm-0".parse().unwrap(),
                confirm_results: vec![answered_before],
            },
        ),
        ("a/b", start("look")),
        ("a/b", ask()),
        ("a/b", answered()),
        ("a/b", result("seen")),
        ("a/b", EventKind::agent_end(Outcome::Success, of_one_call(), 7)),
        ("a", ask()),
        ("a", text_start("t")),
        ("a", text("t", "I th")),
        ("a", EventKind::require_user_confirm(id, calls)),
        ("c", text_start("u")),
    ];
    let mut events = events(all);
    let id: Map<_, _> = [("remoteId".to_owned(), json!("far.9"))].into_iter().collect();
    events[14] = events[14].clone().with_metadata(id);
    let mut turn = RecordedTurn::begun_by(&events[0]).unwrap();
    events[1..].iter().for_each(|event| turn.apply(event, |_, _| Some(5)));
    turn
}

fn of_one_call() -> Rollup {
    let mut usage = Rollup::nothing();
    usage.add_own(Usage::new(10, 2), Some(5));
    usage
}

#[test]
fn a_turn_has_the_events_of_its_own_and_of_those_below() {
    let RecordedTurn { own, below } = recorded();
    assert_eq!((own.events, own.is_over, own.latest.0), (5, false, 16));
    let shown: Vec<_> = below.iter().map(|one| (one.events, one.has_result, one.is_over)).collect();
    assert_eq!(shown, [(2, true, true)]);
    assert_eq!(below[0].origin.source.as_ref().unwrap().agent_id, "b".into());
    assert_eq!(own.remote_id, Some((5, "far.9".to_owned())));
}

#[test]
fn a_turn_has_what_it_used_and_what_waits() {
    let RecordedTurn { mut own, .. } = recorded();
    let mut usage = of_one_call();
    usage.add_child(&of_one_call());
    assert_eq!(own.usage, usage);
    assert_eq!(own.requests, [request()].into());
    let open = own.transcript.next_closing(mainstem_message::StopReason::Cancelled);
    assert!(matches!(open, Some(EventKind::TextBlockEnd { .. })), "{open:?}");
    own.transcript.apply(&open.unwrap());
}

#[test]
fn the_turn_of_a_root_is_continued_by_no_other_process() {
    let events = events([("", start("go")), ("a", ask())]);
    assert!(events.iter().all(|event| RecordedTurn::begun_by(event).is_none()));
}

#[test]
fn the_caller_of_an_agent_has_its_usage() {
    let ended = || EventKind::agent_end(Outcome::Success, of_one_call(), 7);
    // `a` calls `a/b`, which calls `a/b/c`; then `a` sends `a/b/c` a message.
    let all = [
        ("a", "zero", start("go")),
        ("a", "zero", called("one")),
        ("a/b", "one", start("look")),
        ("a/b", "one", called("two")),
        ("a/b/c", "two", start("dig")),
        ("a/b/c", "two", ended()),
        ("a/b", "one", EventKind::agent_end(Outcome::Success, Rollup::nothing(), 7)),
        ("a", "zero", called("three")),
        ("a/b/c", "three", start("again")),
        ("a/b/c", "three", ended()),
    ];
    let event_of = |(seq, (path, call, kind)): (u64, (&str, &str, EventKind))| {
        let mut origin = origin(path);
        Arc::make_mut(origin.source.as_mut().unwrap()).parent_tool_call_id = Some(call.into());
        origin.reply_id = Some(call.parse().unwrap());
        AgentEvent::new(seq, NOW, Arc::new(origin), kind)
    };
    let events: Vec<_> = (1..).zip(all).map(event_of).collect();
    let mut turn = RecordedTurn::begun_by(&events[0]).unwrap();
    events[1..].iter().for_each(|event| turn.apply(event, |_, _| None));
    assert_eq!(turn.below.iter().map(|one| one.caller).collect::<Vec<_>>(), [0, 1, 0]);
    let mut usage = Rollup::nothing();
    usage.add_child(&of_one_call());
    assert_eq!(turn.below[0].usage, usage);
    usage.add_child(&Rollup::nothing());
    assert_eq!(turn.own.usage, usage);
}
