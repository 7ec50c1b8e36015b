//! The context of a tool call without an agent around it.

use mainstem_event::{EventSink, EventSource, Origin, SessionLog};
use mainstem_tool::{RunContext, RunContextBuilder};

/// A root agent `main` in a session of its own, to call a tool in; `for_call` makes its progress visible in the log behind
/// [`RunContext::sink`].
///
/// ```
/// let cx = mainstem_testing::context("s-1").build().for_call("call-1".into());
/// assert_eq!(cx.session_id().as_str(), "s-1");
/// ```
pub fn context(session_id: &str) -> RunContextBuilder {
    let log = SessionLog::new(session_id.into());
    RunContext::root("main", EventSink::root(log, Origin::session(session_id.into(), None)))
}

/// A child of this agent, in the same run.
pub fn child_context(parent: &RunContext, agent_id: &str, session_id: &str) -> RunContext {
    let source = EventSource {
        agent_key: format!("agent:{agent_id}:{session_id}").into(),
        agent_id: agent_id.into(),
        agent_name: None,
        label: None,
        session_id: session_id.into(),
        parent_session_id: parent.session_id().clone(),
        depth: parent.depth() + 1,
        path: format!("{}/{agent_id}", parent.path()).into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: parent.call_id().cloned(),
        // The session log gives it with the first event.
        stream_id: 0,
    };
    parent.child(source, format!("reply-{session_id}").into())
}
