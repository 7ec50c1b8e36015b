//! Starts a child's turn: gives it a source, a context and an account, and keeps the roster up to
//! date with it.

use std::{fmt, pin::Pin, sync::Arc};

use mainstem_event::EventSource;
use mainstem_message::{AgentKey, ReplyId, SessionId};
use mainstem_policy::Amount;
use mainstem_react::{Agent, RunContext};

use crate::{
    catalog::CatalogEntry,
    error::SpawnError,
    member::Member,
    spawn::{
        idle::watch,
        lineage::Lineage,
        roster::{Carried, Identity, Seat},
        runner::{Runner, RunningTurn, TurnInput},
        start_order::StartTicket,
    },
};

/// A request for a new child.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) entry: CatalogEntry,
    pub(crate) task: String,
    pub(crate) label: Option<String>,
}

/// A child's turn, about to start or running. Dropping it stops the child.
pub(crate) struct Child {
    pub(crate) source: EventSource,
    pub(crate) cx: RunContext,
    pub(crate) task: String,
    /// Waits until it is the child's turn to start.
    pub(crate) start: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    pub(crate) turn: RunningTurn,
}

impl Member {
    /// Returns the agent that a model asks for, if this one may spawn it.
    pub(crate) fn admit(&self, cx: &RunContext, id: &str) -> Result<CatalogEntry, SpawnError> {
        self.check_room(cx)?;
        self.generated.spawnable(&self.assembly.catalog, id)
    }

    /// Checks that this agent may have one more child.
    pub(crate) fn check_room(&self, cx: &RunContext) -> Result<(), SpawnError> {
        check_depth(cx, self.max_depth())?;
        drop(self.account.reserve(Amount::spawn)?);
        Ok(())
    }

    /// Returns the depth of the deepest agent of the run.
    pub(crate) fn max_depth(&self) -> u16 {
        let session = self.fleet.limits().max_depth;
        self.options.max_depth.map_or(session, |own| own.min(session))
    }

    /// Starts a new child, or the next turn of the one that its spec finds again. Nothing is
    /// created before every check has passed.
    pub(crate) fn launch(
        &self,
        cx: &RunContext,
        order: Order,
        start: Option<StartTicket>,
    ) -> Result<Child, SpawnError> {
        let Order { entry, task, label } = order;
        let lineage = Lineage::new(entry, self.lineage.clone());
        let label = label.map(|label| label.trim().to_owned()).filter(|label| !label.is_empty());
        let identity = lineage
            .entry
            .spec
            .persist_session
            .then(|| Identity::new(cx.session_id(), &lineage.entry.spec.id, label.as_deref(), cx.user()));
        let roster = &self.fleet.roster;
        if let Some(key) = identity.as_ref().and_then(|identity| roster.same(identity)) {
            return self.relaunch(cx, &key, task, start).map_err(|error| match error {
                SpawnError::Busy { key } => SpawnError::StillRunning { key },
                error => error,
            });
        }
        let CatalogEntry { spec, agent, .. } = &lineage.entry;
        let source = new_source(cx, &spec.id, agent.local().map(Agent::name), label.as_deref(), &task);
        let spawn = self.account.reserve(Amount::spawn)?;
        if let Some(label) = &label {
            roster.claim(label, &source.agent_key)?;
        }
        if let Some(identity) = identity {
            roster.identify(identity, &source.agent_key).inspect_err(|_| roster.forget(&source.agent_key))?;
        }
        spawn.settle(Some(Amount::spawn()));
        roster.enter(lineage.clone(), source.clone(), Carried::new(cx, self.options.clone()), cx.now());
        Ok(self.start(cx, Seat { lineage, source, history: Vec::new() }, task, start))
    }

    /// Starts an idle child's next turn.
    pub(crate) fn relaunch(
        &self,
        cx: &RunContext,
        key: &AgentKey,
        message: String,
        start: Option<StartTicket>,
    ) -> Result<Child, SpawnError> {
        let seat = self.fleet.roster.resume(key, cx.now(), cx.call_id().cloned())?;
        Ok(self.start(cx, seat, message, start))
    }

    fn start(&self, cx: &RunContext, seat: Seat, task: String, start: Option<StartTicket>) -> Child {
        let agent = seat.lineage.entry.agent.clone();
        self.start_on(agent.runner(), cx, seat, task, start)
    }

    /// Starts a turn on this runner.
    pub(crate) fn start_on(
        &self,
        runner: &dyn Runner,
        cx: &RunContext,
        seat: Seat,
        task: String,
        start: Option<StartTicket>,
    ) -> Child {
        let Seat { lineage, source, history } = seat;
        let spec = lineage.entry.spec.clone();
        // A child records its declaration in its first turn.
        let declared = if source.turn > 1 { None } else { self.fleet.versions.declaration(&lineage.entry) };
        let member = self.child(self.account.for_child(&source, &spec), Some(lineage));
        let cx = cx.detachable_child(source.clone(), ReplyId::from_lossy(cx.new_id("reply-")), declared);
        let cx = cx.with_attachment(member.clone());
        let ready = start.as_ref().map(|start| Box::pin(start.turn()) as _);
        let watchdog = member.present(&cx, start);
        let turn = runner.run_turn(TurnInput { cx: cx.clone(), history, task: task.clone(), watchdog });
        Child { source, cx, task, start: ready, turn }
    }
}

impl Member {
    /// Puts a turn of this member into the roster. Returns its watchdog, which removes it from the
    /// roster when it is dropped.
    pub(crate) fn present(
        self: Arc<Self>,
        cx: &RunContext,
        start: Option<StartTicket>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if let Some(key) = cx.agent_key() {
            self.fleet.roster.set_context(key, cx, &self.waits);
        }
        let presence = Presence { member: self, cx: cx.clone() };
        Box::pin(async move {
            // First polled after the child has started.
            drop(start);
            let Presence { member, cx } = &presence;
            watch(cx, &member.waits, member.fleet.limits().idle).await;
        })
    }
}

/// A child's turn in the roster; when it ends, the roster and the account get what came of it,
/// however it ends.
struct Presence {
    member: Arc<Member>,
    cx: RunContext,
}

impl Drop for Presence {
    fn drop(&mut self) {
        if let Some(key) = self.cx.agent_key() {
            self.member.account.end_turn(key);
            if self.cx.is_compacted() {
                self.member.fleet.roster.forget_history(key);
            }
            self.member.fleet.roster.leave(key, &self.cx.messages(), self.cx.now());
        }
    }
}

/// Checks that an agent may have children.
pub(crate) fn check_depth(cx: &RunContext, max_depth: u16) -> Result<(), SpawnError> {
    let depth = cx.depth();
    if depth < max_depth { Ok(()) } else { Err(SpawnError::TooDeep { depth, max_depth }) }
}

/// Returns the source of a new child of the context's agent.
pub(crate) fn new_source(
    cx: &RunContext,
    agent_id: &str,
    name: Option<&Arc<str>>,
    label: Option<&str>,
    task: &str,
) -> EventSource {
    let agent_id: Arc<str> = agent_id.into();
    EventSource {
        agent_key: AgentKey::from_lossy(cx.new_id(&format!("agent:{agent_id}:"))),
        agent_name: Some(name.unwrap_or(&agent_id).clone()),
        title: EventSource::title_of(label, task),
        label: label.map(Arc::from),
        session_id: SessionId::from_lossy(cx.new_id("sub-")),
        parent_session_id: cx.session_id().clone(),
        depth: cx.depth() + 1,
        path: format!("{}/{agent_id}", cx.path()).into(),
        agent_id,
        task_id: None,
        turn: 1,
        parent_tool_call_id: cx.call_id().cloned(),
        // The session log sets it when the child starts.
        stream_id: 0,
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("key", &self.source.agent_key).finish_non_exhaustive()
    }
}
