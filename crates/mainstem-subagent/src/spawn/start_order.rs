//! Starts the children of one agent in the order of its calls.
//!
//! A child whose call waits for it starts while the run is polled, a task at any time. A task
//! starts after the children before it whose calls wait, so that it never waits for a run that is
//! not polled. Only a task that can't be recorded keeps its turn until its call is polled.

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
        let turn = Turn { number: self.0.next.fetch_add(1, Ordering::Relaxed), is_task };
        self.0.of_parent.entry(parent.clone()).or_default().push_back(turn);
        StartTicket { queues: self.0.clone(), parent: parent.clone(), turn }
    }
}

impl StartTicket {
    /// Waits until each child that was called before has started or is dropped.
    pub(crate) fn turn(&self) -> impl Future<Output = ()> + Send + 'static {
        self.after(|_| true)
    }

    /// Waits until only tasks are before it.
    pub(crate) fn after_calls(&self) -> impl Future<Output = ()> + Send + 'static {
        self.after(|turn| !turn.is_task)
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
