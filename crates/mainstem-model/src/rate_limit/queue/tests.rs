//! The order of calls.

use super::*;

/// Returns the sessions in the order in which their calls are served.
fn served(queue: &mut Queue, waiting: &mut Vec<(Ticket, String)>) -> Vec<String> {
    let now = Instant::now();
    let mut order = Vec::new();
    while !waiting.is_empty() {
        let turn = waiting.iter().position(|(ticket, _)| queue.is_turn(*ticket, Waker::noop(), now));
        let (ticket, session) = waiting.remove(turn.expect("one of them has its turn"));
        queue.served(ticket);
        order.push(session);
    }
    order
}

fn check(joined: &str, order: &str) {
    let mut queue = Queue::default();
    let mut waiting = Vec::new();
    for (number, session) in joined.split(' ').enumerate() {
        waiting.push((queue.join(&session.into()), format!("{session}{number}")));
    }
    assert_eq!(served(&mut queue, &mut waiting).join(" "), order, "{joined}");
}

#[test]
fn sessions_take_turns_and_their_calls_keep_their_order() {
    check("a a a", "a0 a1 a2");
    check("a a a b", "a0 b3 a1 a2");
    check("a a b b c", "a0 b2 c4 a1 b3");
    check("b a a a", "b0 a1 a2 a3");
}

#[test]
fn a_session_that_comes_later_is_next() {
    let mut queue = Queue::default();
    let a: Arc<str> = "a".into();
    let mut waiting: Vec<_> = (0..5).map(|number| (queue.join(&a), format!("a{number}"))).collect();
    for _ in 0..2 {
        let (ticket, _) = waiting.remove(0);
        queue.served(ticket);
    }
    waiting.push((queue.join(&"b".into()), "b".to_owned()));
    assert_eq!(queue.ahead(waiting[3].0), 1);
    assert_eq!(served(&mut queue, &mut waiting).join(" "), "a2 b a3 a4");
}

#[test]
fn a_call_that_does_not_poll_is_passed_over_until_it_does() {
    let mut queue = Queue::default();
    let (a, b) = (queue.join(&"a".into()), queue.join(&"b".into()));
    let start = Instant::now();
    assert!(queue.is_turn(a, Waker::noop(), start));
    assert!(!queue.is_turn(b, Waker::noop(), start));
    queue.wake_first(start);
    assert!(!queue.is_turn(b, Waker::noop(), start + PATIENCE / 2));
    assert!(queue.is_turn(b, Waker::noop(), start + PATIENCE));
    assert!(queue.is_turn(a, Waker::noop(), start + PATIENCE));
    assert!(!queue.is_turn(b, Waker::noop(), start + PATIENCE));
    assert!(!queue.is_turn(b, Waker::noop(), start + 9 * PATIENCE));
}

#[test]
fn sessions_that_have_left_are_forgotten() {
    let mut queue = Queue::default();
    for number in 0..10_000 {
        let ticket = queue.join(&number.to_string().into());
        queue.served(ticket);
    }
    assert!(queue.sessions.is_empty() && queue.waiting.is_empty());
}

#[test]
fn calls_that_left_do_not_count() {
    let mut queue = Queue::default();
    let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
    let dropped: Vec<_> = (0..500).map(|_| queue.join(&a)).collect();
    dropped.into_iter().for_each(|ticket| queue.leave(ticket));
    let mut waiting: Vec<_> = (0..3).map(|number| (queue.join(&b), format!("b{number}"))).collect();
    waiting.push((queue.join(&a), "a".to_owned()));
    assert_eq!(served(&mut queue, &mut waiting).join(" "), "b0 a b1 b2");
}
