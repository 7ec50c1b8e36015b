//! What a run does with its session: it begins, stores what it was, and ends.

use std::{sync::Arc, time::Duration};

use mainstem_event::{EventKind, EventSink, Origin, RunSettings, fold::RecordedTurn};
use mainstem_message::{AgentKey, Failure, ReplyId, RunId};
use mainstem_react::{Cancellation, RunContext};
use mainstem_subagent::{Carried, Fleet};
use mainstem_task::TaskRecord;

use super::{Session, lock};
use crate::{RunAgents, RunEnd, RunOptions, RunRecord, turn::Turns, wake::Wake};

impl Session {
    /// Checks that an agent can lead the next run, with a model.
    pub(crate) async fn check_leader(&self, agent: Option<&str>, model: Option<&str>) -> Result<(), Failure> {
        self.0.source.agents(agent, model).await.map(drop)
    }

    /// Adds a run that begins to the session's runs.
    pub(crate) fn begin_run(&self, run: &RunId, settings: Arc<RunSettings>) {
        let log = &self.0.log;
        lock(&self.0.runs).push(RunRecord::new(run.clone(), log.last_seq() + 1, log.clock().now(), settings));
    }

    /// Stores the spending of a run, for a run that resumes it.
    pub(crate) fn store_spent(&self, run: &RunId, cx: &RunContext) {
        let (spent, now) = (self.0.fleet.spent_by(cx), cx.now());
        if let Some(run) = lock(&self.0.runs).iter_mut().rev().find(|known| known.id == *run) {
            (run.spent, run.ran) = (spent, Duration::from_millis(now.millis_since(run.began_at)));
        }
    }

    /// Records a run that never began: emits its only event, with the reason, and adds it to the
    /// session's runs.
    pub fn never_began(&self, run: &RunId, why: Failure) {
        let log = &self.0.log;
        let (session_id, run_id) = (self.id().clone(), Some(run.clone()));
        let sink = EventSink::resumed(log.clone(), Arc::new(Origin::session(session_id, run_id)));
        let (seq, at) = sink.emit_timed(EventKind::run_cancelled(why.clone()));
        lock(&self.0.runs).push(RunRecord::cancelled(run.clone(), seq, at, why));
    }

    /// Stores how a run has ended, unless that is known.
    pub(crate) fn end_run(&self, run: &RunId, end: impl FnOnce() -> RunEnd) {
        let mut runs = lock(&self.0.runs);
        let run = runs.iter_mut().rev().find(|known| known.id == *run);
        if let Some(run) = run.filter(|run| run.end.is_none()) {
            (run.end, run.end_seq) = (Some(end()), self.0.log.last_seq());
        }
    }

    /// Begins another checkpoint if it is time for one.
    pub(crate) fn checkpoint(&self) {
        if let Some(checkpoints) = &self.0.checkpoints {
            checkpoints.begin(self.id(), self.0.log.last_seq(), &self.0.tasks);
        }
    }

    /// Waits until the session's record is open, or has failed.
    pub(crate) async fn open_record(&self) {
        if let Some(deferred) = &self.0.deferred {
            deferred.open().await;
        }
    }

    pub(crate) fn wake(&self) -> &Wake {
        &self.0.wake
    }

    pub(crate) fn fleet_of(&self) -> &Fleet {
        &self.0.fleet
    }

    pub(crate) fn buffer(&self) -> usize {
        self.0.buffer
    }

    /// Returns the agents of a run that begins now.
    pub(crate) async fn agents(&self, options: &RunOptions) -> Result<RunAgents, Failure> {
        let agents = self.0.source.agents(options.agent.as_deref(), options.model.as_deref()).await?;
        *lock(&self.0.agents) = Some(agents.clone());
        Ok(agents)
    }

    /// Returns the id of the agent that leads the latest run.
    pub(crate) fn root_id(&self) -> Arc<str> {
        lock(&self.0.agents).as_ref().map_or_else(|| "main".into(), |agents| agents.root().id().clone())
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.0.turns
    }

    /// Adds the messages of a run to the history; what compaction has left replaces it.
    pub(crate) fn store_messages(&self, cx: &RunContext) {
        let mut history = lock(&self.0.history);
        if cx.is_compacted() {
            history.clear();
        }
        history.extend(cx.messages());
    }

    /// Continues a task of an earlier process whose child runs elsewhere.
    pub(crate) async fn continue_task(&self, task: TaskRecord, turn: RecordedTurn) {
        let Some(agents) = lock(&self.0.agents).clone() else { return };
        let (id, cx) = (task.id.clone(), self.context_of_child(&agents, &task.agent_key));
        if let Err(error) = self.0.fleet.take_over(cx, task, turn).await {
            tracing::error!(task = %id, %error, "a task of an earlier process can't be continued");
        }
    }

    /// Returns a context without a run, with what a child was spawned with.
    pub(super) fn context_of_child(&self, agents: &RunAgents, child: &AgentKey) -> RunContext {
        let Carried { user, attributes, options: spawn, .. } =
            self.0.fleet.carried(child).unwrap_or_default();
        let options = RunOptions { user, attributes, spawn, ..RunOptions::new() };
        self.context(agents, self.new_run_id(), &options, Arc::default(), Cancellation::new())
    }

    /// Returns the context of a run's root.
    pub(crate) fn context(
        &self,
        agents: &RunAgents,
        run_id: RunId,
        options: &RunOptions,
        settings: Arc<RunSettings>,
        cancel: Cancellation,
    ) -> RunContext {
        let inner = &*self.0;
        let mut attributes = options.attributes.clone();
        attributes.extend(inner.attributes.clone());
        let reply_id = ReplyId::from_lossy(inner.ids.next("reply-"));
        let root_id = agents.root().id().clone();
        let origin = Origin::root(self.id().clone(), run_id, reply_id, &root_id);
        let cx = RunContext::root(root_id, EventSink::root(inner.log.clone(), origin));
        let cx = cx
            .with_ids(inner.ids.clone())
            .with_cancel(cancel)
            .with_user(options.user.clone())
            .with_attributes(attributes)
            .with_settings(settings)
            .with_output(options.output.clone())
            .with_data_store(self.data_store())
            .with_prices(inner.prices.clone())
            .with_lifetime(inner.tasks.token().clone());
        inner.fleet.enter(cx, agents.shared().clone(), options.spawn.clone(), options.budget).build()
    }
}
