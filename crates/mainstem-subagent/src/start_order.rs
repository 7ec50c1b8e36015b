//! Starts the children of one agent in the order of its calls.

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
    of_parent: DashMap<SessionId, VecDeque<u64>>,
    next: AtomicU64,
    /// Whenever one has left.
    moved: Notify,
}

/// A child's place in the order, from its call to its start. Dropping it lets the next one start.
#[derive(Debug)]
pub(crate) struct StartTicket {
    queues: Arc<Queues>,
    parent: SessionId,
    number: u64,
}

impl StartOrder {
    /// Takes the last place.
    pub(crate) fn ticket(&self, parent: &SessionId) -> StartTicket {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.0.of_parent.entry(parent.clone()).or_default().push_back(number);
        StartTicket { queues: self.0.clone(), parent: parent.clone(), number }
    }
}

impl StartTicket {
    /// Resolves when every child that was called before has started, or will not.
    pub(crate) fn turn(&self) -> impl Future<Output = ()> + Send + 'static {
        let (queues, parent, number) = (self.queues.clone(), self.parent.clone(), self.number);
        async move {
            loop {
                let moved = queues.moved.notified();
                if queues.is_first(&parent, number) {
                    return;
                }
                moved.await;
            }
        }
    }
}

impl Queues {
    /// A ticket that has left the queue counts as first.
    fn is_first(&self, parent: &SessionId, number: u64) -> bool {
        self.of_parent.get(parent).is_none_or(|queue| queue.front().is_none_or(|first| *first >= number))
    }
}

impl Drop for StartTicket {
    fn drop(&mut self) {
        if let Some(mut queue) = self.queues.of_parent.get_mut(&self.parent) {
            queue.retain(|number| *number != self.number);
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
    fn the_next_starts_when_those_before_have_started_or_gone() {
        let order = StartOrder::default();
        let [main, other] = ["main", "other"].map(SessionId::new);
        let (first, second, third) = (order.ticket(&main), order.ticket(&main), order.ticket(&main));
        let elsewhere = order.ticket(&other);
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
