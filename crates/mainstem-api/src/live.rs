//! The sessions that are active, on one stream.

use mainstem_event::{AgentEvent, FleetState};
use mainstem_message::{SessionId, TenantName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SessionView;

/// Selects the sessions of a stream of [`LiveFrame`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct LiveQuery {
    /// Also the sessions of all tenants, and the use of the server's limits: for the operator's
    /// token alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// A frame of the stream of all active sessions. The stream has no cursor: a reader that
/// connects again gets the present state of each of them.
///
/// The state of a session is its `session` frame's fleet with the events after it applied; a later
/// `session` frame replaces it. What agents write is not sent, so their `last_line` is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum LiveFrame {
    /// How many sessions there are. It is sent first, and after each change.
    Summary {
        /// The sessions that are active. More than 1000 are not counted.
        live: usize,
        /// How many of them the stream has, at most 200. It adds others as these become idle.
        shown: usize,
        /// The use of the server's limits, for the operator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<ServerView>,
    },
    /// A session is active, or events of it were missed.
    Session {
        /// Its tenant, if it is another one than the reader's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<TenantName>,
        /// The name of the node that has it open, if several share the journal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<String>,
        /// The session.
        session: Box<SessionView>,
        /// What its agents are doing.
        fleet: Box<FleetState>,
    },
    /// An event of a session, without what is streamed in pieces.
    Event {
        /// The tenant of the session, if it is another one than the reader's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<TenantName>,
        /// The event.
        event: AgentEvent,
    },
    /// A session has become idle.
    Left {
        /// The tenant of the session, if it is another one than the reader's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<TenantName>,
        /// The session.
        session_id: SessionId,
    },
}

impl LiveFrame {
    /// Returns the type on the wire, which is also the name of the server-sent event.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Summary { .. } => "summary",
            Self::Session { .. } => "session",
            Self::Event { .. } => "event",
            Self::Left { .. } => "left",
        }
    }
}

/// How much of a server's limits is in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by servers")]
pub struct ServerView {
    /// The name of the node, if several share the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The runs that are queued or active.
    pub runs: Use,
    /// The sessions in memory.
    pub sessions: Use,
    /// The readers that follow sessions.
    pub readers: Use,
}

/// How much of a limit is in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_structs, reason = "built by servers")]
pub struct Use {
    /// How many are in use.
    pub used: usize,
    /// The limit.
    pub most: usize,
    /// How many each tenant uses; those without a tenant have an empty name.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub by_tenant: std::collections::BTreeMap<String, usize>,
}
