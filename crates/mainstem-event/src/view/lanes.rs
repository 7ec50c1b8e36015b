//! One stream for each instance of an agent.

use std::{
    collections::{BTreeMap, VecDeque},
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

use futures_core::Stream;
use futures_util::stream::FuturesUnordered;
use mainstem_message::AgentKey;

use crate::{AgentEvent, EventKind, Origin};

/// How many events a lane keeps for a reader that is behind.
const KEPT: usize = 4096;

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
    lost: Option<(u64, u64, u64)>,
    ended: bool,
    waker: Option<Waker>,
}

impl Lane {
    /// Whose it is; `None` for the root.
    pub fn key(&self) -> Option<&AgentKey> {
        self.key.as_ref()
    }
}

impl Shared {
    fn push(&mut self, event: AgentEvent) {
        if self.events.len() == KEPT
            && let Some(oldest) = self.events.pop_front()
        {
            let (from, _, missed) = self.lost.unwrap_or((oldest.seq, oldest.seq, 0));
            self.lost = Some((from, oldest.seq, missed + 1));
        }
        self.events.push_back(event);
        self.wake();
    }

    fn wake(&mut self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }

    fn pop(&mut self) -> Option<AgentEvent> {
        let Some((from_seq, to_seq, missed)) = self.lost.take() else { return self.events.pop_front() };
        let (at, session) = self.events.front().map(|event| (event.at, event.session_id().clone()))?;
        let kind = EventKind::Gap { from_seq, to_seq, missed, per_agent: BTreeMap::new() };
        Some(AgentEvent::new(to_seq, at, Arc::new(Origin::session(session, None)), kind))
    }
}

impl Stream for Lane {
    type Item = AgentEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        match shared.pop() {
            Some(event) => Poll::Ready(Some(event)),
            None if shared.ended => Poll::Ready(None),
            None => {
                shared.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// See [`EventStreamExt::for_each_lane`](super::EventStreamExt::for_each_lane).
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
        while !over {
            match stream.as_mut().poll_next(cx) {
                Poll::Ready(Some(event)) => {
                    lanes.push(event).into_iter().for_each(|lane| readers.push(f(lane)))
                }
                Poll::Ready(None) => {
                    over = true;
                    lanes.end();
                }
                Poll::Pending => break,
            }
        }
        while let Poll::Ready(Some(())) = Pin::new(&mut readers).poll_next(cx) {}
        if over && readers.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Where each lane's events go; a lane that was dropped gets none.
#[derive(Default)]
struct Lanes(BTreeMap<Option<AgentKey>, Weak<Mutex<Shared>>>);

impl Lanes {
    /// Gives the event to its lane; returns the lane if it is new.
    fn push(&mut self, event: AgentEvent) -> Option<Lane> {
        let key = event.agent_key().cloned();
        if let Some(shared) = self.0.get(&key) {
            let shared = shared.upgrade()?;
            shared.lock().unwrap_or_else(PoisonError::into_inner).push(event);
            return None;
        }
        let shared = Arc::new(Mutex::new(Shared { events: VecDeque::from([event]), ..Shared::default() }));
        self.0.insert(key.clone(), Arc::downgrade(&shared));
        Some(Lane { key, shared })
    }

    fn end(&self) {
        for shared in self.0.values().filter_map(Weak::upgrade) {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.ended = true;
            shared.wake();
        }
    }
}
