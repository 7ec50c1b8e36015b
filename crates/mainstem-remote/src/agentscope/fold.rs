//! A task as far as it was read: what its events and its status become. Pure but for the approvals
//! that wait.

use std::{collections::BTreeMap, mem, sync::Arc};

use mainstem_encode::agent_protocol::{EventType, Snapshot, Status, TaskEvent};
use mainstem_event::{ConfirmResult, EventKind, EventSource, Outcome, fold::RecordedInvocation};
use mainstem_message::{AgentKey, BlockId, ContentBlock, Failure, Message, SessionId, ToolCall, ToolCallId};
use serde_json::{Value, json};

use super::{
    approvals::Approvals,
    decode::{Decoded, Producer, Statement, calls, decode},
};
use crate::{RemoteEvent, Translation};

/// Why a call does not run that was answered elsewhere.
const DENIED: &str = "it was denied at the remote";

/// The most agents below the one that was asked.
const MAX_AGENTS: usize = 1_024;

/// A task so far.
#[derive(Debug)]
pub(super) struct TaskFold {
    name: String,
    /// The session of the turn.
    session: SessionId,
    approvals: Arc<Approvals>,
    asked: Agent,
    /// Those below, by what their events have in common, in the order in which they began.
    below: BTreeMap<String, Agent>,
    begun: usize,
    /// The number of the last event.
    last: u64,
    /// How the agent that was asked has ended, if its end was told before the task's.
    told: Option<(Outcome, Option<Failure>)>,
    out: Vec<RemoteEvent>,
}

/// An agent of the task.
#[derive(Debug)]
struct Agent {
    events: Translation,
    has_begun: bool,
    /// When it began, among those below.
    number: usize,
    /// The text of the present answer.
    answer: String,
    /// The media type of the open block of data.
    media_type: String,
    /// Whether the present answer has data.
    has_data: bool,
    /// Whether the record has discarded the beginning of the present answer.
    is_cut: bool,
    /// The answer as the agent's result has it.
    result: Option<String>,
    hints: u32,
}

impl TaskFold {
    /// Creates the fold of a task of this agent, for a turn of this session.
    pub(super) fn new(name: &str, session: SessionId, approvals: Arc<Approvals>) -> Self {
        Self {
            name: name.to_owned(),
            session,
            approvals,
            asked: Agent::new(Translation::new(name), 0),
            below: BTreeMap::new(),
            begun: 0,
            last: 0,
            told: None,
            out: Vec::new(),
        }
    }

    /// Creates the fold of a task of which another process has recorded a part: it goes on behind
    /// that.
    pub(super) fn recorded(
        name: &str,
        session: SessionId,
        approvals: Arc<Approvals>,
        own: &RecordedInvocation,
    ) -> Self {
        let is_answered = own.parts.attempt.is_none() && own.open_calls().next().is_none();
        let last =
            own.transcript.last_answer().filter(|last| is_answered && last.tool_calls().next().is_none());
        let asked = Agent {
            has_begun: true,
            has_data: last.is_some_and(|last| {
                last.content.iter().any(|block| matches!(block, ContentBlock::Data { .. }))
            }),
            answer: last.map(|last| last.text()).unwrap_or_default(),
            is_cut: own.parts.attempt.is_some(),
            // A further hint has an id that none before it had.
            hints: u32::try_from(own.events).unwrap_or(u32::MAX / 2),
            ..Agent::new(Translation::recorded(name, own), 0)
        };
        Self { asked, ..Self::new(name, session, approvals) }
    }

    /// Sets the number of the last event that is recorded.
    #[must_use]
    pub(super) fn behind(mut self, last: u64) -> Self {
        self.last = last;
        self
    }

    /// Takes in what the agent that was asked says.
    pub(super) fn say(&mut self, statement: Statement) {
        self.apply(Producer::Asked, statement);
    }

    /// Returns the number of the last event.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Returns `true` once the task has ended.
    pub(super) fn is_over(&self) -> bool {
        self.asked.events.is_over()
    }

    /// Takes the events so far.
    pub(super) fn take(&mut self) -> Vec<RemoteEvent> {
        mem::take(&mut self.out)
    }

    /// Takes in an event, unless it was read before. Returns the status of a task that ends with
    /// it.
    pub(super) fn read(&mut self, event: &TaskEvent) -> Option<Snapshot> {
        if event.seq > 0 && event.seq <= self.last {
            return None;
        }
        self.last = self.last.max(event.seq);
        let Decoded { producer, statement } = decode(event);
        self.apply(producer, statement);
        let status = event.status.as_deref().map(Status::from);
        let status = match event.kind {
            EventType::RunError => Some(Status::Error),
            EventType::Status => status.filter(|status| status.is_over()),
            _ => None,
        };
        status.map(|status| Snapshot {
            status: Some(status),
            error: event.error.clone(),
            ..Snapshot::default()
        })
    }

    /// Takes in the status of a task that has not ended: the calls that wait, in case the stream
    /// did not tell them.
    pub(super) fn status(&mut self, snapshot: &Snapshot) {
        if snapshot.status == Some(Status::AwaitingConfirm) {
            let calls = calls(snapshot.pending_confirms.as_deref());
            self.apply(Producer::Asked, Statement::Ask(calls));
        }
    }

    /// Says that the events do not come live.
    pub(super) fn fall_back(&mut self, reason: String) {
        self.apply(Producer::Asked, Statement::Other(Box::new(EventKind::StreamFallback { reason })));
    }

    /// Returns `true` if the answer is not known, although the task has succeeded.
    pub(super) fn lacks_answer(&self) -> bool {
        (self.asked.is_cut || !self.asked.has_answer())
            && self.asked.result.as_deref().unwrap_or_default().is_empty()
    }

    /// Ends the task as its status says.
    pub(super) fn end(&mut self, snapshot: Snapshot) {
        self.begin_asked();
        self.end_below();
        let (outcome, error) = match (snapshot.status, self.told.take()) {
            (Some(Status::Cancelled), _) => (Outcome::Cancelled, None),
            (Some(Status::Success), told) => {
                let outcome =
                    told.map(|(outcome, _)| outcome).filter(|one| Status::of(*one) == Status::Success);
                let whole = snapshot.result.or_else(|| self.asked.result.take()).unwrap_or_default();
                self.asked.complete(&whole);
                self.asked.checked(outcome.unwrap_or(Outcome::Success), None)
            }
            (_, told) => {
                let told = told.filter(|(outcome, _)| Status::of(*outcome) == Status::Error);
                let (outcome, error) = told.unwrap_or((Outcome::Error, None));
                let message = snapshot.error.unwrap_or_else(|| format!("ended with {}", outcome.as_str()));
                (outcome, Some(error.unwrap_or_else(|| Failure::new("remote_failed", message))))
            }
        };
        self.asked.events.end(outcome, error);
        self.flush_asked();
    }

    fn apply(&mut self, producer: Producer, statement: Statement) {
        if self.is_over() {
            return;
        }
        self.begin_asked();
        if let Statement::Answered(answers) = statement {
            return self.answered(&answers);
        }
        match producer {
            Producer::Asked => {
                match statement {
                    Statement::Start { .. } => {}
                    // It may pause only: the status of the task tells.
                    Statement::End { outcome, error } => self.told = outcome.map(|outcome| (outcome, error)),
                    Statement::Ask(calls) => self.asked.ask(&self.approvals, calls),
                    statement => self.asked.apply(statement),
                }
                self.flush_asked();
            }
            Producer::Below(source) => {
                self.apply_below(source.session_id.as_str().to_owned(), source, statement)
            }
            Producer::Named { key, path } => {
                let source = self.placed(&key, &path);
                self.apply_below(key, source, statement);
            }
        }
    }

    /// An agent below. One that has ended begins its next turn.
    fn apply_below(&mut self, key: String, source: Arc<EventSource>, statement: Statement) {
        let is_start = matches!(statement, Statement::Start { .. });
        let is_new = self.below.get(&key).is_none_or(|agent| agent.events.is_over());
        if is_start && is_new && self.below.len() < MAX_AGENTS {
            self.begun += 1;
            let agent = Agent::new(Translation::new(&*source.agent_id).with_source(source), self.begun);
            self.below.insert(key.clone(), agent);
        }
        // Without a beginning, its events have no place: they are of a task of an earlier turn.
        let Some(agent) = self.below.get_mut(&key) else { return };
        match statement {
            Statement::Start { name, input } if is_new => agent.start(&name, input),
            Statement::End { outcome, error } => agent.end(outcome, error),
            Statement::Ask(calls) => agent.ask(&self.approvals, calls),
            statement => agent.apply(statement),
        }
        self.out.extend(agent.events.take());
    }

    /// The place of an agent of which only a path is known: below the agent that was asked.
    fn placed(&self, key: &str, path: &str) -> Arc<EventSource> {
        let agent_id = path.rsplit('/').next().filter(|id| !id.is_empty()).unwrap_or("remote");
        Arc::new(EventSource {
            agent_key: AgentKey::from_lossy(format!("agent:{agent_id}:{key}")),
            agent_id: agent_id.into(),
            agent_name: None,
            label: None,
            title: None,
            session_id: SessionId::from_lossy(format!("sub-{key}")),
            parent_session_id: self.session.clone(),
            depth: 1,
            path: path.into(),
            task_id: None,
            turn: 1,
            parent_tool_call_id: None,
            stream_id: 0,
        })
    }

    fn answered(&mut self, answers: &[(ToolCallId, bool)]) {
        let calls: Vec<_> = answers.iter().map(|(call, _)| call.clone()).collect();
        for (confirm_id, call) in self.approvals.withdraw(&calls) {
            let is_confirmed = answers.iter().any(|(id, is_confirmed)| *id == call.id && *is_confirmed);
            let result = match is_confirmed {
                true => ConfirmResult::confirmed(call),
                false => ConfirmResult::denied(call, DENIED),
            };
            let kind = EventKind::UserConfirmResult { confirm_id, confirm_results: vec![result] };
            self.asked.events.other(kind);
        }
        self.flush_asked();
    }

    fn begin_asked(&mut self) {
        if !self.asked.has_begun {
            let name = self.name.clone();
            self.asked.start(&name, Vec::new());
            self.flush_asked();
        }
    }

    /// Ends the agents below that have not ended, the latest first.
    fn end_below(&mut self) {
        let mut open: Vec<_> = self.below.values_mut().filter(|agent| !agent.events.is_over()).collect();
        open.sort_by_key(|agent| std::cmp::Reverse(agent.number));
        for agent in open {
            let failure = Failure::new("remote_no_end", "the remote sent no end of this agent");
            agent.events.end(Outcome::Error, Some(failure));
            self.out.extend(agent.events.take());
        }
    }

    fn flush_asked(&mut self) {
        self.out.extend(self.asked.events.take());
    }
}

impl Agent {
    fn new(events: Translation, number: usize) -> Self {
        let (answer, media_type, has_data, has_begun, is_cut) = Default::default();
        Self { events, has_begun, number, answer, media_type, has_data, is_cut, result: None, hints: 0 }
    }

    fn start(&mut self, name: &str, input: Vec<Arc<Message>>) {
        self.has_begun = true;
        self.events.start(name, input);
    }

    /// Ends an agent below.
    fn end(&mut self, outcome: Option<Outcome>, error: Option<Failure>) {
        let whole = self.result.take().unwrap_or_default();
        self.complete(&whole);
        let (outcome, error) = self.checked(outcome.unwrap_or(Outcome::Success), error);
        self.events.end(outcome, error);
    }

    /// Returns how it has ended: without an answer, not with success.
    fn checked(&self, outcome: Outcome, error: Option<Failure>) -> (Outcome, Option<Failure>) {
        if outcome != Outcome::Success || self.has_answer() {
            return (outcome, error);
        }
        let failure = Failure::new("remote_no_answer", "the remote agent succeeded without an answer");
        (Outcome::Error, Some(failure))
    }

    fn apply(&mut self, statement: Statement) {
        let events = &mut self.events;
        match statement {
            Statement::ModelStart(name) => {
                self.end_answer();
                if let Some(name) = name {
                    self.events.set_model(&name);
                }
            }
            Statement::ModelEnd(usage) => {
                if let Some(usage) = usage {
                    events.usage(usage);
                }
                // Calls whose arguments are not known yet get them from what follows.
                if !events.awaits_arguments() {
                    events.end_answer();
                }
            }
            Statement::Text(delta) => {
                self.answer.push_str(&delta);
                self.events.text(&delta);
            }
            Statement::Thinking(delta) => events.thinking(&delta),
            Statement::DataStart(media_type) => self.media_type = media_type,
            Statement::Data(delta) => {
                self.has_data = true;
                events.data(&self.media_type, &delta);
            }
            Statement::EndBlock => events.end_block(),
            Statement::Call { id, name } => events.call(&id, &name),
            Statement::Arguments { id, delta } => events.arguments(&id, &delta),
            Statement::EndCall(id) if !events.lacks_arguments(&id) => events.end_call(&id),
            Statement::BeginResult { id, name, input } => {
                self.announce(&id, &name, input.as_ref().map(Value::to_string).as_deref());
                self.events.begin_result(&id, &name);
                self.forget_answer();
            }
            Statement::Result { id, delta } => events.result(&id, &delta),
            Statement::ResultData { id, data } => events.result_data(&id, data),
            Statement::EndResult { id, name, state } => {
                events.begin_result(&id, &name);
                events.end_result(&id, state);
                self.forget_answer();
            }
            Statement::Answer(text) => self.result = Some(text),
            Statement::Other(kind) => self.other(*kind),
            Statement::EndCall(_) | Statement::Start { .. } | Statement::End { .. } => {}
            Statement::Used(usage) => events.usage(usage),
            Statement::Execute(calls) => self.execute(&calls),
            Statement::Ask(_) | Statement::Answered(_) | Statement::Nothing => {}
        }
    }

    /// Requires an approval of each of these calls.
    fn ask(&mut self, approvals: &Approvals, calls: Vec<ToolCall>) {
        let open = self.open(calls);
        for (confirm_id, call) in approvals.ask(open) {
            self.events.other(EventKind::require_user_confirm(confirm_id, vec![call]));
        }
    }

    /// Lets the caller run these calls.
    fn execute(&mut self, calls: &[ToolCall]) {
        let open = self.open(calls.to_vec());
        if !open.is_empty() {
            self.events.other(EventKind::require_external_execution(open));
        }
    }

    /// Returns those of the calls that have no result. The answer that has made them is complete.
    fn open(&mut self, mut calls: Vec<ToolCall>) -> Vec<ToolCall> {
        for call in &calls {
            self.announce(&call.id, &call.name, Some(&call.arguments));
        }
        self.events.end_answer();
        calls.retain(|call| self.events.is_open(&call.id));
        calls
    }

    /// Begins a call that was not begun, with arguments that were not sent.
    fn announce(&mut self, id: &ToolCallId, name: &str, arguments: Option<&str>) {
        self.events.call(id, name);
        if let Some(arguments) = arguments.filter(|_| self.events.lacks_arguments(id)) {
            self.events.arguments(id, arguments);
        }
    }

    /// Adds an event that is of no block or call. A hint is a message between answers, of which a
    /// server says the same id twice; one in another place is not a hint.
    fn other(&mut self, kind: EventKind) {
        match kind {
            EventKind::HintBlock { hint_source, hint, .. } if self.events.has_open_calls() => {
                let value = json!({ "hintSource": hint_source, "hint": hint });
                self.events.other(EventKind::Custom { name: "agentscope.HINT_BLOCK".to_owned(), value });
            }
            EventKind::HintBlock { hint_source, hint, .. } => {
                self.end_answer();
                self.hints += 1;
                let block_id = BlockId::from_lossy(format!("hint-{}", self.hints));
                self.events.other(EventKind::HintBlock { block_id, hint_source, hint });
            }
            kind => {
                if kind.taken_back().is_some() {
                    self.forget_answer();
                }
                self.events.other(kind);
            }
        }
    }

    fn end_answer(&mut self) {
        self.events.end_answer();
        self.forget_answer();
    }

    fn forget_answer(&mut self) {
        self.answer.clear();
        (self.has_data, self.is_cut) = (false, false);
    }

    fn has_answer(&self) -> bool {
        self.has_data || !self.answer.trim().is_empty()
    }

    /// Adds what is missing of the answer, of which this is the whole text.
    fn complete(&mut self, whole: &str) {
        let is_same = whole.split_whitespace().eq(self.answer.split_whitespace());
        if whole.trim().is_empty() || is_same {
            return;
        }
        let is_open = self.events.is_answering() && !self.events.has_open_calls();
        let rest = whole.strip_prefix(&*self.answer).filter(|_| is_open);
        let rest = match rest {
            Some(rest) => rest,
            // The part that was read is an answer of its own.
            None => {
                self.end_answer();
                whole
            }
        };
        self.answer.push_str(rest);
        self.events.text(rest);
    }
}

#[cfg(test)]
mod tests;
