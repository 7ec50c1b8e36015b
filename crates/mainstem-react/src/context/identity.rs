//! Which agent an invocation is of, where it stands, and for whom it works.

use std::sync::Arc;

use mainstem_event::EventSource;
use mainstem_message::{AgentKey, RunId, SessionId, ToolCallId};
use serde_json::{Map, Value};

use super::RunContext;

impl RunContext {
    /// The agent's id.
    pub fn agent(&self) -> &Arc<str> {
        &self.invocation.agent
    }

    /// The tool call that is being worked on.
    pub fn call_id(&self) -> Option<&ToolCallId> {
        self.call.as_ref()
    }

    /// Who the agent is; `None` for the root.
    pub fn source(&self) -> Option<&EventSource> {
        self.invocation.sink.origin().source.as_deref()
    }

    /// The instance; `None` for the root.
    pub fn agent_key(&self) -> Option<&AgentKey> {
        self.source().map(|source| &source.agent_key)
    }

    /// 0 for the root.
    pub fn depth(&self) -> u16 {
        self.source().map_or(0, |source| source.depth)
    }

    /// The agent's own session: the root's, or `sub-…`.
    pub fn session_id(&self) -> &SessionId {
        let origin = self.invocation.sink.origin();
        origin.source.as_ref().map_or(&origin.session_id, |source| &source.session_id)
    }

    /// The run.
    pub fn run_id(&self) -> Option<&RunId> {
        self.invocation.sink.origin().run_id.as_ref()
    }

    /// `<root session>[/<agent_id>…]`.
    pub fn path(&self) -> &str {
        let origin = self.invocation.sink.origin();
        origin.source.as_ref().map_or(origin.session_id.as_str(), |source| &source.path)
    }

    /// On whose behalf it works.
    pub fn user(&self) -> Option<&str> {
        self.shared.user.as_deref()
    }

    /// What the caller of the run attached to it.
    pub fn attributes(&self) -> &Map<String, Value> {
        &self.shared.attributes
    }
}
