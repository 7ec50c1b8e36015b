//! What the record of a session says: its messages, its runs and children, and what an earlier
//! process left open. A checkpoint of it beside the record saves a long session from being read
//! from its beginning.

mod closing;
mod continued;

pub(crate) use self::continued::Continued;

use std::{collections::BTreeMap, sync::Arc};

use mainstem_event::{
    AgentEvent, CancelReason, EventKind, EventSource, FleetState, Origin, Outcome, Rollup, Timestamp,
    fold::ROOT, fold::Transcript,
};
use mainstem_journal::{Checkpoint, Journal, JournalError};
use mainstem_message::{
    AgentKey, ConfirmId, Failure, Message, ReplyId, SessionId, TaskId, ToolCall, ToolCallId,
};
use mainstem_policy::Prices;
use mainstem_subagent::{RecordedRoster, Spent};
use serde::{Deserialize, Serialize};

use crate::{
    RunEnd, RunRecord,
    moments::stored::Passing,
    used::{Used, by_child},
};

/// How many events are read at once.
const PAGE: usize = 1024;

/// The form of checkpoints; one of another form is not read.
const FORM: u32 = 3;

/// A fold of a session's events.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Past {
    form: u32,
    /// The last event that was applied.
    pub(crate) seq: u64,
    /// The last event of the checkpoint that it was read from.
    #[serde(skip)]
    pub(crate) checkpoint: u64,
    /// The messages between the caller and the agent.
    pub(crate) history: Vec<Arc<Message>>,
    /// The last state of the fleet.
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
    /// The children that can be sent to again.
    pub(crate) children: RecordedRoster,
    /// What all runs have used.
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
    /// The task that it has begun as.
    task: Option<TaskId>,
    /// Of its latest event: a promotion adds the task.
    origin: Arc<Origin>,
    transcript: Transcript,
    /// What its model calls and its children that ended have used; the cost is not recorded.
    usage: Rollup,
    /// Its outcome, if it has its answer and only its end was cut off.
    answered: Option<Outcome>,
    is_out_of_turns: bool,
    /// The model of its last call.
    model: Option<Arc<str>>,
    /// Requests for approval that have no answer.
    requests: BTreeMap<ConfirmId, Vec<ToolCall>>,
}

impl Open {
    fn new(event: &AgentEvent, reply: &ReplyId) -> Self {
        Self {
            seq: event.seq,
            began: event.at,
            task: event.source().and_then(|source| source.task_id.clone()),
            origin: event.origin.clone(),
            transcript: Transcript::new(reply.clone()),
            usage: Rollup::default(),
            answered: None,
            is_out_of_turns: false,
            model: None,
            requests: BTreeMap::new(),
        }
    }

    fn has_called(&self, call: &ToolCallId) -> bool {
        self.transcript.has_call(call)
    }

    /// The task that it is part of.
    fn task_now(&self) -> Option<&TaskId> {
        self.origin.source.as_ref()?.task_id.as_ref()
    }

    /// The agent's own session.
    fn session(&self) -> &SessionId {
        self.origin.source.as_ref().map_or(&self.origin.session_id, |source| &source.session_id)
    }
}

impl Past {
    /// Reads a session up to an event, from its latest checkpoint on.
    pub(crate) async fn read(journal: &dyn Journal, id: &SessionId, last: u64) -> Result<Self, JournalError> {
        Self::read_passing(journal, id, last, false).await
    }

    /// Reads a session up to an event, and may store the states of its fleet that are passed.
    pub(crate) async fn read_passing(
        journal: &dyn Journal,
        id: &SessionId,
        last: u64,
        stores: bool,
    ) -> Result<Self, JournalError> {
        let mut past = Self::checkpoint(journal, id, last).await.unwrap_or_default();
        let mut passing = None;
        if stores {
            passing = Some(Passing::going_on(last, journal, id).await);
        }
        while past.seq < last {
            let page = match journal.read(id, past.seq + 1, PAGE).await {
                // Events that can't be read are skipped; readers get a gap in their place.
                Err(error @ JournalError::Damaged { seq, through, .. }) if seq > past.seq => {
                    tracing::warn!(session = %id, %error, "a damaged event is passed over");
                    past.fleet.missed += through.max(seq) - past.seq;
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
            if let Some(passing) = &mut passing {
                passing.pass(&past.fleet);
                passing.store().await;
            }
        }
        Ok(past)
    }

    /// Returns the latest checkpoint, if it can be used; the events have all of it, too.
    async fn checkpoint(journal: &dyn Journal, id: &SessionId, last: u64) -> Option<Self> {
        let kept = journal.checkpoint(id).await;
        let kept =
            kept.inspect_err(|error| tracing::warn!(session = %id, %error, "a checkpoint can't be read"));
        let past: Self = serde_json::from_str(&kept.ok()??.state).ok()?;
        (past.form == FORM && past.seq <= last).then_some(Self { checkpoint: past.seq, ..past })
    }

    /// Returns the state of the fleet in the latest checkpoint.
    pub(crate) async fn checkpointed_fleet(journal: &dyn Journal, id: &SessionId) -> Option<FleetState> {
        #[derive(Deserialize)]
        struct Kept {
            form: u32,
            fleet: FleetState,
        }
        let kept = journal.checkpoint(id).await;
        let kept =
            kept.inspect_err(|error| tracing::warn!(session = %id, %error, "a checkpoint can't be read"));
        let kept: Kept = serde_json::from_str(&kept.ok()??.state).ok()?;
        (kept.form == FORM).then_some(kept.fleet)
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

    /// Applies the next event.
    pub(crate) fn apply(&mut self, event: &AgentEvent) {
        // What is not there was deleted, or can't be read.
        self.fleet.missed += event.seq.saturating_sub(self.seq + 1);
        self.seq = event.seq;
        self.fleet.apply(event);
        self.children.apply(event);
        if let (EventKind::RunCancelled { error, .. }, Some(run)) = (&event.kind, event.run_id()) {
            self.runs.push(RunRecord::cancelled(run.clone(), event.seq, event.at, error.clone()));
        }
        if let EventKind::StateCheckpoint { agent_key, messages, .. } = &event.kind {
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
            EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } => {
                open.requests.insert(confirm_id.clone(), tool_calls.clone());
            }
            EventKind::UserConfirmResult { confirm_id, .. } => {
                open.requests.remove(confirm_id);
            }
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

    /// Replaces the messages of an agent with those of a checkpoint.
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

    /// Remembers what an invocation that has ended came to, and counts its usage for its caller.
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
        let caller = self.caller_of(source, ended.task.as_ref());
        let caller = caller.and_then(|caller| self.open.get_mut(&caller));
        caller.into_iter().for_each(|caller| caller.usage.add_child(usage));
    }

    /// Returns the open invocation that has called an agent: its parent, unless an agent above has
    /// sent it a message. No agent has called one that has begun as a task of its own, without a
    /// call.
    fn caller_of(&self, source: &EventSource, task: Option<&TaskId>) -> Option<ReplyId> {
        let parent = self.open.iter().find(|(_, open)| *open.session() == source.parent_session_id);
        let called = |(_, open): &(&ReplyId, &Open)| {
            source.parent_tool_call_id.as_ref().is_some_and(|call| open.has_called(call))
        };
        let is_above = |(_, open): &(&ReplyId, &Open)| {
            open.origin.source.as_ref().is_none_or(|above| above.depth < source.depth)
        };
        let caller = parent.filter(called);
        let caller = caller.or_else(|| self.open.iter().filter(is_above).find(called));
        let awaits = |(_, open): &(&ReplyId, &Open)| task.is_none() || open.task_now() == task;
        caller.or_else(|| parent.filter(awaits)).map(|(reply, _)| reply.clone())
    }

    /// Returns what the session has spent, for its budgets.
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
}
