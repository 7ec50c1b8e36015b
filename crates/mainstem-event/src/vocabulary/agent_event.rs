//! The envelope of an event: time, producer, session, and kind.

mod schema;
mod wire;

pub use self::schema::markdown_table;

use std::{
    fmt,
    ops::{Deref, RangeInclusive},
    sync::Arc,
};

use mainstem_message::{AgentKey, ReplyId, RunId, SessionId};
use serde_json::{Map, Value};

use crate::{EventKind, EventSource, Origin, Timestamp, vocabulary::source::ROOT};

/// The longest line of recorded events that `mainstem replay` reads, in bytes: 128 MiB.
///
/// An event of the largest prompt or model answer (16 MiB by default) fits, even if JSON writes
/// each of its bytes as six.
pub const MAX_LINE_BYTES: usize = 128 << 20;

/// An event of a session. Cheap to clone: one shared allocation.
///
/// The JSON form is flat and `camelCase`: the envelope (`seq`, `id`, `sessionId`, `runId`,
/// `createdAt`, `source`, `rootId`, `replyId`, `metadata`), `type`, and the fields of the kind.
/// [`Display`](fmt::Display) is one line for people.
///
/// ```
/// use mainstem_event::{AgentEvent, EventKind};
///
/// let json = r#"{
///     "type": "TEXT_BLOCK_DELTA", "seq": 7, "sessionId": "s",
///     "createdAt": "2026-11-21T10:00:00Z", "blockId": "b", "delta": "Hi"
/// }"#;
/// let event: AgentEvent = serde_json::from_str(json)?;
/// assert!(matches!(&event.kind, EventKind::TextBlockDelta { delta, .. } if delta == "Hi"));
/// assert_eq!(event.agent_label(), "main");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct AgentEvent(Arc<EventData>);

/// The target of an [`AgentEvent`]'s `Deref`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EventData {
    /// 1, 2, 3 … without a gap within the session: cursor, SSE id and journal key.
    pub seq: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// What all events of its invocation share.
    pub origin: Arc<Origin>,
    /// The kind, with its fields.
    pub kind: EventKind,
    /// Fields that an encoder or an application adds; boxed, because most events have none.
    pub metadata: Option<Box<Map<String, Value>>>,
}

impl AgentEvent {
    /// Creates an event, for a log, a decoder or a test. In a session only the session log creates
    /// events.
    pub fn new(seq: u64, at: Timestamp, origin: Arc<Origin>, kind: EventKind) -> Self {
        Self(Arc::new(EventData { seq, at, origin, kind, metadata: None }))
    }

    /// Returns the same event with metadata.
    #[must_use]
    pub fn with_metadata(self, metadata: Map<String, Value>) -> Self {
        let mut data = Arc::unwrap_or_clone(self.0);
        data.metadata = Some(Box::new(metadata));
        Self(Arc::new(data))
    }

    /// Returns the event without an agent's declaration: for readers that must not see the
    /// operator's prompts.
    #[must_use]
    pub fn without_spec(&self) -> Self {
        if !matches!(self.kind, EventKind::AgentStart { spec: Some(_), .. }) {
            return self.clone();
        }
        let mut data = EventData::clone(self);
        if let EventKind::AgentStart { spec, .. } = &mut data.kind {
            *spec = None;
        }
        Self(Arc::new(data))
    }

    /// Creates a [`Gap`](EventKind::Gap) in place of recorded events that can't be read, for this
    /// reason.
    pub fn unreadable(
        session: SessionId,
        events: RangeInclusive<u64>,
        at: Timestamp,
        reason: impl Into<String>,
    ) -> Self {
        let (from_seq, to_seq) = events.into_inner();
        let missed = to_seq.saturating_sub(from_seq).saturating_add(1);
        let (per_agent, reason) = (Default::default(), Some(reason.into()));
        let kind = EventKind::Gap { from_seq, to_seq, missed, per_agent, reason };
        Self::new(to_seq, at, Arc::new(Origin::session(session, None)), kind)
    }

    /// Returns the root session.
    pub fn session_id(&self) -> &SessionId {
        &self.origin.session_id
    }

    /// Returns the run during which it happened.
    pub fn run_id(&self) -> Option<&RunId> {
        self.origin.run_id.as_ref()
    }

    /// Returns the invocation's reply; absent on session-level events.
    pub fn reply_id(&self) -> Option<&ReplyId> {
        self.origin.reply_id.as_ref()
    }

    /// Returns the source; `None` for the root and for session-level events.
    pub fn source(&self) -> Option<&EventSource> {
        self.origin.source.as_deref()
    }

    /// Returns the instance that produced it; `None` for the root.
    pub fn agent_key(&self) -> Option<&AgentKey> {
        self.source().map(|source| &source.agent_key)
    }

    /// Returns the depth of its producer; 0 for the root.
    pub fn depth(&self) -> u16 {
        self.source().map_or(0, |source| source.depth)
    }

    /// Returns the producer's id, as it was declared; `main` on session-level events.
    pub fn agent_id(&self) -> &str {
        let root_id = || self.origin.root_id.as_deref().unwrap_or(ROOT);
        self.source().map_or_else(root_id, |source| &source.agent_id)
    }

    /// Returns the producer's display name: its name, or else its [id](Self::agent_id).
    pub fn agent_label(&self) -> &str {
        let name = self.source().and_then(|source| source.agent_name.as_deref());
        name.unwrap_or_else(|| self.agent_id())
    }

    /// Returns `true` if it belongs to the root agent, or to the session itself.
    pub fn is_root(&self) -> bool {
        self.origin.source.is_none()
    }

    /// Returns the event as one line of JSON.
    pub fn to_json(&self) -> String {
        #[expect(clippy::expect_used, reason = "strings, numbers and maps with string keys always serialize")]
        serde_json::to_string(self).expect("an event is JSON")
    }

    /// Returns `true` if this is the only event of a run: the run was cancelled while it was
    /// queued, and never began.
    pub fn is_queued_run_cancel(&self) -> bool {
        matches!(self.kind, EventKind::RunCancelled { .. })
    }

    /// Returns `true` if this starts the root's invocation, and with it the run.
    pub fn is_run_start(&self) -> bool {
        self.is_root() && matches!(self.kind, EventKind::AgentStart { .. })
    }

    /// Returns `true` if this ends the root's invocation, and with it the run.
    pub fn is_run_end(&self) -> bool {
        self.is_root() && matches!(self.kind, EventKind::AgentEnd { .. })
    }
}

impl Deref for AgentEvent {
    type Target = EventData;

    fn deref(&self) -> &EventData {
        &self.0
    }
}

impl fmt::Debug for AgentEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests;
