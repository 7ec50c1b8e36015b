//! The events of an invocation, and its conversation.

use std::{
    future::Future,
    sync::{Arc, PoisonError, atomic::Ordering},
};

use mainstem_event::{
    EventKind, EventSink, Timestamp,
    fold::{ROOT, Transcript},
};
use mainstem_message::{AgentKey, Message, StopReason};

use serde_json::{Map, Value};

use super::RunContext;

impl RunContext {
    /// Records an event of this invocation, in the session and in its conversation; returns its
    /// number. Never waits.
    ///
    /// For the loop and for middleware; a tool streams through
    /// [`ToolContext::progress`](mainstem_tool::ToolContext::progress). A producer of many events
    /// awaits [`settle`](Self::settle) in between.
    pub fn emit(&self, kind: EventKind) -> u64 {
        self.emit_with(kind, None)
    }

    /// Records an event with metadata, as [`emit`](Self::emit) does.
    pub fn emit_with(&self, kind: EventKind, metadata: Option<Map<String, Value>>) -> u64 {
        self.with_transcript(|transcript| transcript.apply(&kind));
        let (seq, at) = self.invocation.sink.emit_with(kind, metadata);
        self.invocation.latest.store(seq, Ordering::Relaxed);
        self.invocation.latest_at.store(at.as_micros(), Ordering::Relaxed);
        seq
    }

    /// Returns the number of the invocation's latest event; 0 before the first.
    pub fn last_event(&self) -> u64 {
        self.invocation.latest.load(Ordering::Relaxed)
    }

    /// Returns the time of that event; `None` before the first.
    pub fn last_event_at(&self) -> Option<Timestamp> {
        let at = self.invocation.latest_at.load(Ordering::Relaxed);
        (self.last_event() > 0).then(|| Timestamp::from_micros(at))
    }

    /// Counts an answer that was cut; returns how many were.
    pub(crate) fn count_cut(&self) -> u32 {
        self.invocation.cuts.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts the bytes of an answer.
    pub(crate) fn count_answer(&self, bytes: usize) {
        self.invocation.answered.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes of all answers.
    pub(crate) fn answered(&self) -> usize {
        self.invocation.answered.load(Ordering::Relaxed)
    }

    /// Waits for the caller: see [`EventSink::settle`].
    pub fn settle(&self) -> impl Future<Output = ()> + Send {
        self.invocation.sink.settle()
    }

    /// Returns why the session's record has failed; the invocation must end then. See
    /// [`SessionLog::failure`](mainstem_event::SessionLog::failure).
    pub(crate) fn unrecorded(&self) -> Option<&Arc<str>> {
        self.invocation.sink.log().failure()
    }

    /// Replaces the agent's conversation, that of earlier turns included: emits a
    /// `STATE_CHECKPOINT`. Messages of this invocation after the first `said` have come meanwhile,
    /// and stay.
    pub(crate) fn replace_conversation(&self, mut messages: Vec<Arc<Message>>, said: usize) {
        messages.extend(self.messages().into_iter().skip(said));
        let agent = self.agent_key().cloned().unwrap_or_else(|| AgentKey::from_lossy(ROOT));
        self.sink().log().emit(EventKind::state_checkpoint(agent, messages.clone()));
        self.with_transcript(|transcript| transcript.replace(messages));
    }

    /// Returns `true` if compaction has replaced the conversation: then
    /// [`messages`](Self::messages) are the agent's whole conversation, with that of earlier turns.
    pub fn is_compacted(&self) -> bool {
        self.with_transcript(|transcript| transcript.is_whole())
    }

    /// Returns the conversation with this invocation: `history` and the messages so far, or what
    /// compaction has left of both.
    #[must_use]
    pub fn conversation(&self, history: &[Arc<Message>]) -> Vec<Arc<Message>> {
        self.with_transcript(|transcript| {
            let before = if transcript.is_whole() { &[] } else { history };
            before.iter().chain(transcript.messages()).cloned().collect()
        })
    }

    /// Returns the messages of this invocation since its start, or since compaction has last
    /// replaced the conversation.
    pub fn latest_messages(&self) -> Vec<Arc<Message>> {
        self.with_transcript(|transcript| transcript.latest_messages().to_vec())
    }

    /// Returns the messages of this invocation so far.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.with_transcript(|transcript| transcript.messages().to_vec())
    }

    /// Closes what is open in the conversation: blocks, calls, results, and the model call, with
    /// this reason.
    pub fn close(&self, reason: &StopReason) {
        while let Some(kind) = self.with_transcript(|transcript| transcript.next_closing(reason.clone())) {
            self.emit(kind);
        }
    }

    /// Calls the closure with the conversation; the closure must not emit.
    pub fn with_transcript<R>(&self, f: impl FnOnce(&mut Transcript) -> R) -> R {
        f(&mut self.invocation.transcript.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the sink of this invocation.
    pub fn sink(&self) -> &EventSink {
        &self.invocation.sink
    }
}
