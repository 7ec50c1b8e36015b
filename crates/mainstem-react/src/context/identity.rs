//! The identity of an invocation: its agent, its place in the fleet, and its user.

use std::{future::Future, sync::Arc};

use mainstem_event::{EventSource, fold::ROOT};
use mainstem_message::{AgentKey, RunId, SessionId, ToolCallId};
use serde_json::{Map, Value};
use tracing::Instrument;

use super::RunContext;
use crate::{RunOutcome, span};

impl RunContext {
    /// Returns the agent's id.
    pub fn agent(&self) -> &Arc<str> {
        &self.invocation.agent
    }

    /// Returns the tool call of this context.
    pub fn call_id(&self) -> Option<&ToolCallId> {
        self.call.as_ref()
    }

    /// Returns the source of its events; `None` for the root.
    pub fn source(&self) -> Option<&EventSource> {
        self.invocation.sink.origin().source.as_deref()
    }

    /// Returns the key of the instance; `None` for the root.
    pub fn agent_key(&self) -> Option<&AgentKey> {
        self.source().map(|source| &source.agent_key)
    }

    /// Returns the key of its instance as a request of its model has it: `root` for the root.
    pub(crate) fn key(&self) -> Arc<str> {
        self.agent_key().map_or(ROOT, AgentKey::as_str).into()
    }

    /// Returns the depth; 0 for the root.
    pub fn depth(&self) -> u16 {
        self.source().map_or(0, |source| source.depth)
    }

    /// Returns the agent's own session: the root's, or `sub-…`.
    pub fn session_id(&self) -> &SessionId {
        let origin = self.invocation.sink.origin();
        origin.source.as_ref().map_or(&origin.session_id, |source| &source.session_id)
    }

    /// Returns the session of the root, of which the agents' own sessions are parts.
    pub fn root_session_id(&self) -> &SessionId {
        &self.invocation.sink.origin().session_id
    }

    /// Returns the run's id.
    pub fn run_id(&self) -> Option<&RunId> {
        self.invocation.sink.origin().run_id.as_ref()
    }

    /// Returns `<root session>[/<agent_id>…]`.
    pub fn path(&self) -> &str {
        let origin = self.invocation.sink.origin();
        origin.source.as_ref().map_or(origin.session_id.as_str(), |source| &source.path)
    }

    /// Returns the user on whose behalf it runs.
    pub fn user(&self) -> Option<&str> {
        self.shared.user.as_deref()
    }

    /// Returns the attributes of the run.
    pub fn attributes(&self) -> &Map<String, Value> {
        &self.shared.attributes
    }

    /// Runs the work of an invocation without the loop in a `tracing` span of its own, as the loop
    /// does; `name` is the agent's display name.
    pub fn in_span(
        &self,
        name: &str,
        work: impl Future<Output = RunOutcome> + Send + 'static,
    ) -> impl Future<Output = RunOutcome> + Send + 'static {
        let span = span::invocation(name, self);
        let work = async {
            let outcome = work.await;
            span::invoked(&outcome);
            outcome
        };
        work.instrument(span)
    }
}
