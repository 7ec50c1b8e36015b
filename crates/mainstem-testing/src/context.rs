//! The context of a tool call without an agent.

mod host;

use std::{any::Any, sync::Arc};

use mainstem_event::{EventSink, EventSource, Origin, SessionLog, Timestamp};
use mainstem_message::{AgentKey, ReplyId, RunId, SessionId};
use mainstem_tool::ToolContext;
use tokio_util::sync::CancellationToken;

use self::host::Host;

/// Builds the context of the call `call-1` of a root agent `main` in a session of its own, to call
/// a tool with.
///
/// ```
/// let cx = mainstem_testing::context("s-1").with_user("ann").build();
/// assert_eq!((cx.session_id().as_str(), cx.user()), ("s-1", Some("ann")));
/// ```
pub fn context(session_id: &str) -> ContextBuilder {
    let log = SessionLog::new(SessionId::from_lossy(session_id));
    ContextBuilder {
        host: Host::new(EventSink::root(log, Origin::session(SessionId::from_lossy(session_id), None))),
    }
}

/// Builds a [`ToolContext`].
#[derive(Debug)]
#[must_use]
pub struct ContextBuilder {
    host: Host,
}

impl ContextBuilder {
    /// Sets the run.
    pub fn with_run(mut self, run_id: &str) -> Self {
        let log = self.host.sink.log().clone();
        let origin = Origin::session(log.session_id().clone(), Some(RunId::from_lossy(run_id)));
        self.host.sink = EventSink::root(log, origin);
        self
    }

    /// Sets the user on whose behalf the agent runs.
    pub fn with_user(mut self, user: &str) -> Self {
        self.host.user = Some(user.into());
        self
    }

    /// Sets the token that cancels the call.
    pub fn with_cancel(mut self, token: CancellationToken) -> Self {
        self.host.cancel = token;
        self
    }

    /// Sets when the time for the call is over.
    pub fn with_deadline(mut self, at: Timestamp) -> Self {
        self.host.deadline = Some(at);
        self
    }

    /// Attaches a value of the application; one of each type.
    pub fn with_value<T: Any + Send + Sync>(mut self, value: Arc<T>) -> Self {
        self.host.values.insert(value.as_ref().type_id(), value);
        self
    }

    /// Builds the context.
    pub fn build(self) -> ToolContext {
        ToolContext::new(Arc::new(self.host))
    }
}

/// Returns the context of the same call by a child of the agent, whose own session is `session_id`.
///
/// # Panics
/// If the parent's context is not from [`context`].
pub fn child_context(parent: &ToolContext, agent_id: &str, session_id: &str) -> ToolContext {
    let host = host(parent);
    let above = parent.source();
    let path = above.map_or_else(|| parent.session_id().as_str(), |above| &above.path);
    let source = EventSource {
        agent_key: AgentKey::from_lossy(format!("agent:{agent_id}:{session_id}")),
        agent_id: agent_id.into(),
        agent_name: None,
        label: None,
        title: None,
        session_id: SessionId::from_lossy(session_id),
        parent_session_id: parent.session_id().clone(),
        depth: above.map_or(0, |above| above.depth) + 1,
        path: format!("{path}/{agent_id}").into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: Some(parent.call_id().clone()),
        // The session log sets it with the first event.
        stream_id: 0,
    };
    let sink = host.sink.child(source, ReplyId::from_lossy(format!("reply-{session_id}")));
    ToolContext::new(Arc::new(host.child(sink)))
}

/// Returns the log in which the progress of a call is recorded.
///
/// # Panics
/// If the context is not from [`context`].
pub fn log_of(cx: &ToolContext) -> &Arc<SessionLog> {
    host(cx).sink.log()
}

fn host(cx: &ToolContext) -> &Host {
    cx.host().expect("a context of this kit")
}
