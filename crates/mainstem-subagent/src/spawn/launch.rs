//! A child that starts: its source, its context, its place in the roster while it works.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use mainstem_event::EventSource;
use mainstem_message::{AgentKey, Message, SessionId};
use mainstem_policy::Amount;
use mainstem_react::{Agent, Declaration, RunContext, RunOutcome};
use mainstem_spec::AgentSpec;

use crate::{
    error::SpawnError,
    fleet::Fleet,
    member::Member,
    spawn::{
        idle::watch,
        lineage::Lineage,
        roster::{Carried, Identity, Seat},
        start_order::StartTicket,
    },
};

/// What to start.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) agent_id: String,
    pub(crate) task: String,
    pub(crate) label: Option<String>,
}

/// A child's turn, about to begin or under way. Owned, so that it can go on without whoever began
/// it. Dropping it stops the child.
pub(crate) struct Child {
    pub(crate) source: EventSource,
    pub(crate) cx: RunContext,
    pub(crate) label: Option<String>,
    pub(crate) task: String,
    /// Resolves when it is its turn to start.
    pub(crate) turn: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    pub(crate) work: Pin<Box<dyn Future<Output = RunOutcome> + Send>>,
}

impl Fleet {
    /// A new child, or the next turn of the one that a spec wants to be found again. Nothing is
    /// created unless everything is in order.
    pub(crate) fn launch(
        self: &Arc<Self>,
        cx: &RunContext,
        order: Order,
        start: Option<StartTicket>,
    ) -> Result<Child, SpawnError> {
        let member = Member::of(cx)?;
        let lineage = Lineage::new(self.admit(cx, &order.agent_id)?, member.lineage.clone());
        let label = order.label.map(|label| label.trim().to_owned()).filter(|label| !label.is_empty());
        let persists = lineage.entry.spec.persist_session;
        let identity = persists.then(|| identity(cx, order.agent_id, label.as_deref()));
        if let Some(key) = identity.as_ref().and_then(|identity| self.roster.same(identity)) {
            return self.relaunch(cx, &key, order.task, start).map_err(|error| match error {
                SpawnError::Busy { key } => SpawnError::AtWork { key },
                error => error,
            });
        }
        let source = new_source(cx, &lineage.entry.agent, label.as_deref());
        let spawn = self.reserve_spawn(cx)?;
        if let Some(label) = &label {
            self.roster.claim(label, &source.agent_key)?;
        }
        if let Some(identity) = identity {
            self.roster
                .identify(identity, &source.agent_key)
                .inspect_err(|_| self.roster.forget(&source.agent_key))?;
        }
        spawn.settle(Some(Amount::spawn()));
        self.roster.enter(lineage.clone(), source.clone(), label.clone(), Carried::of(cx), cx.now());
        Ok(self.child(cx, member, Seat { lineage, source, history: Vec::new(), label }, order.task, start))
    }

    /// An idle child's next turn.
    pub(crate) fn relaunch(
        self: &Arc<Self>,
        cx: &RunContext,
        key: &AgentKey,
        message: String,
        start: Option<StartTicket>,
    ) -> Result<Child, SpawnError> {
        let member = Member::of(cx)?;
        let seat = self.roster.resume(key, cx.now(), cx.call_id().cloned())?;
        Ok(self.child(cx, member, seat, message, start))
    }

    fn child(
        self: &Arc<Self>,
        cx: &RunContext,
        member: &Member,
        seat: Seat,
        task: String,
        start: Option<StartTicket>,
    ) -> Child {
        let Seat { lineage, source, history, label } = seat;
        let account = member.account.for_child(&source, &lineage.entry.spec);
        let (reply, declared) = (cx.new_id("reply-"), self.declaration(&source, &lineage.entry.spec));
        let cx = cx.detachable_child(source.clone(), reply.into(), declared);
        let cx = cx.with_attachment(member.child(account, Some(lineage.clone())));
        self.roster.works_in(&source.agent_key, &cx);
        let place = Place { fleet: self.clone(), cx: cx.clone() };
        let turn = start.as_ref().map(|start| Box::pin(start.turn()) as _);
        let aside = async move {
            // Asked for the first time after the child has started.
            drop(start);
            watch(&place.cx, place.fleet.limits().idle).await;
        };
        let work = Box::pin(run(&lineage.entry.agent, &cx, history, task.clone(), aside));
        Child { source, cx, label, task, turn, work }
    }
}

impl Fleet {
    /// What a child records in its first turn.
    fn declaration(&self, source: &EventSource, spec: &AgentSpec) -> Option<Arc<Declaration>> {
        if source.turn > 1 { None } else { self.versions.declaration(spec) }
    }
}

/// A child's place in the roster while it works; gives back what was said, however it ends.
struct Place {
    fleet: Arc<Fleet>,
    cx: RunContext,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(key) = self.cx.agent_key() {
            self.fleet.spending.ends_turn(&self.cx, key);
            self.fleet.roster.leave(key, self.cx.messages(), self.cx.now());
        }
    }
}

pub(crate) fn run(
    agent: &Agent,
    cx: &RunContext,
    history: Vec<Arc<Message>>,
    task: String,
    aside: impl Future<Output = ()> + Send + 'static,
) -> impl Future<Output = RunOutcome> + Send + 'static {
    agent.run_beside(cx.clone(), history, vec![Arc::new(Message::user(task))], aside)
}

fn identity(cx: &RunContext, agent_id: String, label: Option<&str>) -> Identity {
    let user = cx.user().map(str::to_owned);
    Identity { parent: cx.session_id().clone(), agent_id, label: label.map(str::to_lowercase), user }
}

/// Who a new child of the context's agent is.
pub(crate) fn new_source(cx: &RunContext, agent: &Agent, label: Option<&str>) -> EventSource {
    let agent_id = agent.id();
    EventSource {
        agent_key: AgentKey::new(cx.new_id(&format!("agent:{agent_id}:"))),
        agent_id: agent_id.clone(),
        agent_name: Some(agent.name().clone()),
        label: label.map(Arc::from),
        session_id: SessionId::new(cx.new_id("sub-")),
        parent_session_id: cx.session_id().clone(),
        depth: cx.depth() + 1,
        path: format!("{}/{agent_id}", cx.path()).into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: cx.call_id().cloned(),
        // The session log gives it when the child starts.
        stream_id: 0,
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("key", &self.source.agent_key).finish_non_exhaustive()
    }
}
