//! Sessions, and which of their events a reader gets.

use mainstem_event::{EventFilter, EventKind, Timestamp};
use mainstem_message::{AgentKey, Message, RunId, SessionId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Code, Problem};

/// A list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by servers")]
pub struct Items<T> {
    /// The items.
    pub items: Vec<T>,
}

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SessionState {
    /// No run is active.
    Idle,
    /// A run is active.
    Running,
    /// The process of its last run ended before the run did; the run can be resumed.
    Unfinished,
    /// Recorded events of it can't be read.
    Damaged,
}

impl SessionState {
    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Unfinished => "unfinished",
            Self::Damaged => "damaged",
        }
    }
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by servers and sessions in other crates")]
pub struct SessionView {
    /// Its id.
    pub id: SessionId,
    /// Its state.
    pub state: SessionState,
    /// When it began.
    pub created_at: Timestamp,
    /// The number of its first stored event.
    pub first_seq: u64,
    /// The number of its latest event; 0 if it has none.
    pub last_seq: u64,
    /// When its latest event happened.
    pub updated_at: Timestamp,
    /// When its last run began; the time of its first event if none has.
    pub last_run_at: Timestamp,
    /// The active run, or the unfinished one.
    pub active_run: Option<RunId>,
    /// The runs that wait for the end of the active one, in order.
    pub queued_runs: Vec<RunId>,
    /// The number of its runs, without queued ones.
    pub runs: u64,
    /// Why recorded events can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

impl SessionView {
    /// Returns the number of stored events.
    pub fn events(&self) -> u64 {
        (self.last_seq + 1).saturating_sub(self.first_seq)
    }
}

/// The messages of an agent's conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by servers")]
pub struct Transcript {
    /// The agent; the root's key is `root`.
    pub agent_key: String,
    /// Its messages, as far as they are complete.
    pub messages: Vec<Message>,
}

/// Selects a state of the fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct FleetQuery {
    /// The state after the event of this number; by default the present state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

/// How much of the streamed content a reader gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Detail {
    /// Without deltas and blocks.
    Lifecycle,
    /// Everything.
    #[default]
    Full,
    /// Everything.
    Verbose,
}

/// Selects events. Events that are filtered out are not renumbered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct EventQuery {
    /// Only events after the event of this number; `Last-Event-ID` takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Only this run, to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Only this background task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only agents of this id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_key: Option<AgentKey>,
    /// Only agents of this depth; the root's is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u16>,
    /// Only agents of this depth or less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u16>,
    /// Only agents below this path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
    /// Only these kinds, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `lifecycle` leaves out what is streamed in pieces.
    #[serde(skip_serializing_if = "is_full")]
    pub detail: Detail,
    /// Whether to wait for further events. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follow: Option<bool>,
    /// Another form of the stream than those of `Accept`, if the server speaks its protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
}

/// A form of event streams of another protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "a server handles each")]
pub enum Format {
    /// The events of Arbiter, as server-sent events: a slot for each turn of an agent.
    Fleet,
}

fn is_full(detail: &Detail) -> bool {
    *detail == Detail::Full
}

impl EventQuery {
    /// Returns all events after this number, then live.
    pub fn after(seq: u64) -> Self {
        Self { after: (seq > 0).then_some(seq), ..Self::default() }
    }

    /// Returns all stored events.
    pub fn stored() -> Self {
        Self { follow: Some(false), ..Self::default() }
    }

    /// Selects the events of a run, to its end.
    #[must_use]
    pub fn with_run(mut self, run: &RunId) -> Self {
        self.run = Some(run.clone());
        self
    }

    /// Returns `true` if the reader waits for further events.
    pub fn is_following(&self) -> bool {
        self.follow.unwrap_or(true)
    }

    /// Returns the filter of the query; [`run`](Self::run), [`after`](Self::after) and
    /// [`detail`](Self::detail) are not part of it.
    ///
    /// # Errors
    /// A kind does not exist.
    pub fn filter(&self) -> Result<EventFilter, Problem> {
        let mut filter = EventFilter::new();
        if let Some(agent) = &self.agent {
            filter = filter.with_agent(agent);
        }
        if let Some(key) = &self.agent_key {
            filter = filter.with_key(key.clone());
        }
        if let Some(depth) = self.depth {
            filter = filter.with_depth(depth);
        }
        if let Some(depth) = self.max_depth {
            filter = filter.with_max_depth(depth);
        }
        if let Some(path) = &self.under {
            filter = filter.with_path(path);
        }
        if let Some(task) = &self.task {
            filter = filter.with_task(task.clone());
        }
        if let Some(kinds) = &self.kind {
            let kinds: Vec<_> = kinds.split(',').map(|kind| kind.trim().to_ascii_uppercase()).collect();
            kinds.iter().try_for_each(|kind| check_kind(kind))?;
            filter = filter.with_kinds(kinds);
        }
        Ok(filter)
    }
}

/// Fails for an unknown kind, whose events would never arrive.
fn check_kind(kind: &str) -> Result<(), Problem> {
    if EventKind::NAMES.contains(&kind) {
        return Ok(());
    }
    let detail = format!("there is no kind {kind:?}; there are {}", EventKind::NAMES.join(", "));
    Err(Problem::new(Code::BadQuery, detail))
}
