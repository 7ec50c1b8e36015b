//! Events in, diagnostics out.

use std::sync::Arc;

use super::*;
use crate::{EventSource, Origin, Outcome, Timestamp, fixture::*};

fn at(seq: u64, millis: u64, path: &str, turn: u32, kind: EventKind) -> AgentEvent {
    let source = (!path.is_empty()).then(|| Arc::new(EventSource { turn, ..source(path) }));
    let origin = Origin { source, ..origin(path) };
    AgentEvent::new(seq, Timestamp::from_micros(millis * 1000), Arc::new(origin), kind)
}

fn lost(from_seq: u64, to_seq: u64, per_agent: &[(&str, u64)]) -> AgentEvent {
    let per_agent = per_agent.iter().map(|(name, count)| (name.parse().unwrap(), *count)).collect();
    let kind = EventKind::Gap { from_seq, to_seq, missed: to_seq - from_seq + 1, per_agent, reason: None };
    AgentEvent::new(to_seq, NOW, Arc::new(Origin::session("s".parse().unwrap(), None)), kind)
}

fn ended(duration_ms: u64) -> EventKind {
    EventKind::AgentEnd { outcome: Outcome::Success, error: None, usage: Default::default(), duration_ms }
}

fn of(events: &[AgentEvent]) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    events.iter().for_each(|event| diagnostics.apply(event));
    diagnostics
}

fn check(events: &[AgentEvent], expected: &str) {
    let shown: Vec<_> = of(events).to_string().lines().map(|line| line.trim_end().to_owned()).collect();
    let expected: Vec<_> = expected.trim_matches('\n').lines().collect();
    assert_eq!(shown, expected, "\n{}", shown.join("\n"));
}

#[test]
fn tables() {
    check(&[], "agent  events  read  lost  unread  gaps  first token  work");
    let fallback = EventKind::StreamFallback { reason: "no streams here".to_owned() };
    check(
        &[
            at(1, 0, "", 1, start("go")),
            at(2, 10, "a", 1, start("x")),
            at(3, 11, "a", 1, ask()),
            at(4, 30, "a", 1, thinking("1", "hm")),
            at(5, 40, "a", 1, text("2", "So")),
            at(6, 50, "a", 1, ended(40)),
            at(7, 60, "b", 1, start("x")),
            at(8, 60, "b", 1, ask()),
            at(9, 90, "b", 1, fallback),
            at(10, 90, "b", 1, text("1", "All of it")),
            at(11, 99, "a", 2, start("y")),
        ],
        "
agent       events  read  lost  unread  gaps  first token   work
main             1     1     0       0     0            -   0 ms
  a              5     5     0       0     0        20 ms  40 ms
  b              4     4     0       0     0        30 ms  30 ms  not streamed: no streams here
  a turn 2       1     1     0       0     0            -   0 ms",
    );
}

#[test]
fn what_was_lost_belongs_to_somebody_and_hides_the_first_token() {
    let diagnostics = of(&[
        at(1, 0, "", 1, start("go")),
        at(2, 0, "a", 1, start("x")),
        at(3, 0, "a", 1, ask()),
        lost(4, 10, &[("agent:a", 4), ("agent:b", 2), ("root", 1)]),
        at(11, 70, "a", 1, text("1", "late")),
        at(12, 80, "b", 1, ask()),
        at(13, 90, "b", 1, ended(85)),
    ]);
    assert_eq!((diagnostics.received(), diagnostics.forwarded, diagnostics.lost), (13, 6, 7));
    let shown = |at: usize| {
        let it = &diagnostics.invocations[at];
        (&*it.agent_id, it.received, it.forwarded, it.lost, it.gaps, it.first_token_ms, it.work_ms)
    };
    assert_eq!(shown(0), ("main", 2, 1, 1, 1, None, Some(0)));
    assert_eq!(shown(1), ("a", 7, 3, 4, 1, None, Some(70)));
    assert_eq!(shown(2), ("b", 4, 2, 2, 1, None, Some(85)));
    assert_eq!(diagnostics.invocations[1].call_first_token_ms, [Some(70)], "of a call whose start is known");
}

#[test]
fn each_model_call_has_its_first_token() {
    let diagnostics = of(&[
        at(1, 0, "a", 1, start("x")),
        at(2, 5, "a", 1, ask()),
        at(3, 8, "a", 1, text("1", "one")),
        at(4, 9, "a", 1, text("1", "two")),
        at(5, 9, "a", 1, answered()),
        at(6, 10, "a", 1, ask()),
        at(7, 19, "a", 1, answered()),
        at(8, 20, "a", 1, ask()),
        at(9, 27, "a", 1, thinking("3", "hm")),
    ]);
    assert_eq!(diagnostics.invocations[0].call_first_token_ms, [Some(3), None, Some(7)]);
    assert_eq!(diagnostics.invocations[0].first_token_ms, Some(8));
}

#[test]
fn what_nobody_read_and_what_nobody_knows_is_said() {
    let mut diagnostics = of(&[at(1, 0, "a", 1, start("x"))]);
    diagnostics.apply_unread(&lost(2, 4, &[]));
    diagnostics.apply_unread(&at(5, 0, "a", 1, ask()));
    diagnostics.apply_unread(&at(5, 0, "a", 1, ask()));
    let it = &diagnostics.invocations[0];
    assert_eq!((it.received, it.forwarded, it.lost, it.unread, it.gaps), (2, 1, 0, 1, 0));
    assert_eq!((diagnostics.unread, diagnostics.lost, diagnostics.unknown), (1, 0, 3));
    let last = diagnostics.to_string().lines().last().unwrap().to_owned();
    assert_eq!(last, "3 earlier events were no longer kept when this was asked for");
}

#[test]
fn twins_are_numbered_and_tasks_marked() {
    let twin = |seq, key: &str| {
        let source = EventSource {
            agent_key: key.parse().unwrap(),
            task_id: Some("task-1".parse().unwrap()),
            ..source("a")
        };
        let origin = Origin { source: Some(Arc::new(source)), ..origin("a") };
        AgentEvent::new(seq, NOW, Arc::new(origin), start("x"))
    };
    let table = of(&[twin(1, "one"), twin(2, "two")]).to_string();
    let names: Vec<_> =
        table.lines().skip(1).map(|line| line.split("  ").nth(1).unwrap().to_owned()).collect();
    assert_eq!(names, ["a#1 (task)", "a#2 (task)"]);
}

#[test]
fn it_goes_on_where_its_json_stopped() {
    let all = [
        at(1, 0, "a", 1, start("x")),
        at(2, 3, "a", 1, ask()),
        at(3, 5, "b", 1, start("y")),
        at(4, 9, "a", 2, start("z")),
    ];
    for cut in 0..=all.len() {
        let json = serde_json::to_value(of(&all[..cut])).unwrap();
        let mut read: Diagnostics = serde_json::from_value(json).unwrap();
        all[cut..].iter().for_each(|event| read.apply(event));
        let counts =
            |it: &Diagnostics| it.invocations.iter().map(|it| (it.received, it.turn)).collect::<Vec<_>>();
        assert_eq!(counts(&read), counts(&of(&all)), "cut at {cut}");
    }
}

#[test]
fn the_json_is_what_the_schema_says() {
    let kinds = EventKind::examples();
    let diagnostics = of(&events(kinds.into_iter().map(|kind| ("a", kind))));
    let schema = jsonschema::draft202012::new(schemars::schema_for!(Diagnostics).as_value()).unwrap();
    let json = serde_json::to_value(&diagnostics).unwrap();
    assert!(schema.is_valid(&json), "{json}");
    assert!(json["invocations"][0]["callFirstTokenMs"].is_array(), "{json}");
}
