//! A session as its record tells it: what was said in it, by whom, and what was cut off when its
//! process ended. What that comes to is kept beside the record now and then, so that a long session
//! need not be read from its beginning.

use std::{collections::BTreeMap, sync::Arc};

use mainstem_event::{
    AgentEvent, CancelReason, EventKind, EventSink, FleetState, Origin, Outcome, Rollup, SessionLog,
    TaskStatus, Timestamp, fold::ROOT, fold::Transcript,
};
use mainstem_journal::{Checkpoint, Journal, JournalError};
use mainstem_message::{AgentKey, Failure, Message, ReplyId, SessionId, StopReason, TaskId};
use mainstem_policy::Prices;
use mainstem_subagent::{RESTARTED, RecordedRoster, Spent};
use mainstem_task::{TaskEnd, TaskRecord, TaskSet};
use serde::{Deserialize, Serialize};

use crate::{
    RunEnd, RunRecord,
    used::{Used, by_child},
};

/// How many events are read at once.
const PAGE: usize = 1024;

/// What a checkpoint of another form than this is worth nothing.
const FORM: u32 = 3;

/// What a session's events come to, taken in one by one.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Past {
    form: u32,
    /// The last event that went in.
    pub(crate) seq: u64,
    /// Up to where it was read from a checkpoint.
    #[serde(skip)]
    pub(crate) checkpoint: u64,
    /// What was said between the caller and the agent.
    pub(crate) history: Vec<Arc<Message>>,
    /// What the fleet was doing last.
    pub(crate) fleet: FleetState,
    /// Its runs, in order.
    pub(crate) runs: Vec<RunRecord>,
    #[serde(skip)]
    open: BTreeMap<ReplyId, Open>,
    /// How the children of background tasks ended.
    #[serde(skip)]
    done: BTreeMap<TaskId, Done>,
    /// The errors of tasks that have failed, as the log has them.
    #[serde(default)]
    failures: BTreeMap<TaskId, Failure>,
    /// Who can be sent to again.
    pub(crate) children: RecordedRoster,
    /// What all of it has used.
    pub(crate) used: Used,
    /// What the latest run has used.
    pub(crate) latest: Used,
}

/// How the child of a background task ended.
struct Done {
    outcome: Outcome,
    answer: Option<String>,
    error: Option<Failure>,
}

impl Done {
    /// Returns `true` if the child was dropped with its process while it was running.
    fn was_dropped(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.code == CancelReason::Dropped.code())
    }
}

/// An invocation that has begun and not ended.
struct Open {
    seq: u64,
    began: Timestamp,
    /// Of its latest event: a promotion adds the task.
    origin: Arc<Origin>,
    transcript: Transcript,
    /// What its model calls used so far, and its children that ended; the cost is not recorded.
    usage: Rollup,
    /// How it would have ended: it has its answer, and only its end was cut off.
    answered: Option<Outcome>,
    is_out_of_turns: bool,
    /// The model that was asked last.
    model: Option<Arc<str>>,
}

impl Open {
    fn new(event: &AgentEvent, reply: &ReplyId) -> Self {
        Self {
            seq: event.seq,
            began: event.at,
            origin: event.origin.clone(),
            transcript: Transcript::new(reply.clone()),
            usage: Rollup::default(),
            answered: None,
            is_out_of_turns: false,
            model: None,
        }
    }

    /// The agent's own session.
    fn session(&self) -> &SessionId {
        self.origin.source.as_ref().map_or(&self.origin.session_id, |source| &source.session_id)
    }
}

impl Past {
    /// What a journal has of a session up to an event; what is in its latest checkpoint is not
    /// read.
    pub(crate) async fn read(journal: &dyn Journal, id: &SessionId, last: u64) -> Result<Self, JournalError> {
        let mut past = Self::checkpoint(journal, id, last).await.unwrap_or_default();
        while past.seq < last {
            let page = match journal.read(id, past.seq + 1, PAGE).await {
                // Events that can't be read are skipped; readers get a gap in their place.
                Err(error @ JournalError::Damaged { seq, through, .. }) if seq > past.seq => {
                    tracing::warn!(session = %id, %error, "a damaged event is passed over");
                    past.seq = through.max(seq);
                    continue;
                }
                page => page?,
            };
            // What retention has dropped meanwhile is not there.
            if page.first().is_none_or(|event| event.seq > last) {
                break;
            }
            page.iter().take_while(|event| event.seq <= last).for_each(|event| past.apply(event));
        }
        Ok(past)
    }

    /// The latest checkpoint, if it can be used. Whatever is wrong with it, the events have it all.
    async fn checkpoint(journal: &dyn Journal, id: &SessionId, last: u64) -> Option<Self> {
        let kept = journal.checkpoint(id).await;
        let kept =
            kept.inspect_err(|error| tracing::warn!(session = %id, %error, "a checkpoint can't be read"));
        let past: Self = serde_json::from_str(&kept.ok()??.state).ok()?;
        (past.form == FORM && past.seq <= last).then_some(Self { checkpoint: past.seq, ..past })
    }

    /// Writes a checkpoint, unless an invocation or task of the session is open: a checkpoint has
    /// no open work.
    pub(crate) async fn keep(&mut self, journal: &dyn Journal, id: &SessionId) -> Result<(), JournalError> {
        self.form = FORM;
        let is_quiet = self.open.is_empty() && self.fleet.tasks.values().all(|status| status.is_terminal());
        match serde_json::to_string(self) {
            Ok(state) if is_quiet => journal.store_checkpoint(id, Checkpoint { seq: self.seq, state }).await,
            _ => Ok(()),
        }
    }

    /// Takes in the next event.
    pub(crate) fn apply(&mut self, event: &AgentEvent) {
        self.seq = event.seq;
        self.fleet.apply(event);
        self.children.apply(event);
        if let (EventKind::RunCancelled { error }, Some(run)) = (&event.kind, event.run_id()) {
            self.runs.push(RunRecord::cancelled(run.clone(), event.seq, event.at, error.clone()));
        }
        if let EventKind::StateCheckpoint { agent_key, messages } = &event.kind {
            self.replace_conversation(agent_key, messages);
        }
        if let EventKind::TaskUpdated { task_id, error: Some(error), .. } = &event.kind {
            self.failures.insert(task_id.clone(), error.clone());
        }
        let Some(reply) = event.reply_id() else { return };
        if let EventKind::AgentStart { settings, .. } = &event.kind {
            self.open.insert(reply.clone(), Open::new(event, reply));
            if let Some(run) = event.run_id().filter(|_| event.is_root()) {
                let settings = settings.clone().unwrap_or_default();
                self.runs.push(RunRecord::new(run.clone(), event.seq, event.at, settings));
                self.latest = Used::default();
            }
        }
        self.use_up(event, reply);
        let Some(open) = self.open.get_mut(reply) else { return };
        open.origin = event.origin.clone();
        open.transcript.apply(&event.kind);
        match &event.kind {
            EventKind::ModelCallStart { model_name, .. } => open.model = Some(model_name.clone()),
            EventKind::ModelCallEnd { usage: Some(usage), .. } => open.usage.add_own(*usage, None),
            EventKind::ExceedMaxIters { .. } => open.is_out_of_turns = true,
            EventKind::AgentResult { .. } => {
                let out_of_turns = open.is_out_of_turns;
                open.answered = Some(if out_of_turns { Outcome::MaxIterations } else { Outcome::Success });
            }
            EventKind::AgentEnd { outcome, error, usage, .. } => {
                let Some(ended) = self.open.remove(reply) else { return };
                self.end(ended, *outcome, error.as_ref(), usage);
            }
            _ => {}
        }
    }

    /// Takes a checkpoint in the place of what an agent has said so far.
    fn replace_conversation(&mut self, agent: &AgentKey, messages: &[Arc<Message>]) {
        let is_root = *agent == ROOT;
        if is_root {
            self.history = messages.to_vec();
        }
        let is_own = |open: &&mut Open| match &open.origin.source {
            Some(source) => source.agent_key == *agent,
            None => is_root,
        };
        if let Some(open) = self.open.values_mut().find(is_own) {
            open.transcript.forget();
        }
    }

    /// Counts the usage in an event.
    fn use_up(&mut self, event: &AgentEvent, reply: &ReplyId) {
        let model = self.open.get(reply).and_then(|open| open.model.as_ref());
        let begun = self.runs.iter().rfind(|run| !run.never_began);
        let is_latest = begun.is_some_and(|run| event.run_id() == Some(&run.id));
        for used in [&mut self.used].into_iter().chain(is_latest.then_some(&mut self.latest)) {
            match (&event.kind, model) {
                (EventKind::ModelCallEnd { usage: Some(usage), .. }, Some(model)) => used.call(model, *usage),
                (EventKind::AgentStart { spec_version: Some(_), .. }, _) => used.spawn(),
                (EventKind::AgentEnd { duration_ms, .. }, _) if event.is_root() => used.ran(*duration_ms),
                _ => {}
            }
        }
    }

    /// Remembers what an invocation that has ended came to, and counts its usage for its parent.
    fn end(&mut self, ended: Open, outcome: Outcome, error: Option<&Failure>, usage: &Rollup) {
        let said = ended.transcript.messages();
        let Some(source) = &ended.origin.source else {
            self.history.extend_from_slice(said);
            // Runs that were cancelled in the queue in the meantime come after it.
            if let Some(run) = self.runs.iter_mut().rfind(|run| ended.origin.run_id.as_ref() == Some(&run.id))
            {
                let answer = ended.transcript.last_answer().filter(|_| ended.answered.is_some()).cloned();
                run.end = Some(RunEnd::new(outcome, error.cloned(), answer, *usage));
            }
            return;
        };
        if let Some(task) = &source.task_id {
            let answer = ended.transcript.last_answer().map(|answer| answer.text());
            self.done.insert(task.clone(), Done { outcome, answer, error: error.cloned() });
        }
        let parent = self.open.values_mut().find(|open| *open.session() == source.parent_session_id);
        let Some(parent) = parent else { return };
        parent.usage.add_child(usage);
    }

    /// Ends the invocations that were cut off, children before their parents: closes their open
    /// blocks and emits one `AGENT_END` with the reason. Their messages stay in the history; an
    /// invocation that had answered ends with the outcome of its answer.
    pub(crate) fn close(&mut self, log: &Arc<SessionLog>) {
        while let Some(reply) = self.latest() {
            let Some(mut cut) = self.open.remove(&reply) else { break };
            let sink = EventSink::resumed(log.clone(), cut.origin.clone());
            while let Some(mut kind) = cut.transcript.next_closing(StopReason::Cancelled) {
                self.children.amend(cut.session(), &mut kind);
                cut.transcript.apply(&kind);
                self.emit(&sink, kind);
            }
            let (outcome, error) = match cut.answered {
                Some(outcome) => (outcome, None),
                None => (Outcome::Error, Some(restarted())),
            };
            let (usage, now) = (cut.usage, log.clock().now());
            let duration_ms = now.millis_since(cut.began);
            self.emit(&sink, EventKind::AgentEnd { outcome, error: error.clone(), usage, duration_ms });
            if cut.origin.source.is_none() {
                self.used.ran(duration_ms);
                self.latest.ran(duration_ms);
            }
            self.end(cut, outcome, error.as_ref(), &usage);
        }
    }

    /// Emits an event that closes an invocation, from which its parent learns what it came to.
    fn emit(&mut self, sink: &EventSink, kind: EventKind) {
        let (seq, at) = sink.emit_timed(kind.clone());
        self.children.apply(&AgentEvent::new(seq, at, sink.origin().clone(), kind));
    }

    /// Of the invocations that are open, the one that began last: it has no children.
    fn latest(&self) -> Option<ReplyId> {
        self.open.iter().max_by_key(|(_, open)| open.seq).map(|(reply, _)| reply.clone())
    }

    /// Emits the ends of tasks that the log lacks, as their records have them. A task without a
    /// record ends as [`task_end`](Self::task_end) decides; a task that a living executor runs
    /// stays open until its end is read. Invocations are ended before.
    pub(crate) fn close_tasks(&self, log: &Arc<SessionLog>, tasks: &TaskSet, records: &[TaskRecord]) {
        let update = |id: &TaskId, from, to, error| {
            log.emit(EventKind::TaskUpdated { task_id: id.clone(), from, to, error });
        };
        for (id, from) in self.fleet.tasks.iter().filter(|(_, status)| !status.is_terminal()) {
            match records.iter().find(|record| record.id == *id) {
                Some(record) if record.is_over() => update(id, *from, record.status, record.error.clone()),
                Some(_) => tasks.follow(id, *from, log),
                None => {
                    let (to, error) = status_of(self.task_end(id));
                    update(id, *from, to, error);
                }
            }
        }
        for record in records.iter().filter(|record| self.has_lost(record)) {
            update(&record.id, TaskStatus::Pending, TaskStatus::Running, None);
            update(&record.id, TaskStatus::Running, record.status, record.error.clone());
        }
    }

    /// Leaves the tasks open whose records can't be read: they end in the log as soon as their ends
    /// are read.
    pub(crate) fn follow_tasks(&self, log: &Arc<SessionLog>, tasks: &TaskSet) {
        let open = self.fleet.tasks.iter().filter(|(_, status)| !status.is_terminal());
        open.for_each(|(id, from)| tasks.follow(id, *from, log));
    }

    /// Returns `true` if a task is over and the log has lost all of its events. Events of a task
    /// that is older than the log's first run were not lost: retention has dropped them, or they
    /// are in another journal. A log without a run has lost a task of which the session has yet to
    /// be told.
    fn has_lost(&self, record: &TaskRecord) -> bool {
        let is_named = self.fleet.tasks.contains_key(&record.id);
        let is_of_log = match self.runs.first() {
            Some(run) => record.created_at >= run.began_at,
            None => record.is_undelivered(),
        };
        record.is_over() && !is_named && is_of_log
    }

    /// What the session has spent, for its budgets.
    pub(crate) fn spent(&self, prices: &Prices) -> Spent {
        let mut spent = Spent::default();
        (spent.amount, spent.time) = (self.used.spend(prices), self.used.time());
        spent.former = by_child(&self.fleet);
        spent
    }

    /// Returns the runs; the latest one with its spending, because it may be resumed.
    pub(crate) fn runs_with_latest(&mut self, prices: &Prices) -> Vec<RunRecord> {
        let mut runs = std::mem::take(&mut self.runs);
        if let Some(run) = runs.iter_mut().rfind(|run| !run.never_began) {
            (run.spent, run.ran) = (self.latest.spend(prices), self.latest.time());
        }
        runs
    }

    /// Returns how a task ended whose executor has ended: as in the log, else with the outcome of
    /// its child.
    pub(crate) fn task_end(&self, task: &TaskId) -> TaskEnd {
        let done = self.done.get(task).filter(|done| !done.was_dropped());
        let logged = self.fleet.tasks.get(task).copied().filter(|status| status.is_terminal());
        let of_child = || match done.map(|done| done.outcome) {
            Some(Outcome::Success | Outcome::MaxIterations) => TaskStatus::Completed,
            Some(Outcome::Cancelled) => TaskStatus::Cancelled,
            _ => TaskStatus::Failed,
        };
        match logged.unwrap_or_else(of_child) {
            TaskStatus::Completed => {
                TaskEnd::Completed(done.and_then(|done| done.answer.clone()).unwrap_or_default())
            }
            TaskStatus::Cancelled => TaskEnd::Cancelled { by: "an earlier process".into() },
            _ => {
                let error = self.failures.get(task).or_else(|| done?.error.as_ref());
                TaskEnd::Failed(error.cloned().unwrap_or_else(restarted))
            }
        }
    }
}

/// A task's status after its end, and what went wrong.
fn status_of(end: TaskEnd) -> (TaskStatus, Option<Failure>) {
    match end {
        TaskEnd::Completed(_) => (TaskStatus::Completed, None),
        TaskEnd::Failed(error) => (TaskStatus::Failed, Some(error)),
        TaskEnd::Cancelled { .. } => (TaskStatus::Cancelled, None),
    }
}

/// Why it ended.
fn restarted() -> Failure {
    Failure::new(RESTARTED, "the process that ran the agent has ended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_gets_the_error_that_the_log_has_also_after_a_checkpoint() {
        let (log, task) = (SessionLog::new("s".into()), TaskId::from("task-1"));
        let mut reader = log.subscribe_from(1);
        let error = Some(Failure::new("task_store", "the disk is full"));
        let (from, to) = (TaskStatus::Running, TaskStatus::Failed);
        log.emit(EventKind::TaskUpdated { task_id: task.clone(), from, to, error: error.clone() });
        let mut past = Past::default();
        while let Some(event) = reader.try_next() {
            past.apply(&event);
        }
        let checkpoint = serde_json::to_string(&past).unwrap();
        let restored: Past = serde_json::from_str(&checkpoint).unwrap();
        for past in [past, restored] {
            assert_eq!(past.task_end(&task), TaskEnd::Failed(error.clone().unwrap()));
        }
    }
}
