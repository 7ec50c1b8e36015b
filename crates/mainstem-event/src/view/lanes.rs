//! One stream for each instance of an agent.

use std::{
    collections::{BTreeMap, VecDeque},
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker, ready},
};

use futures_core::Stream;
use futures_util::stream::FuturesUnordered;
use mainstem_message::AgentKey;

use crate::{AgentEvent, EventKind, Origin, fold::ROOT};

/// How many events a lane retains for a reader that is behind.
const RETAINED: usize = 4096;

/// The events of one instance of an agent, from its first to the end of the stream.
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct Lane {
    key: Option<AgentKey>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    events: VecDeque<AgentEvent>,
    lost: Option<Lost>,
    ended: bool,
    waker: Option<Waker>,
}

/// The events that a lane has dropped.
#[derive(Clone, Copy, Debug)]
struct Lost {
    from: u64,
    to: u64,
    count: u64,
}

impl Lane {
    /// Returns its instance; `None` for the root.
    pub fn key(&self) -> Option<&AgentKey> {
        self.key.as_ref()
    }

    fn gap(&self, lost: Lost, next: &AgentEvent) -> AgentEvent {
        let agent = self.key.clone().unwrap_or_else(|| AgentKey::from_lossy(ROOT));
        let per_agent = BTreeMap::from([(agent, lost.count)]);
        let Lost { from: from_seq, to: to_seq, count: missed } = lost;
        let kind = EventKind::Gap { from_seq, to_seq, missed, per_agent, reason: None };
        let origin = Origin::session(next.session_id().clone(), None);
        AgentEvent::new(lost.to, next.at, Arc::new(origin), kind)
    }
}

impl Shared {
    fn push(&mut self, event: AgentEvent) -> Option<Waker> {
        if self.events.len() == RETAINED
            && let Some(oldest) = self.events.pop_front()
        {
            let lost = self.lost.get_or_insert(Lost { from: oldest.seq, to: oldest.seq, count: 0 });
            (lost.to, lost.count) = (oldest.seq, lost.count + 1);
        }
        self.events.push_back(event);
        self.waker.take()
    }
}

impl Stream for Lane {
    type Item = AgentEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        let mut shared = lock(&self.shared);
        if let Some(lost) = shared.lost.take()
            && let Some(next) = shared.events.front()
        {
            return Poll::Ready(Some(self.gap(lost, next)));
        }
        match shared.events.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None if shared.ended => Poll::Ready(None),
            None => {
                shared.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `f` for each lane: see
/// [`EventStreamExt::for_each_lane`](super::EventStreamExt::for_each_lane).
pub async fn for_each_lane<S, F, Fut>(stream: S, mut f: F)
where
    S: Stream<Item = AgentEvent>,
    F: FnMut(Lane) -> Fut,
    Fut: Future<Output = ()>,
{
    let mut stream = pin!(stream);
    let mut lanes = Lanes::default();
    let mut readers = FuturesUnordered::new();
    let mut over = false;
    poll_fn(|cx| {
        loop {
            // Readers first: they keep up even with a stream that is always ready.
            while let Poll::Ready(Some(())) = Pin::new(&mut readers).poll_next(cx) {}
            if over {
                return if readers.is_empty() { Poll::Ready(()) } else { Poll::Pending };
            }
            match ready!(stream.as_mut().poll_next(cx)) {
                Some(event) => readers.extend(lanes.push(event).map(&mut f)),
                None => {
                    over = true;
                    lanes.end();
                }
            }
        }
    })
    .await;
}

/// The lanes that are not dropped.
#[derive(Default)]
struct Lanes(BTreeMap<Option<AgentKey>, Weak<Mutex<Shared>>>);

impl Lanes {
    /// Adds the event to its lane; returns the lane if it is new. Missed events may belong to any
    /// lane, so a gap goes to all.
    fn push(&mut self, event: AgentEvent) -> Option<Lane> {
        if matches!(event.kind, EventKind::Gap { .. }) {
            self.for_each(|shared| shared.push(event.clone()));
            return None;
        }
        let key = event.agent_key().cloned();
        if let Some(shared) = self.0.get(&key) {
            let waker = lock(&*shared.upgrade()?).push(event);
            waker.into_iter().for_each(Waker::wake);
            return None;
        }
        let shared = Arc::new(Mutex::new(Shared { events: VecDeque::from([event]), ..Shared::default() }));
        self.0.insert(key.clone(), Arc::downgrade(&shared));
        Some(Lane { key, shared })
    }

    fn end(&self) {
        self.for_each(|shared| {
            shared.ended = true;
            shared.waker.take()
        });
    }

    fn for_each(&self, f: impl Fn(&mut Shared) -> Option<Waker>) {
        for shared in self.0.values().filter_map(Weak::upgrade) {
            let waker = f(&mut lock(&shared));
            waker.into_iter().for_each(Waker::wake);
        }
    }
}
