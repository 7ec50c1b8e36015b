//! The envelope: when, by whom, in which session, and what.

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

use crate::{EventKind, EventSource, Origin, Timestamp};

/// Longest line of recorded events that `mainstem replay` reads, in bytes: 128 MiB.
///
/// An event of the largest prompt or model answer (16 MiB by default) fits, even if JSON writes
/// each of its bytes as six.
pub const MAX_LINE_BYTES: usize = 128 << 20;

/// Something that happened in a session. Cheap to clone: one shared allocation.
///
/// The JSON form is flat and `camelCase`: the envelope (`seq`, `id`, `sessionId`, `runId`,
/// `createdAt`, `source`, `replyId`, `metadata`), `type`, and the fields of the kind.
/// [`Display`](fmt::Display) is one line for people.
///
/// ```
/// use mainstem_event::{AgentEvent, EventKind};
///
/// let json = r#"{"type":"TEXT_BLOCK_DELTA","seq":7,"sessionId":"s","createdAt":"2026-11-21T10:00:00Z","blockId":"b","delta":"Hi"}"#;
/// let event: AgentEvent = serde_json::from_str(json)?;
/// assert!(matches!(&event.kind, EventKind::TextBlockDelta { delta, .. } if delta == "Hi"));
/// assert_eq!(event.agent_label(), "main");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct AgentEvent(Arc<EventData>);

/// What an [`AgentEvent`] derefs to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EventData {
    /// 1, 2, 3 … without a gap within the session: cursor, SSE id and journal key.
    pub seq: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// What it shares with all events of its invocation.
    pub origin: Arc<Origin>,
    /// What happened.
    pub kind: EventKind,
    /// Whatever an encoder or an application adds; boxed, for most events have none.
    pub metadata: Option<Box<Map<String, Value>>>,
}

impl AgentEvent {
    /// An event as a log, a decoder or a test makes it. In a session only the session log does.
    pub fn new(seq: u64, at: Timestamp, origin: Arc<Origin>, kind: EventKind) -> Self {
        Self(Arc::new(EventData { seq, at, origin, kind, metadata: None }))
    }

    /// The same event with metadata.
    #[must_use]
    pub fn with_metadata(self, metadata: Map<String, Value>) -> Self {
        let mut data = Arc::unwrap_or_clone(self.0);
        data.metadata = Some(Box::new(metadata));
        Self(Arc::new(data))
    }

    /// The event without an agent's declaration: for readers that are not to see the operator's
    /// prompts.
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

    /// A [`Gap`](EventKind::Gap) in the place of recorded events that can't be read, for this
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

    /// The root session.
    pub fn session_id(&self) -> &SessionId {
        &self.origin.session_id
    }

    /// The run during which it happened.
    pub fn run_id(&self) -> Option<&RunId> {
        self.origin.run_id.as_ref()
    }

    /// The invocation's reply; absent on session-level events.
    pub fn reply_id(&self) -> Option<&ReplyId> {
        self.origin.reply_id.as_ref()
    }

    /// Who produced it; absent for the root and on session-level events.
    pub fn source(&self) -> Option<&EventSource> {
        self.origin.source.as_deref()
    }

    /// The instance that produced it; absent for the root.
    pub fn agent_key(&self) -> Option<&AgentKey> {
        self.source().map(|source| &source.agent_key)
    }

    /// 0 for the root.
    pub fn depth(&self) -> u16 {
        self.source().map_or(0, |source| source.depth)
    }

    /// The producer's name for people: its name, else its id, `main` for the root.
    pub fn agent_label(&self) -> &str {
        self.source().map_or("main", |source| source.agent_name.as_deref().unwrap_or(&source.agent_id))
    }

    /// Whether it belongs to the agent whose stream this is, or to the session itself.
    pub fn is_root(&self) -> bool {
        self.origin.source.is_none()
    }

    /// The event as one line of JSON.
    pub fn to_json(&self) -> String {
        #[expect(clippy::expect_used, reason = "strings, numbers and maps with string keys always serialize")]
        serde_json::to_string(self).expect("an event is JSON")
    }

    /// Returns `true` if this is the only event of a run: the run was cancelled while it was
    /// queued, and never began.
    pub fn cancels_queued_run(&self) -> bool {
        matches!(self.kind, EventKind::RunCancelled { .. })
    }

    /// Returns `true` if this starts the root's invocation, and with it the run.
    pub fn starts_run(&self) -> bool {
        self.is_root() && matches!(self.kind, EventKind::AgentStart { .. })
    }

    /// Whether this ends the root's invocation, and with it the run.
    pub fn ends_run(&self) -> bool {
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
