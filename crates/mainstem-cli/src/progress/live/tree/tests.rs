//! The activities of agents.

use mainstem::message::RateLimit;

use super::*;
use crate::progress::fixture;

fn activities(seconds: f64) -> Vec<String> {
    let mut tree = Tree::new(Glyphs::UNICODE);
    let events = fixture::demo();
    let now = Timestamp::from_micros(events[0].at.as_micros() + (seconds * 1e6) as u64);
    events.iter().take_while(|event| event.at <= now).for_each(|event| tree.event(event));
    let rows = tree.running(now);
    rows.into_iter().map(|row| format!("{}: {}", row.name, row.activity)).collect()
}

#[test]
fn a_row_says_what_its_agent_waits_for() {
    assert_eq!(activities(0.1), ["main: waits for its model"]);
    assert_eq!(activities(0.6), ["main: writes"]);
    assert_eq!(
        activities(1.65),
        [
            "main: waits for 3 agents",
            "main › reviewer#1: thinks",
            "main › reviewer#2: waits for its model",
            "main › tester: writes",
            "main › reviewer#3: waits for its model",
        ]
    );
    let later = activities(3.5);
    assert!(later.contains(&"main › tester › runner: ✖ run_tests failed".to_owned()), "{later:#?}");
}

#[test]
fn a_row_says_that_its_agent_waits_for_a_rate_limit() {
    let mut events = fixture::demo();
    events.truncate(2);
    let wait = EventKind::rate_limit_wait(RateLimit::Tokens, 3).with_wait_ms(1_500);
    let last = events[1].clone();
    let mut next = |kind| {
        let seq = events.last().unwrap().seq + 1;
        events.push(AgentEvent::new(seq, last.at, last.origin.clone(), kind));
        let mut tree = Tree::new(Glyphs::UNICODE);
        events.iter().for_each(|event| tree.event(event));
        tree.running(last.at).into_iter().map(|row| row.activity).collect::<Vec<_>>()
    };
    assert_eq!(next(wait), ["waits for the rate limit of tokens, 1.5s, behind 3 calls"]);
    assert_eq!(next(EventKind::rate_limit_passed(2_000)), ["waits for its model"]);
}

#[test]
fn who_ended_is_told_once() {
    let mut tree = Tree::new(Glyphs::UNICODE);
    let mut ended = Vec::new();
    for event in fixture::demo() {
        tree.event(&event);
        ended.extend(
            tree.take_ended(event.at).into_iter().map(|row| format!("{} {}", row.name, row.activity)),
        );
    }
    ended.sort();
    assert_eq!(
        ended,
        [
            "main done",
            "main › reviewer#1 done",
            "main › reviewer#2 done",
            "main › reviewer#3 done",
            "main › tester done",
            "main › tester › runner done"
        ]
    );
}
