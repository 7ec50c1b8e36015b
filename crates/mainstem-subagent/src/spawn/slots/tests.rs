//! Slots that are taken, lent and taken back, poll by poll.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use mainstem_event::{EventSink, EventSource, Origin, SessionLog};

use super::*;

fn child(session: &str) -> RunContext {
    let sink =
        EventSink::root(SessionLog::new("s".parse().unwrap()), Origin::session("s".parse().unwrap(), None));
    let source = EventSource {
        agent_key: format!("agent:kid:{session}").parse().unwrap(),
        agent_id: "kid".into(),
        agent_name: None,
        label: None,
        session_id: session.parse().unwrap(),
        parent_session_id: "s".parse().unwrap(),
        depth: 1,
        path: "s/kid".into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: None,
        stream_id: 0,
    };
    RunContext::root("main", sink).build().child(source, format!("reply-{session}").parse().unwrap())
}

/// An agent with its context and the number of its waiting calls.
struct Agent {
    cx: RunContext,
    run: Option<Arc<RunSlots>>,
    waits: Arc<Waits>,
}

impl Agent {
    fn new(session: &str) -> Self {
        Self { cx: child(session), run: None, waits: Arc::default() }
    }

    fn caller(&self) -> Caller<'_> {
        Caller { cx: &self.cx, run: self.run.as_deref(), waits: &self.waits }
    }

    fn key(&self) -> AgentKey {
        self.cx.agent_key().unwrap().clone()
    }
}

fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[test]
fn an_agent_that_waits_lends_its_slot_and_holds_one_again_afterwards() {
    let (slots, one, two) = (Slots::new(1), Agent::new("one"), Agent::new("two"));
    let mut slot = now(slots.enter(one.caller())).unwrap().unwrap();
    slot.belongs_to(&one.key());
    assert!(now(slots.enter(two.caller())).is_none());
    let lent = slots.lend(one.caller());
    let other = now(slots.enter(two.caller())).unwrap().unwrap();
    let mut back = Box::pin(lent.take_back());
    assert!(now(back.as_mut()).is_none());
    drop(other);
    assert!(now(back.as_mut()).is_some());
    assert!(now(slots.enter(two.caller())).is_none());
    drop(slot);
    assert!(now(slots.enter(two.caller())).is_some());
}

#[test]
fn the_first_to_come_goes_first_in_any_order_of_polls() {
    let (slots, cx) = (Slots::new(2), Agent::new("one"));
    let held =
        [now(slots.enter(cx.caller())).unwrap().unwrap(), now(slots.enter(cx.caller())).unwrap().unwrap()];
    let (mut first, mut second) = (Box::pin(slots.enter(cx.caller())), Box::pin(slots.enter(cx.caller())));
    assert!(now(first.as_mut()).is_none() && now(second.as_mut()).is_none());
    drop(held);
    assert!(now(second.as_mut()).is_none(), "both have permits, but it is not its turn");
    assert!(now(first.as_mut()).is_some());
    assert!(now(second.as_mut()).is_some());
}

#[test]
fn an_agent_that_moves_to_the_background_waits_in_the_queue_there() {
    let (slots, cx, one) = (Slots::new(1), Agent::new("other"), Agent::new("one"));
    let _other = now(slots.enter(cx.caller())).unwrap().unwrap();
    let mut waits = Box::pin(slots.enter(one.caller()));
    assert!(now(waits.as_mut()).is_none());
    one.cx.sink().move_to_background("task-1".parse().unwrap());
    slots.notify_moved();
    let mut slot = now(waits.as_mut()).unwrap().unwrap();
    slot.belongs_to(&one.key());
    let lent = slots.lend(one.caller());
    assert!(slots.try_enter(cx.caller()).is_none() && now(lent.take_back()).is_some());
    assert!(slots.try_enter(one.caller()).is_none());
    drop(slot);
    assert!(slots.try_enter(one.caller()).is_some());
}

#[test]
fn a_call_that_begins_to_wait_while_another_goes_on_leaves_no_slot_held() {
    let (slots, one, two) = (Slots::new(1), Agent::new("one"), Agent::new("two"));
    let mut slot = now(slots.enter(one.caller())).unwrap().unwrap();
    slot.belongs_to(&one.key());
    let first = slots.lend(one.caller());
    let other = now(slots.enter(two.caller())).unwrap().unwrap();
    let mut back = Box::pin(first.take_back());
    assert!(now(back.as_mut()).is_none());
    let second = slots.lend(one.caller());
    drop(other);
    assert!(now(back.as_mut()).is_some());
    // The first goes on, but the child still waits for what the second began: that must find a
    // slot.
    assert!(now(slots.enter(two.caller())).is_some());
    assert!(now(second.take_back()).is_some());
    assert!(now(slots.enter(two.caller())).is_none());
}

#[test]
fn two_calls_of_one_child_wait_for_one_slot() {
    let (slots, one, two) = (Slots::new(1), Agent::new("one"), Agent::new("two"));
    let mut slot = now(slots.enter(one.caller())).unwrap().unwrap();
    slot.belongs_to(&one.key());
    let first = slots.lend(one.caller());
    let other = now(slots.enter(two.caller())).unwrap().unwrap();
    let mut first = Box::pin(first.take_back());
    assert!(now(first.as_mut()).is_none());
    // A second call begins to wait and stops; the child still has no slot.
    let mut second = Box::pin(slots.lend(one.caller()).take_back());
    assert!(now(second.as_mut()).is_none());
    drop(other);
    assert!(now(first.as_mut()).is_some());
    assert!(now(second.as_mut()).is_some(), "it is the same child's slot");
    assert!(now(slots.enter(two.caller())).is_none());
    drop(slot);
    assert!(now(slots.enter(two.caller())).is_some());
}

#[test]
fn a_child_that_moves_while_it_waits_takes_permits_of_one_kind() {
    let slots = Slots::new(1);
    let run = Arc::new(RunSlots::new(1));
    let child = |session| Agent { run: Some(run.clone()), ..Agent::new(session) };
    let (one, two, task) = (child("one"), child("two"), child("task"));
    task.cx.sink().move_to_background("task-2".parse().unwrap());
    let first = now(slots.enter(one.caller())).unwrap().unwrap();
    let mut second = Box::pin(slots.enter(two.caller()));
    assert!(now(second.as_mut()).is_none());
    // It is part of a task from now on; the set notifies it later.
    two.cx.sink().move_to_background("task-1".parse().unwrap());
    drop(first);
    let _second = now(second.as_mut()).unwrap().unwrap();
    assert!(now(slots.enter(one.caller())).is_none());
    assert!(now(slots.enter(task.caller())).is_some(), "the permits in the background are free");
}

#[test]
fn a_child_that_left_takes_nothing_back() {
    let (slots, one, two) = (Slots::new(1), Agent::new("one"), Agent::new("two"));
    let mut slot = now(slots.enter(one.caller())).unwrap().unwrap();
    slot.belongs_to(&one.key());
    let lent = slots.lend(one.caller());
    // Its next turn has begun before the slot of this one is given back.
    let mut next = now(slots.enter(one.caller())).unwrap().unwrap();
    next.belongs_to(&one.key());
    drop(slot);
    assert!(now(lent.take_back()).is_some());
    let lent = slots.lend(one.caller());
    assert!(now(slots.enter(two.caller())).is_some());
    drop(lent);
    drop(next);
    assert!(slots.held.is_empty());
}
