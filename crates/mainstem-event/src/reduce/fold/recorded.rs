//! A turn and all below it as their session's record has them: what a process needs to continue a
//! turn that an earlier one began.

mod parts;

use std::{collections::BTreeMap, sync::Arc};

use mainstem_message::{ConfirmId, ReplyId, SessionId, ToolCall, Usage};

pub use self::parts::{RecordedCall, RecordedParts};
use super::Transcript;
use crate::{AgentEvent, EventKind, EventSource, Origin, Rollup, Timestamp};

/// A turn of a child, folded from the events of its session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedTurn {
    /// The invocation of the child.
    pub own: RecordedInvocation,
    /// Those below it, in the order of their start.
    pub below: Vec<RecordedInvocation>,
}

/// An invocation, folded from the events of its session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedInvocation {
    /// Its reply.
    pub reply_id: ReplyId,
    /// The origin of its latest event.
    pub origin: Arc<Origin>,
    /// When it began.
    pub began: Timestamp,
    /// The number and the time of its latest event.
    pub latest: (u64, Timestamp),
    /// How many events it has that follow from what the agent did, between its start and its end or
    /// result. Requests to the caller and their answers depend on the process that asked.
    pub events: u64,
    /// Which invocation of the turn has called it, whose usage includes its own: 0 is that of the
    /// turn, `n` the `n`-th below. It is its parent, or an agent above that sent it a message.
    pub caller: usize,
    /// Its conversation.
    pub transcript: Transcript,
    /// What its model calls and its children that ended have used.
    pub usage: Rollup,
    /// The requests for approval that wait.
    pub requests: BTreeMap<ConfirmId, Vec<ToolCall>>,
    /// The latest event whose metadata has a `remoteId`: which of the [events](Self::events) it is,
    /// from 1 on, and the id.
    pub remote_id: Option<(u64, String)>,
    /// Its blocks and calls, by their ids.
    pub parts: RecordedParts,
    /// Whether it has its result.
    pub has_result: bool,
    /// Whether it has ended.
    pub is_over: bool,
    /// The model of its latest call.
    pub model: Option<Arc<str>>,
}

impl RecordedTurn {
    /// Creates the turn that this `AGENT_START` begins; `None` if the event is another, or of a
    /// root.
    pub fn begun_by(start: &AgentEvent) -> Option<Self> {
        let own = RecordedInvocation::begun_by(start).filter(|own| own.origin.source.is_some())?;
        Some(Self { own, below: Vec::new() })
    }

    /// Applies the next event of the session; those of other turns change nothing. `cost` returns
    /// what a call of a model costs, in millionths of a US dollar.
    pub fn apply(&mut self, event: &AgentEvent, cost: impl Fn(&str, &Usage) -> Option<u64>) {
        let Some(reply) = event.reply_id() else { return };
        let Some(source) = event.source() else { return };
        let known = self.all_mut().find(|known| known.reply_id == *reply);
        if known.map(|known| known.apply(event, cost)).is_none() {
            let begun = RecordedInvocation::begun_by(event).zip(self.caller_of(source));
            self.below.extend(begun.map(|(one, caller)| RecordedInvocation { caller, ..one }));
        } else if let EventKind::AgentEnd { usage, .. } = &event.kind
            && let Some(caller) = self.below.iter().find(|one| one.reply_id == *reply).map(|one| one.caller)
        {
            self.add_to(caller, usage);
        }
    }

    /// Returns the `remoteId` of the latest event that has one.
    pub fn latest_remote_id(&self) -> Option<&str> {
        let all = std::iter::once(&self.own).chain(&self.below);
        let latest = all.filter(|one| one.remote_id.is_some()).max_by_key(|one| one.latest.0)?;
        latest.remote_id.as_ref().map(|(_, id)| id.as_str())
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut RecordedInvocation> {
        std::iter::once(&mut self.own).chain(&mut self.below)
    }

    /// Returns the caller of an agent that begins; `None` if its parent is not of the turn.
    fn caller_of(&self, source: &EventSource) -> Option<usize> {
        let parent = self.latest_of(&source.parent_session_id, self.below.len() + 1)?;
        let Some(call) = &source.parent_tool_call_id else { return Some(parent) };
        let above = |at: &usize| {
            let source = self.at(*at).origin.source.as_ref()?;
            self.latest_of(&source.parent_session_id, *at)
        };
        let mut callers = std::iter::successors(Some(parent), above);
        let caller = callers.find(|at| self.at(*at).parts.calls.contains_key(call));
        caller.or(Some(parent))
    }

    /// Returns the latest invocation of an agent before this one.
    fn latest_of(&self, session: &SessionId, before: usize) -> Option<usize> {
        (0..before).rev().find(|at| self.at(*at).session() == session)
    }

    fn at(&self, at: usize) -> &RecordedInvocation {
        if at == 0 { &self.own } else { &self.below[at - 1] }
    }

    fn add_to(&mut self, caller: usize, usage: &Rollup) {
        let caller = self.all_mut().nth(caller).filter(|caller| !caller.is_over);
        caller.into_iter().for_each(|caller| caller.usage.add_child(usage));
    }
}

impl RecordedInvocation {
    fn begun_by(start: &AgentEvent) -> Option<Self> {
        let EventKind::AgentStart { .. } = start.kind else { return None };
        let reply_id = start.reply_id()?.clone();
        let mut transcript = Transcript::new(reply_id.clone());
        transcript.apply(&start.kind);
        Some(Self {
            reply_id,
            origin: start.origin.clone(),
            began: start.at,
            latest: (start.seq, start.at),
            events: 0,
            caller: 0,
            transcript,
            usage: Rollup::nothing(),
            requests: BTreeMap::new(),
            remote_id: None,
            parts: RecordedParts::default(),
            has_result: false,
            is_over: false,
            model: None,
        })
    }

    fn apply(&mut self, event: &AgentEvent, cost: impl Fn(&str, &Usage) -> Option<u64>) {
        self.origin = event.origin.clone();
        self.latest = (event.seq, event.at);
        self.transcript.apply(&event.kind);
        if !is_of_caller(&event.kind) {
            self.events += 1;
        }
        let remote_id = event.metadata.as_deref().and_then(|metadata| metadata.get("remoteId")?.as_str());
        if let Some(id) = remote_id {
            self.remote_id = Some((self.events, id.to_owned()));
        }
        self.parts.apply(&event.kind, remote_id);
        match &event.kind {
            EventKind::ModelCallStart { model_name, .. } => self.model = Some(model_name.clone()),
            EventKind::ModelFallback { to, .. } => self.model = Some(to.clone()),
            EventKind::ModelCallEnd { usage: Some(usage), .. } => {
                let cost = self.model.as_ref().and_then(|model| cost(model, usage));
                self.usage.add_own(*usage, cost);
            }
            // What a call used that was cut is unknown.
            EventKind::ModelCallEnd { usage: None, .. } => self.usage.add_own(Usage::default(), None),
            EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } => {
                self.requests.insert(confirm_id.clone(), tool_calls.clone());
            }
            EventKind::UserConfirmResult { confirm_id, .. } => {
                self.requests.remove(confirm_id);
            }
            EventKind::AgentResult { .. } => self.has_result = true,
            EventKind::AgentEnd { .. } => self.is_over = true,
            _ => {}
        }
    }

    /// Returns the calls without a complete result, in order, each with whether its result has
    /// begun.
    pub fn open_calls(&self) -> impl Iterator<Item = (&ToolCall, bool)> {
        let answer = self.transcript.last_answer().into_iter();
        answer.flat_map(|answer| answer.tool_calls()).filter_map(|call| {
            match self.parts.calls.get(&call.id) {
                Some(RecordedCall::Called) => Some((call, false)),
                Some(RecordedCall::Running) => Some((call, true)),
                _ => None,
            }
        })
    }

    /// Returns the agent's own session.
    fn session(&self) -> &SessionId {
        self.origin.source.as_ref().map_or(&self.origin.session_id, |source| &source.session_id)
    }
}

/// Returns `true` if an event is the caller's: of the bracket around the invocation, a request to
/// the caller, or an answer.
fn is_of_caller(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::AgentResult { .. }
            | EventKind::AgentEnd { .. }
            | EventKind::RequireUserConfirm { .. }
            | EventKind::UserConfirmResult { .. }
            | EventKind::RequireExternalExecution { .. }
            | EventKind::ExternalExecutionResult { .. }
    )
}

#[cfg(test)]
mod tests;
