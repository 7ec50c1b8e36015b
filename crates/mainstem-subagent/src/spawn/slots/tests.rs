//! Places that are taken, lent and taken back, poll by poll.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use mainstem_event::{EventSink, EventSource, Origin, SessionLog, SystemClock};
use mainstem_model::ScriptedModel;
use mainstem_policy::Limits as Budget;
use mainstem_react::Agent;
use mainstem_task::{ExecutorId, MemoryTaskStore, TaskSet};

use super::*;
use crate::{
    crew::Crew,
    fleet::{Fleet, Limits},
    options::SpawnOptions,
};

fn child(session: &str) -> RunContext {
    let sink = EventSink::root(SessionLog::new("s".into()), Origin::session("s".into(), None));
    let source = EventSource {
        agent_key: format!("agent:kid:{session}").into(),
        agent_id: "kid".into(),
        agent_name: None,
        label: None,
        session_id: session.into(),
        parent_session_id: "s".into(),
        depth: 1,
        path: "s/kid".into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: None,
        stream_id: 0,
    };
    RunContext::root("main", sink).build().child(source, format!("reply-{session}").into())
}

/// In a run whose own limit is so many children.
fn member(children: usize) -> Member {
    let tasks = TaskSet::new(Arc::new(MemoryTaskStore::new()), Arc::new(SystemClock), ExecutorId::new("me"));
    let fleet = Arc::new(Fleet::new(Limits::default(), tasks));
    let root = Agent::builder("main", ScriptedModel::new()).build().unwrap();
    let options = SpawnOptions::new().with_max_children(children);
    Member::root(fleet, Arc::new(Crew::new(root)), options, Budget::default())
}

fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn key(cx: &RunContext) -> AgentKey {
    cx.agent_key().unwrap().clone()
}

#[test]
fn who_waits_lends_its_place_and_holds_one_again_afterwards() {
    let (slots, one, two) = (Slots::new(1), child("one"), child("two"));
    let mut place = now(slots.enter(&one)).unwrap().unwrap();
    place.belongs_to(&key(&one));
    assert!(now(slots.enter(&two)).is_none());
    let lent = slots.lend(&one);
    let other = now(slots.enter(&two)).unwrap().unwrap();
    let mut back = Box::pin(lent.take_back());
    assert!(now(back.as_mut()).is_none());
    drop(other);
    assert!(now(back.as_mut()).is_some());
    assert!(now(slots.enter(&two)).is_none());
    drop(place);
    assert!(now(slots.enter(&two)).is_some());
}

#[test]
fn who_came_first_goes_first_in_whichever_order_they_are_polled() {
    let (slots, cx) = (Slots::new(2), child("one"));
    let places = [now(slots.enter(&cx)).unwrap().unwrap(), now(slots.enter(&cx)).unwrap().unwrap()];
    let (mut first, mut second) = (Box::pin(slots.enter(&cx)), Box::pin(slots.enter(&cx)));
    assert!(now(first.as_mut()).is_none() && now(second.as_mut()).is_none());
    drop(places);
    assert!(now(second.as_mut()).is_none(), "both have a place, but it is not its turn");
    assert!(now(first.as_mut()).is_some());
    assert!(now(second.as_mut()).is_some());
}

#[test]
fn who_moves_to_the_background_waits_in_the_line_there() {
    let (slots, cx, one) = (Slots::new(1), child("other"), child("one"));
    let _other = now(slots.enter(&cx)).unwrap().unwrap();
    let mut waits = Box::pin(slots.enter(&one));
    assert!(now(waits.as_mut()).is_none());
    one.sink().move_to_background("task-1".into());
    slots.notify_moved();
    let mut place = now(waits.as_mut()).unwrap().unwrap();
    place.belongs_to(&key(&one));
    let lent = slots.lend(&one);
    assert!(slots.try_enter(&cx).is_none() && now(lent.take_back()).is_some());
    assert!(slots.try_enter(&one).is_none());
    drop(place);
    assert!(slots.try_enter(&one).is_some());
}

#[test]
fn a_call_that_begins_to_wait_while_another_goes_on_leaves_no_place_held() {
    let (slots, one, two) = (Slots::new(1), child("one"), child("two"));
    let mut place = now(slots.enter(&one)).unwrap().unwrap();
    place.belongs_to(&key(&one));
    let first = slots.lend(&one);
    let other = now(slots.enter(&two)).unwrap().unwrap();
    let mut back = Box::pin(first.take_back());
    assert!(now(back.as_mut()).is_none());
    let second = slots.lend(&one);
    drop(other);
    assert!(now(back.as_mut()).is_some());
    // The first goes on, but the child still waits for what the second began: that must find a
    // place.
    assert!(now(slots.enter(&two)).is_some());
    assert!(now(second.take_back()).is_some());
    assert!(now(slots.enter(&two)).is_none());
}

#[test]
fn two_calls_of_one_child_wait_for_one_place() {
    let (slots, one, two) = (Slots::new(1), child("one"), child("two"));
    let mut place = now(slots.enter(&one)).unwrap().unwrap();
    place.belongs_to(&key(&one));
    let first = slots.lend(&one);
    let other = now(slots.enter(&two)).unwrap().unwrap();
    let mut first = Box::pin(first.take_back());
    assert!(now(first.as_mut()).is_none());
    // A second call begins to wait and stops; the child still has no place.
    let mut second = Box::pin(slots.lend(&one).take_back());
    assert!(now(second.as_mut()).is_none());
    drop(other);
    assert!(now(first.as_mut()).is_some());
    assert!(now(second.as_mut()).is_some(), "it is the same child's place");
    assert!(now(slots.enter(&two)).is_none());
    drop(place);
    assert!(now(slots.enter(&two)).is_some());
}

#[test]
fn a_child_that_moves_while_it_waits_takes_places_of_one_kind() {
    let slots = Slots::new(1);
    let one_at_once = Arc::new(member(1));
    let child = |session| child(session).with_attachment(one_at_once.clone());
    let (one, two, task) = (child("one"), child("two"), child("task"));
    task.sink().move_to_background("task-2".into());
    let first = now(slots.enter(&one)).unwrap().unwrap();
    let mut second = Box::pin(slots.enter(&two));
    assert!(now(second.as_mut()).is_none());
    // It is part of a task from now on; the set notifies it later.
    two.sink().move_to_background("task-1".into());
    drop(first);
    let _second = now(second.as_mut()).unwrap().unwrap();
    assert!(now(slots.enter(&one)).is_none());
    assert!(now(slots.enter(&task)).is_some(), "the places in the background are free");
}

#[test]
fn a_child_that_left_takes_nothing_back() {
    let (slots, one, two) = (Slots::new(1), child("one"), child("two"));
    let mut place = now(slots.enter(&one)).unwrap().unwrap();
    place.belongs_to(&key(&one));
    let lent = slots.lend(&one);
    // Its next turn has begun before the place of this one is given back.
    let mut next = now(slots.enter(&one)).unwrap().unwrap();
    next.belongs_to(&key(&one));
    drop(place);
    assert!(now(lent.take_back()).is_some());
    let lent = slots.lend(&one);
    assert!(now(slots.enter(&two)).is_some());
    drop(lent);
    drop(next);
    assert!(slots.held.is_empty());
}
