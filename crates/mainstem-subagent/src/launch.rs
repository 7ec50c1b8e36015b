//! Starting a child: its source, its context, its place in the roster while it works.

use std::sync::Arc;

use mainstem_event::EventSource;
use mainstem_message::{AgentKey, Message, ReplyId, SessionId};
use mainstem_react::{Agent, RunOutcome};
use mainstem_tool::RunContext;

use crate::{
    Fleet, SpawnError,
    report::Report,
    roster::{Roster, Seat},
};

/// What to start.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) agent_id: String,
    pub(crate) task: String,
    pub(crate) label: Option<String>,
}

impl Fleet {
    /// Starts a new child and waits for its reply. Nothing is created unless everything is in order.
    pub(crate) async fn spawn(&self, cx: &RunContext, order: Order) -> Result<Report, SpawnError> {
        let agent = self.admit(cx, &order.agent_id)?.agent.clone();
        let label = order.label.map(|label| label.trim().to_owned()).filter(|label| !label.is_empty());
        let source = new_source(cx, agent.id());
        if let Some(label) = &label {
            self.roster.claim(label, &source.agent_key)?;
        }
        self.roster.enter(agent.clone(), source.clone(), label, cx.now());
        Ok(self.work(cx, Seat { agent, source, history: Vec::new() }, order.task).await)
    }

    /// Asks an idle child something further and waits for its reply.
    pub(crate) async fn send(
        &self,
        cx: &RunContext,
        key: &AgentKey,
        message: String,
    ) -> Result<Report, SpawnError> {
        let seat = self.roster.resume(key, cx.now(), |source| {
            source.parent_tool_call_id = cx.call_id().cloned();
            source.stream_id = cx.next_stream_id();
        })?;
        Ok(self.work(cx, seat, message).await)
    }

    async fn work(&self, cx: &RunContext, seat: Seat, task: String) -> Report {
        let child = child_context(cx, seat.source.clone());
        // Declared before the work: on a drop the child ends first, then its place is given back.
        let _place = Place { roster: &self.roster, key: &seat.source.agent_key, cx: &child };
        let outcome = run(&seat.agent, &child, seat.history, task).await;
        Report::new(&seat.source, outcome)
    }
}

/// A child's place in the roster while it works; gives back what was said, however it ends.
struct Place<'a> {
    roster: &'a Roster,
    key: &'a AgentKey,
    cx: &'a RunContext,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.roster.leave(self.key, self.cx.messages(), self.cx.now());
    }
}

pub(crate) fn child_context(cx: &RunContext, source: EventSource) -> RunContext {
    cx.child(source, ReplyId::new(cx.new_id("reply-")))
}

pub(crate) async fn run(
    agent: &Agent,
    cx: &RunContext,
    history: Vec<Arc<Message>>,
    task: String,
) -> RunOutcome {
    agent.run(cx.clone(), history, vec![Arc::new(Message::user(task))]).await
}

/// Who a new child of the context's agent is.
pub(crate) fn new_source(cx: &RunContext, agent_id: &Arc<str>) -> EventSource {
    EventSource {
        agent_key: AgentKey::new(cx.new_id(&format!("agent:{agent_id}:"))),
        agent_id: agent_id.clone(),
        agent_name: None,
        session_id: SessionId::new(cx.new_id("sub-")),
        parent_session_id: cx.session_id().clone(),
        depth: cx.depth() + 1,
        path: format!("{}/{agent_id}", cx.path()).into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: cx.call_id().cloned(),
        stream_id: cx.next_stream_id(),
    }
}
