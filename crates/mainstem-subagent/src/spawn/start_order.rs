//! Starts the children of one agent in the order of its calls.
//!
//! A child whose call waits for it starts while the run is polled, a task at any time. A task
//! starts after the children before it whose calls wait, so that it never waits for a run that is
//! not polled. Only a task that can't be recorded keeps its turn until its call is polled. A child
//! that has to wait for a permit lets others start first, and then starts in the order of the calls
//! that have permits.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use dashmap::DashMap;
use mainstem_message::SessionId;
use tokio::sync::Notify;

/// The children that are about to start, by their parents' sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct StartOrder(Arc<Queues>);

#[derive(Debug, Default)]
struct Queues {
    of_parent: DashMap<SessionId, VecDeque<Turn>>,
    next: AtomicU64,
    /// Notified when one has left.
    moved: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    number: u64,
    is_task: bool,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// All later ones wait for it.
    Next,
    /// It waits for a permit; none waits for it.
    Queued,
    /// It has got a permit after it waited; later calls wait for it, and no task does.
    Late,
}

/// A child's turn in the order, from its call to its start. Dropping it lets the next one start.
#[derive(Debug)]
pub(crate) struct StartTicket {
    queues: Arc<Queues>,
    parent: SessionId,
    turn: Turn,
}

impl StartOrder {
    /// Takes the last turn; `is_task` is a child that its call does not wait for.
    pub(crate) fn ticket(&self, parent: &SessionId, is_task: bool) -> StartTicket {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let turn = Turn { number, is_task, stage: Stage::Next };
        self.0.of_parent.entry(parent.clone()).or_default().push_back(turn);
        StartTicket { queues: self.0.clone(), parent: parent.clone(), turn }
    }
}

impl StartTicket {
    /// Waits until each child that was called before has started, is queued or is dropped.
    pub(crate) fn turn(&self) -> impl Future<Output = ()> + Send + 'static {
        match self.turn.is_task {
            true => self.after(|turn| turn.stage == Stage::Next),
            false => self.after(|turn| turn.stage != Stage::Queued),
        }
    }

    /// Waits until only tasks are before it, and calls that are queued or were.
    pub(crate) fn after_calls(&self) -> impl Future<Output = ()> + Send + 'static {
        self.after(|turn| !turn.is_task && turn.stage == Stage::Next)
    }

    /// Lets others start first, because it waits for a permit.
    pub(crate) fn queue(&self) {
        self.set(Stage::Queued);
        self.queues.moved.notify_waiters();
    }

    /// Waits, with a permit, until each call before it that has one has started.
    pub(crate) fn after_permitted(&self) -> impl Future<Output = ()> + Send + 'static {
        self.set(Stage::Late);
        self.after(|turn| !turn.is_task && turn.stage != Stage::Queued)
    }

    fn set(&self, stage: Stage) {
        let mut queue = self.queues.of_parent.get_mut(&self.parent);
        let turns = queue.iter_mut().flat_map(|queue| queue.iter_mut());
        turns.filter(|turn| turn.number == self.turn.number).for_each(|turn| turn.stage = stage);
    }

    /// Waits until none of these is before it.
    fn after(&self, is_awaited: fn(&Turn) -> bool) -> impl Future<Output = ()> + Send + 'static {
        let (queues, parent, number) = (self.queues.clone(), self.parent.clone(), self.turn.number);
        async move {
            loop {
                let moved = queues.moved.notified();
                if !queues.has_before(&parent, number, is_awaited) {
                    return;
                }
                moved.await;
            }
        }
    }
}

impl Queues {
    fn has_before(&self, parent: &SessionId, number: u64, is_awaited: fn(&Turn) -> bool) -> bool {
        let before =
            |queue: &VecDeque<Turn>| queue.iter().take_while(|turn| turn.number < number).any(is_awaited);
        self.of_parent.get(parent).is_some_and(|queue| before(&queue))
    }
}

impl Drop for StartTicket {
    fn drop(&mut self) {
        if let Some(mut queue) = self.queues.of_parent.get_mut(&self.parent) {
            queue.retain(|turn| turn.number != self.turn.number);
        }
        self.queues.of_parent.remove_if(&self.parent, |_, queue| queue.is_empty());
        self.queues.moved.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use tokio_test::{assert_pending, assert_ready, task::spawn};

    use super::*;

    #[test]
    fn a_task_begins_when_only_tasks_are_before_it() {
        let (order, main) = (StartOrder::default(), SessionId::try_from("main").unwrap());
        let [first, second, third] = [true, false, true].map(|is_task| order.ticket(&main, is_task));
        assert_ready!(spawn(first.after_calls()).poll());
        let mut waits = spawn(third.after_calls());
        assert_pending!(waits.poll());
        drop(second);
        assert_ready!(waits.poll());
        assert_pending!(spawn(third.turn()).poll());
    }

    #[test]
    fn one_that_waited_for_a_permit_starts_after_the_calls_before_it() {
        let (order, main) = (StartOrder::default(), SessionId::try_from("main").unwrap());
        let [first, second, third, task, last] =
            [false, false, false, true, false].map(|is_task| order.ticket(&main, is_task));
        [&second, &third].into_iter().for_each(StartTicket::queue);
        let (mut second_waits, mut third_waits) =
            (spawn(second.after_permitted()), spawn(third.after_permitted()));
        assert_pending!(second_waits.poll());
        drop(first);
        assert_ready!(second_waits.poll());
        // A task does not wait for them, a call does, and so do they for each other.
        assert_ready!(spawn(task.turn()).poll());
        drop(task);
        assert_pending!(third_waits.poll());
        drop(second);
        assert_ready!(third_waits.poll());
        let mut last_waits = spawn(last.turn());
        assert_pending!(last_waits.poll());
        drop(third);
        assert_ready!(last_waits.poll());
    }

    #[test]
    fn the_next_starts_when_those_before_have_started_or_gone() {
        let order = StartOrder::default();
        let [main, other] = ["main", "other"].map(|id| SessionId::try_from(id).unwrap());
        let [first, second, third] = [false, false, true].map(|is_task| order.ticket(&main, is_task));
        let elsewhere = order.ticket(&other, false);
        assert_ready!(spawn(elsewhere.turn()).poll());
        assert_ready!(spawn(first.turn()).poll());
        let (mut waits, mut last) = (spawn(second.turn()), spawn(third.turn()));
        assert_pending!(waits.poll());
        assert_pending!(last.poll());
        // Out of its turn: it will not start.
        drop(second);
        assert_pending!(last.poll());
        drop(first);
        assert!(last.is_woken());
        assert_ready!(last.poll());
        drop((third, elsewhere));
        assert!(order.0.of_parent.is_empty());
    }
}
