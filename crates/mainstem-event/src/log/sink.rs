//! The sink into which a producer emits its events.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, PoisonError, atomic::Ordering},
    task::{Context, Poll, Waker},
};

use mainstem_message::{ReplyId, RunId, TaskId};
use serde_json::{Map, Value};

use crate::{
    EventKind, EventSource, Origin, SessionLog, Timestamp,
    log::mode::Mode,
    log::session_log::{Moment, Ticket},
    log::sync::{AtomicU32, AtomicU64, Mutex, OnceLock},
};

/// The number of deltas in a row after which a producer yields.
const BURST: u32 = 16;

/// The sink of one invocation: stamps its events with its origin. Cheap to clone.
#[derive(Clone)]
pub struct EventSink(Arc<Lane>);

struct Lane {
    log: Arc<SessionLog>,
    /// Its origin before the first event.
    identity: Arc<Origin>,
    /// Its origin from the first event on, which has the number of its stream.
    origin: OnceLock<Arc<Origin>>,
    /// The origin of the latest event in the background; the run may change.
    in_task: Mutex<Option<Arc<Origin>>>,
    mode: Mode,
    burst: AtomicU32,
    /// The event up to which its batch reaches: it need not wait for the caller before.
    batch: AtomicU64,
}

impl EventSink {
    /// Returns the sink of a root's invocation.
    pub fn root(log: Arc<SessionLog>, origin: Origin) -> Self {
        Self::new(log, origin, Mode::foreground())
    }

    /// Returns the sink of an invocation that has begun before, in another process perhaps: what
    /// its events are stamped with stays as it was.
    pub fn resumed(log: Arc<SessionLog>, origin: Arc<Origin>) -> Self {
        let sink = Self::new(log, Origin::clone(&origin), Mode::foreground());
        let _ = sink.0.origin.set(origin);
        sink
    }

    /// Returns the sink of an invocation below this one that has begun before, in another process
    /// perhaps. It can move to the background without its parent, whether or not it was there.
    #[must_use]
    pub fn resumed_child(&self, origin: &Origin) -> Self {
        let mut origin = origin.clone();
        if let Some(source) = &mut origin.source {
            Arc::make_mut(source).task_id = None;
        }
        let sink = Self::new(self.0.log.clone(), origin.clone(), self.0.mode.below());
        let _ = sink.0.origin.set(Arc::new(origin));
        sink
    }

    fn new(log: Arc<SessionLog>, origin: Origin, mode: Mode) -> Self {
        Self(Arc::new(Lane {
            log,
            identity: Arc::new(origin),
            origin: OnceLock::new(),
            in_task: Mutex::default(),
            mode,
            burst: AtomicU32::new(0),
            batch: AtomicU64::new(0),
        }))
    }

    /// Returns the sink of a child's invocation: same log, same run, its own source. It can move to
    /// the background without its parent.
    #[must_use]
    pub fn child(&self, source: EventSource, reply_id: ReplyId) -> Self {
        let (source, reply_id) = (Some(Arc::new(source)), Some(reply_id));
        let origin = Origin { source, reply_id, root_id: None, ..(**self.origin()).clone() };
        Self::new(self.0.log.clone(), origin, self.0.mode.below())
    }

    /// Records an event and returns its number. Never waits, never fails.
    pub fn emit(&self, kind: EventKind) -> u64 {
        self.emit_timed(kind).0
    }

    /// Records an event and returns its number and time.
    pub fn emit_timed(&self, kind: EventKind) -> (u64, Timestamp) {
        self.emit_with(kind, None)
    }

    /// Records an event with metadata and returns its number and time.
    pub fn emit_with(&self, kind: EventKind, metadata: Option<Map<String, Value>>) -> (u64, Timestamp) {
        let lane = &*self.0;
        let what = (kind, metadata);
        match (lane.origin.get(), lane.mode.task()) {
            (Some(origin), None) => lane.log.append(origin, what),
            // Another process records what follows.
            (_, Some(_)) if lane.mode.is_left() => (lane.log.last_seq(), lane.log.clock().now()),
            (_, task) => lane.log.append_in(what, |mut now| {
                let origin = lane.origin.get_or_init(|| lane.start(&mut now));
                task.map_or_else(|| origin.clone(), |task| lane.in_task(origin, task, now.run))
            }),
        }
    }

    /// Returns the origin of its events; in the background they also have the task, and the run
    /// during which they happen. A child's `stream_id` is that of its source until its first
    /// event, when it gets the next one of the session.
    pub fn origin(&self) -> &Arc<Origin> {
        self.0.origin.get().unwrap_or(&self.0.identity)
    }

    /// Returns the background task that it is part of.
    pub fn task(&self) -> Option<&TaskId> {
        self.0.mode.task()
    }

    /// Moves this invocation and all below it to the background: its parked producers are woken and
    /// do not park again. Within a task it becomes a separate task.
    ///
    /// Returns `false` if it was one already.
    pub fn move_to_background(&self, task: TaskId) -> bool {
        let moved = self.0.mode.move_to(task);
        self.0.log.release();
        moved
    }

    /// Leaves this invocation and all below it to another process: their further events are
    /// discarded. For a background task whose work goes on elsewhere.
    pub fn leave(&self) {
        self.0.mode.leave();
        self.0.log.release();
    }

    /// Returns `true` if another process [continues](Self::leave) the invocation.
    pub fn is_left(&self) -> bool {
        self.0.mode.is_left()
    }

    /// Waits until the caller is near enough, in turn with its siblings. Await it after each delta.
    /// A turn is a batch of up to 16 events, so that one wake-up brings several.
    ///
    /// In the background, or without a caller, it only yields now and then. While a record lags
    /// behind, all producers wait for it. It holds no lock or permit while it waits.
    ///
    /// # Cancel safety
    /// Dropping it gives its place to the next in the queue.
    pub fn settle(&self) -> Settle<'_> {
        Settle { lane: &self.0, state: Wait::New }
    }

    /// Returns the log.
    pub fn log(&self) -> &Arc<SessionLog> {
        &self.0.log
    }
}

impl Lane {
    fn start(&self, now: &mut Moment<'_>) -> Arc<Origin> {
        let Some(source) = &self.identity.source else { return self.identity.clone() };
        let source = EventSource { stream_id: now.next_stream(), ..(**source).clone() };
        Arc::new(Origin { source: Some(Arc::new(source)), ..(*self.identity).clone() })
    }

    fn in_task(&self, origin: &Origin, task: &TaskId, run: Option<&RunId>) -> Arc<Origin> {
        let mut latest = self.in_task.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |origin: &Arc<Origin>| {
            let of_task = origin.source.as_ref().is_none_or(|source| source.task_id.as_ref() == Some(task));
            of_task && origin.run_id.as_ref() == run
        };
        let same = latest.take().filter(is_same);
        latest.insert(same.unwrap_or_else(|| Arc::new(origin.in_task(task, run)))).clone()
    }

    /// Returns `true` if it has used up its burst.
    fn is_spent(&self) -> bool {
        let burst = self.burst.fetch_add(1, Ordering::Relaxed) + 1;
        if burst >= BURST {
            self.burst.store(0, Ordering::Relaxed);
        }
        burst >= BURST
    }

    fn may_go_on(&self) -> bool {
        let has_room = self.log.has_room(self.batch.load(Ordering::Relaxed));
        (has_room || self.mode.task().is_some()) && self.log.record_has_room()
    }

    fn begin_batch(&self) {
        self.burst.store(0, Ordering::Relaxed);
        self.batch.store(self.log.end_of_batch(), Ordering::Relaxed);
    }
}

/// The future of [`EventSink::settle`].
#[must_use = "futures do nothing unless polled"]
pub struct Settle<'a> {
    lane: &'a Lane,
    state: Wait,
}

#[derive(Clone, Copy)]
enum Wait {
    New,
    Yielded,
    Queued(Ticket),
    Done,
}

impl Settle<'_> {
    fn go_on(&mut self, cx: &Context<'_>) -> Poll<()> {
        if !self.lane.may_go_on() {
            let mut state = self.lane.log.lock();
            // The caller may have read meanwhile; once queued under the lock, no grant is missed.
            if !self.lane.may_go_on() {
                self.state = Wait::Queued(state.queue.join(cx.waker(), &self.lane.mode));
                return Poll::Pending;
            }
        }
        self.state = Wait::Done;
        Poll::Ready(())
    }
}

impl Future for Settle<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.state {
            Wait::New if self.lane.is_spent() => {
                self.state = Wait::Yielded;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Wait::New | Wait::Yielded => self.go_on(cx),
            Wait::Queued(ticket) => {
                let mut state = self.lane.log.lock();
                if state.queue.still_waits(ticket, cx.waker()) {
                    return Poll::Pending;
                }
                let next = self.lane.log.end_turn(&mut state, ticket);
                drop(state);
                self.lane.begin_batch();
                self.state = Wait::Done;
                next.into_iter().for_each(Waker::wake);
                Poll::Ready(())
            }
            Wait::Done => Poll::Ready(()),
        }
    }
}

impl Drop for Settle<'_> {
    fn drop(&mut self) {
        let Wait::Queued(ticket) = self.state else { return };
        let mut state = self.lane.log.lock();
        let left = state.queue.leave(ticket);
        let next = self.lane.log.end_turn(&mut state, ticket);
        drop((state, left));
        next.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventSink").field(self.origin()).finish()
    }
}

impl fmt::Debug for Settle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settle").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
