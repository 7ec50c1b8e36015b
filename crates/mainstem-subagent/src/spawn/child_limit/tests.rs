//! Slots that are taken, released and taken back, poll by poll.

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
        title: None,
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
    run: Option<Arc<RunChildLimit>>,
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
fn an_agent_releases_its_permit_while_it_waits() {
    let (limit, one, two) = (ChildLimit::new(1), Agent::new("one"), Agent::new("two"));
    let mut permit = now(limit.acquire(one.caller())).unwrap().unwrap();
    permit.set_child(&one.key());
    assert!(now(limit.acquire(two.caller())).is_none());
    let released = limit.release_while_waiting(one.caller());
    let other = now(limit.acquire(two.caller())).unwrap().unwrap();
    let mut back = Box::pin(released.reacquire());
    assert!(now(back.as_mut()).is_none());
    drop(other);
    assert!(now(back.as_mut()).is_some());
    assert!(now(limit.acquire(two.caller())).is_none());
    drop(permit);
    assert!(now(limit.acquire(two.caller())).is_some());
}

#[test]
fn the_first_to_come_goes_first_in_any_order_of_polls() {
    let (limit, cx) = (ChildLimit::new(2), Agent::new("one"));
    let held = [
        now(limit.acquire(cx.caller())).unwrap().unwrap(),
        now(limit.acquire(cx.caller())).unwrap().unwrap(),
    ];
    let (mut first, mut second) =
        (Box::pin(limit.acquire(cx.caller())), Box::pin(limit.acquire(cx.caller())));
    assert!(now(first.as_mut()).is_none() && now(second.as_mut()).is_none());
    drop(held);
    assert!(now(second.as_mut()).is_none(), "both have permits, but it is not its turn");
    assert!(now(first.as_mut()).is_some());
    assert!(now(second.as_mut()).is_some());
}

#[test]
fn an_agent_that_moves_to_the_background_waits_in_the_queue_there() {
    let (limit, cx, one) = (ChildLimit::new(1), Agent::new("other"), Agent::new("one"));
    let _other = now(limit.acquire(cx.caller())).unwrap().unwrap();
    let mut waits = Box::pin(limit.acquire(one.caller()));
    assert!(now(waits.as_mut()).is_none());
    one.cx.sink().move_to_background("task-1".parse().unwrap());
    limit.notify_promoted();
    let mut permit = now(waits.as_mut()).unwrap().unwrap();
    permit.set_child(&one.key());
    let released = limit.release_while_waiting(one.caller());
    assert!(limit.try_acquire(cx.caller()).is_none() && now(released.reacquire()).is_some());
    assert!(limit.try_acquire(one.caller()).is_none());
    drop(permit);
    assert!(limit.try_acquire(one.caller()).is_some());
}

#[test]
fn a_call_that_begins_to_wait_while_another_continues_leaves_no_permit_held() {
    let (limit, one, two) = (ChildLimit::new(1), Agent::new("one"), Agent::new("two"));
    let mut permit = now(limit.acquire(one.caller())).unwrap().unwrap();
    permit.set_child(&one.key());
    let first = limit.release_while_waiting(one.caller());
    let other = now(limit.acquire(two.caller())).unwrap().unwrap();
    let mut back = Box::pin(first.reacquire());
    assert!(now(back.as_mut()).is_none());
    let second = limit.release_while_waiting(one.caller());
    drop(other);
    assert!(now(back.as_mut()).is_some());
    // The first goes on, but the child still waits for what the second began: that must find a
    // permit.
    assert!(now(limit.acquire(two.caller())).is_some());
    assert!(now(second.reacquire()).is_some());
    assert!(now(limit.acquire(two.caller())).is_none());
}

#[test]
fn two_calls_of_one_child_wait_for_one_permit() {
    let (limit, one, two) = (ChildLimit::new(1), Agent::new("one"), Agent::new("two"));
    let mut permit = now(limit.acquire(one.caller())).unwrap().unwrap();
    permit.set_child(&one.key());
    let first = limit.release_while_waiting(one.caller());
    let other = now(limit.acquire(two.caller())).unwrap().unwrap();
    let mut first = Box::pin(first.reacquire());
    assert!(now(first.as_mut()).is_none());
    // A second call begins to wait and stops; the child still has no permit.
    let mut second = Box::pin(limit.release_while_waiting(one.caller()).reacquire());
    assert!(now(second.as_mut()).is_none());
    drop(other);
    assert!(now(first.as_mut()).is_some());
    assert!(now(second.as_mut()).is_some(), "it is the same child's permit");
    assert!(now(limit.acquire(two.caller())).is_none());
    drop(permit);
    assert!(now(limit.acquire(two.caller())).is_some());
}

#[test]
fn a_child_that_moves_while_it_waits_takes_permits_of_one_kind() {
    let limit = ChildLimit::new(1);
    let run = Arc::new(RunChildLimit::new(1));
    let child = |session| Agent { run: Some(run.clone()), ..Agent::new(session) };
    let (one, two, task) = (child("one"), child("two"), child("task"));
    task.cx.sink().move_to_background("task-2".parse().unwrap());
    let first = now(limit.acquire(one.caller())).unwrap().unwrap();
    let mut second = Box::pin(limit.acquire(two.caller()));
    assert!(now(second.as_mut()).is_none());
    // It is part of a task from now on; the set notifies it later.
    two.cx.sink().move_to_background("task-1".parse().unwrap());
    drop(first);
    let _second = now(second.as_mut()).unwrap().unwrap();
    assert!(now(limit.acquire(one.caller())).is_none());
    assert!(now(limit.acquire(task.caller())).is_some(), "the permits in the background are free");
}

#[test]
fn a_child_that_left_takes_nothing_back() {
    let (limit, one, two) = (ChildLimit::new(1), Agent::new("one"), Agent::new("two"));
    let mut permit = now(limit.acquire(one.caller())).unwrap().unwrap();
    permit.set_child(&one.key());
    let released = limit.release_while_waiting(one.caller());
    // Its next turn has begun before the permit of this one is released.
    let mut next = now(limit.acquire(one.caller())).unwrap().unwrap();
    next.set_child(&one.key());
    drop(permit);
    assert!(now(released.reacquire()).is_some());
    let released = limit.release_while_waiting(one.caller());
    assert!(now(limit.acquire(two.caller())).is_some());
    drop(released);
    drop(next);
    assert!(limit.slots.is_empty());
}
