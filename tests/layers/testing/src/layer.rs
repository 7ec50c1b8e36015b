//! A test over `mainstem-testing` alone: events that keep the laws, and a timeline for a
//! snapshot.

use mainstem_testing::{
    event::{EventKind, SessionLog},
    laws, render,
};

#[test]
fn a_timeline_is_a_text_to_pin() {
    let log = SessionLog::new("session-1".parse().unwrap());
    let mut reader = log.subscribe();
    for number in 1..=2 {
        log.emit(EventKind::Custom { name: "step".into(), value: number.into() });
    }

    let mut events: Vec<_> = std::iter::from_fn(|| reader.try_next()).collect();
    laws(&events).expect("a log keeps the laws");
    assert_eq!(render(&events).lines().count(), 2);

    // The same events in another order break a law, which the violation names.
    events.reverse();
    assert!(laws(&events).is_err());
}
