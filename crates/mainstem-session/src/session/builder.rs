//! Opening and beginning sessions.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use mainstem_event::{Clock, Ids, LogOptions, Position, RandomIds, SessionLog, SystemClock};
use mainstem_journal::{Journal, JournalError};
use mainstem_message::{RunId, SessionId, TaskId};
use mainstem_policy::{Budget, PlanMode, Prices};
use mainstem_subagent::{Fleet, Limits};
use mainstem_task::TaskSet;
use serde_json::{Map, Value};
use tokio::{runtime::Handle, sync::OnceCell};

use super::{Begun, Inner, Session, lock};
use crate::{
    AgentSource, OnTaskFinished,
    checkpoints::Checkpoints,
    deferred::Deferred,
    moments::Moments,
    past::{Continued, Past},
    turn::Turns,
    wake::Wake,
};

/// Builds a [`Session`].
#[must_use]
pub struct SessionBuilder {
    source: Arc<dyn AgentSource>,
    id: Option<SessionId>,
    limits: Limits,
    tasks: Option<TaskSet>,
    budget: Budget,
    prices: Arc<Prices>,
    attributes: Map<String, Value>,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    log: LogOptions,
    on_task_finished: OnTaskFinished,
}

impl SessionBuilder {
    pub(super) fn new(source: Arc<dyn AgentSource>) -> Self {
        Self {
            source,
            id: None,
            limits: Limits::default(),
            tasks: None,
            budget: Budget::default(),
            prices: Arc::default(),
            attributes: Map::new(),
            ids: Arc::new(RandomIds),
            clock: Arc::new(SystemClock),
            log: LogOptions::default(),
            on_task_finished: OnTaskFinished::default(),
        }
    }

    /// Its id; a random one by default.
    pub fn with_id(mut self, id: SessionId) -> Self {
        self.id = Some(id);
        self
    }

    /// How far agents may go.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the task set that runs background work; by default a separate set with records in
    /// memory.
    pub fn with_tasks(mut self, tasks: TaskSet) -> Self {
        self.tasks = Some(tasks);
        self
    }

    /// What all its runs together may spend.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// What models cost; the built-in list by default.
    pub fn with_prices(mut self, prices: Arc<Prices>) -> Self {
        self.prices = prices;
        self
    }

    /// What tools and children of every run should know; a run can't say otherwise.
    pub fn with_attribute(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    /// Where ids come from.
    pub fn with_ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.ids = ids;
        self
    }

    /// What time it is.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// What happens when a background task ends between runs.
    pub fn with_on_task_finished(mut self, what: OnTaskFinished) -> Self {
        self.on_task_finished = what;
        self
    }

    /// How much the log keeps and lets through.
    pub fn with_log(mut self, options: LogOptions) -> Self {
        self.log = options;
        self
    }

    /// Opens the session in a journal, or begins it there. Its history is restored, invocations
    /// that were cut off when their process ended have an `AGENT_END`, and children can be sent to.
    /// Others can open it once every clone of it, every run and every cursor is dropped.
    ///
    /// # Errors
    /// It is open elsewhere; the journal can't be read or written.
    pub async fn open(mut self, journal: &Arc<dyn Journal>) -> Result<Session, JournalError> {
        let id = self.id.take().unwrap_or_else(|| SessionId::from_lossy(self.ids.next("session-")));
        let record = journal.open(&id).await?;
        let Position { last, run, .. } = record.position();
        let known = journal.session(&id).await?;
        let cut = known.as_ref().and_then(|known| known.cut.clone());
        let begun = match known {
            Some(known) => Begun { at: known.created_at, first: known.first },
            None => Begun { at: self.clock.now(), first: 1 },
        };
        let mut past = Past::read(&**journal, &id, last).await?;
        let is_cut = run.is_some() || is_left_cut(&**journal, &id, cut, &past).await;
        // Each run reads its agents again.
        let agents = match self.source.known() {
            Some(agents) => Some(agents),
            None => self.source.agents(None, None).await.ok(),
        };
        let tasks = self.tasks.get_or_insert_with(TaskSet::in_memory).clone();
        let continued = match &agents {
            // Tasks run in a runtime.
            Some(agents) if Handle::try_current().is_ok() => {
                Box::pin(past.take_continued(&**journal, &id, agents, &tasks, &self.prices)).await
            }
            _ => Vec::new(),
        };
        let is_continued = |task: &TaskId| continued.iter().any(|one| one.task.id == *task);
        let log = SessionLog::with_record(id, self.clock.clone(), self.log.clone(), record);
        past.close(&log);
        // A task ends in its record first; the log repeats what the record has.
        let end = |task: &TaskId| (!is_continued(task)).then(|| past.task_end(task));
        match tasks.end_orphans(log.session_id(), end).await {
            Ok(mut records) => {
                records.retain(|record| !is_continued(&record.id));
                past.close_tasks(&log, &tasks, &records, is_continued);
            }
            Err(error) => {
                tracing::warn!(session = %log.session_id(), %error, "tasks of an earlier process could not be ended");
                past.follow_tasks(&log, &tasks, is_continued);
            }
        }
        // Readers see an ending once it is committed: who opens the session sees those that it has
        // caused.
        if log.last_seq() > last
            && let Err(error) = journal.flush().await
        {
            tracing::warn!(session = %log.session_id(), %error, "the endings of an earlier process are not committed yet");
        }
        let children = std::mem::take(&mut past.children);
        let checkpoints = Checkpoints::new(journal.clone(), past.checkpoint);
        let session = self.assemble(log, begun, past, Some(checkpoints), None);
        if let Some(agents) = agents {
            session.0.fleet.restore(agents.shared(), children);
            *lock(&session.0.agents) = Some(agents);
        }
        for Continued { task, turn } in continued {
            Box::pin(session.continue_task(task, turn)).await;
        }
        session.checkpoint();
        session.0.is_cut.store(is_cut, Ordering::Release);
        Ok(session)
    }

    /// The session, in memory.
    pub fn build(mut self) -> Session {
        let id = self.id.take().unwrap_or_else(|| SessionId::from_lossy(self.ids.next("session-")));
        let log = SessionLog::with(id, self.clock.clone(), self.log.clone());
        let begun = Begun { at: self.clock.now(), first: 1 };
        self.assemble(log, begun, Past::default(), None, None)
    }

    /// Creates a session that a journal records; its first run opens it there, so this call does
    /// not wait for the journal.
    ///
    /// If the journal can't record it, its runs end with an error that says why.
    pub fn begin(mut self, journal: &Arc<dyn Journal>) -> Session {
        let id = self.id.take().unwrap_or_else(|| SessionId::from_lossy(self.ids.next("session-")));
        let record = Arc::new(Deferred::new(journal.clone(), id.clone()));
        let log = SessionLog::with_record(id, self.clock.clone(), self.log.clone(), record.clone());
        let checkpoints = Checkpoints::new(journal.clone(), 0);
        let begun = Begun { at: self.clock.now(), first: 1 };
        self.assemble(log, begun, Past::default(), Some(checkpoints), Some(record))
    }

    fn assemble(
        self,
        log: Arc<SessionLog>,
        begun: Begun,
        mut past: Past,
        checkpoints: Option<Checkpoints>,
        deferred: Option<Arc<Deferred>>,
    ) -> Session {
        let tasks = self.tasks.unwrap_or_else(TaskSet::in_memory);
        let mode = if past.fleet.plan_mode { PlanMode::On } else { PlanMode::Off };
        let fleet = Fleet::new(self.limits, tasks.clone()).with_budget(self.budget).with_plan_mode(mode);
        let fleet = fleet.with_spent(&past.spent(&self.prices));
        let runs = past.runs_with_latest(&self.prices);
        Session(Arc::new(Inner {
            source: self.source,
            agents: Mutex::default(),
            buffer: self.log.buffer,
            watch: Mutex::new((None, past.fleet)),
            moments: Moments::default(),
            log,
            begun,
            fleet: Arc::new(fleet),
            tasks,
            prices: self.prices,
            attributes: self.attributes,
            ids: self.ids,
            history: Mutex::new(past.history),
            runs: Mutex::new(runs),
            checkpoints,
            deferred,
            turns: Turns::new(),
            wake: Wake::new(self.on_task_finished),
            is_cut: AtomicBool::new(false),
            restored: OnceCell::new(),
        }))
    }
}

impl fmt::Debug for SessionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionBuilder").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Returns `true` if the last run was cut off, and an earlier process has ended it without
/// resuming its turn. A mark of an earlier run is removed.
async fn is_left_cut(journal: &dyn Journal, id: &SessionId, cut: Option<RunId>, past: &Past) -> bool {
    let Some(cut) = cut else { return false };
    if past.runs.iter().rfind(|run| !run.never_began).is_some_and(|last| last.id == cut) {
        return true;
    }
    if let Err(error) = journal.forget_cut(id).await {
        tracing::warn!(session = %id, %error, "a run that was cut off long ago can't be forgotten");
    }
    false
}
