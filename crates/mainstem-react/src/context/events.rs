//! The events of an invocation, and the conversation that they make.

use std::{
    future::Future,
    sync::{Arc, PoisonError, atomic::Ordering},
};

use mainstem_event::{EventKind, EventSink, Timestamp, fold::Transcript};
use mainstem_message::{Message, StopReason};

use super::RunContext;

impl RunContext {
    /// Records an event of this invocation, in the session and in its conversation; returns its
    /// number. Never waits.
    ///
    /// For the loop and for middleware; a tool streams through
    /// [`ToolContext::progress`](mainstem_tool::ToolContext::progress). A producer of many events
    /// awaits [`settle`](Self::settle) in between.
    pub fn emit(&self, kind: EventKind) -> u64 {
        self.with_transcript(|transcript| transcript.apply(&kind));
        let (seq, at) = self.invocation.sink.emit_timed(kind);
        self.invocation.latest.store(seq, Ordering::Relaxed);
        self.invocation.latest_at.store(at.as_micros(), Ordering::Relaxed);
        seq
    }

    /// The number of the invocation's latest event; 0 before the first.
    pub fn last_event(&self) -> u64 {
        self.invocation.latest.load(Ordering::Relaxed)
    }

    /// When that was; `None` before the first.
    pub fn last_event_at(&self) -> Option<Timestamp> {
        let at = self.invocation.latest_at.load(Ordering::Relaxed);
        (self.last_event() > 0).then(|| Timestamp::from_micros(at))
    }

    /// Waits for the caller: see [`EventSink::settle`].
    pub fn settle(&self) -> impl Future<Output = ()> + Send {
        self.invocation.sink.settle()
    }

    /// Why the session's record keeps nothing more: the work must end. See
    /// [`SessionLog::failure`](mainstem_event::SessionLog::failure).
    pub(crate) fn unrecorded(&self) -> Option<&Arc<str>> {
        self.invocation.sink.log().failure()
    }

    /// What was said in this invocation so far.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.with_transcript(|transcript| transcript.messages().to_vec())
    }

    /// Closes whatever is open in the conversation: blocks, calls, a model call that ended for this
    /// reason, results.
    pub fn close(&self, reason: &StopReason) {
        while let Some(kind) = self.with_transcript(|transcript| transcript.next_closing(reason.clone())) {
            self.emit(kind);
        }
    }

    /// Looks into the conversation; the closure must not emit.
    pub fn with_transcript<R>(&self, f: impl FnOnce(&mut Transcript) -> R) -> R {
        f(&mut self.invocation.transcript.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The sink of this invocation.
    pub fn sink(&self) -> &EventSink {
        &self.invocation.sink
    }
}
