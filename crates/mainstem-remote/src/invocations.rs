//! The invocations of a remote agent in the session's log.

use std::{collections::VecDeque, sync::Arc};

use mainstem_event::{
    EventKind, EventSource, Outcome,
    fold::{RecordedInvocation, RecordedTurn},
};
use mainstem_message::{AgentKey, Failure, Message, ReplyId, SessionId, StopReason, Usage};
use mainstem_policy::{Amount, Cost};
use mainstem_react::{AgentError, Bracket, RunContext, RunOutcome};
use mainstem_subagent::Fleet;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::{RemoteError, admission::ROOT};

/// The name of the model in whose place a middleware answers.
const MIDDLEWARE: &str = "middleware";

/// The code of what ends because its process has.
const RESTARTED: &str = "restarted";

/// The longest id of an event, in bytes.
const MAX_ID: usize = 512;

/// The invocations of one turn: the agent that was asked, and those below it. Dropping it ends
/// those that are open, the deepest first.
pub(crate) struct Invocations {
    invocations: Vec<RemoteInvocation>,
    /// Those that another process has begun, until the remote repeats their start.
    recorded: VecDeque<RemoteInvocation>,
}

struct RemoteInvocation {
    cx: RunContext,
    /// Open until the invocation ends.
    bracket: Option<Bracket>,
    /// The model of the open call.
    model: Option<Arc<str>>,
    /// How many of its next events the record has already.
    repeats: u64,
    /// The latest event in the record that has an id of the remote: how many events come after it,
    /// and the id.
    latest: Option<(u64, String)>,
}

impl Invocations {
    /// Begins the invocation of the agent that is asked.
    pub(crate) fn open(cx: RunContext, name: &Arc<str>, task: &str) -> Self {
        let bracket = Bracket::open(&cx, name, vec![Arc::new(Message::user(task))]);
        let invocations = vec![RemoteInvocation::new(cx, bracket)];
        Self { invocations, recorded: VecDeque::new() }
    }

    /// Continues the invocations of a turn that another process has begun. The remote repeats it
    /// from its beginning, unless it [falls back](Self::fall_back).
    pub(crate) fn recorded(cx: RunContext, RecordedTurn { own, below, .. }: &RecordedTurn) -> Self {
        let mut recorded = Self {
            invocations: vec![RemoteInvocation::recorded(cx, own)],
            recorded: VecDeque::with_capacity(below.len()),
        };
        for one in below {
            let caller = match one.caller.checked_sub(1) {
                None => &recorded.invocations[ROOT],
                Some(place) => &recorded.recorded[place],
            };
            let cx = caller.cx.recorded_child(one);
            recorded.recorded.push_back(RemoteInvocation::recorded(cx, one));
        }
        recorded
    }

    /// Goes on behind the record, because the remote can't repeat the turn: agents below end, and
    /// what is open of the agent that was asked is discarded.
    pub(crate) fn fall_back(&mut self, own: &RecordedInvocation, reason: String) {
        let failure = || Failure::new(RESTARTED, format!("{reason}; another agent shows what follows"));
        while let Some(mut below) = self.recorded.pop_back() {
            if let Some(bracket) = below.take() {
                bracket.close(Err(AgentError::Refused(failure())));
            }
        }
        self.invocations[ROOT].fall_back(own, reason);
    }

    /// Returns `true` if the remote repeats what the record has.
    pub(crate) fn are_repeated(&self) -> bool {
        !self.recorded.is_empty() || self.invocations.iter().any(|one| one.repeats > 0)
    }

    /// Begins an invocation below another.
    ///
    /// # Errors
    /// No budget covers it.
    pub(crate) fn start(
        &mut self,
        parent: usize,
        caller: usize,
        source: EventSource,
        name: &Arc<str>,
        input: Vec<Arc<Message>>,
    ) -> Result<(), AgentError> {
        let above = &self.invocations[parent].cx;
        let asked = self.invocations[ROOT].cx.sink().origin().reply_id.clone();
        let source = placed(above, asked.as_ref(), source);
        let reply = ReplyId::from_lossy(above.new_id("reply-"));
        if let Some(recorded) = self.take_recorded(&source) {
            self.invocations.push(recorded);
            return Ok(());
        }
        Fleet::check_budget(&self.invocations[ROOT].cx, Amount::spawn())?;
        Fleet::count_spent(&self.invocations[ROOT].cx, Amount::spawn());
        let cx = self.invocations[caller].cx.child(source, reply);
        let bracket = Bracket::open(&cx, name, input);
        self.invocations.push(RemoteInvocation::new(cx, bracket));
        Ok(())
    }

    fn take_recorded(&mut self, source: &EventSource) -> Option<RemoteInvocation> {
        let is_same = |one: &RemoteInvocation| {
            let recorded = one.cx.source();
            recorded.is_some_and(|recorded| {
                (&recorded.agent_key, recorded.turn) == (&source.agent_key, source.turn)
            })
        };
        self.recorded.remove(self.recorded.iter().position(is_same)?)
    }

    /// Emits an event of an open invocation.
    ///
    /// # Errors
    /// A model call begins that no budget covers; or the remote repeats another event than the
    /// record has.
    pub(crate) fn emit(
        &mut self,
        invocation: usize,
        kind: EventKind,
        id: Option<String>,
    ) -> Result<(), AgentError> {
        let one = &mut self.invocations[invocation];
        if one.repeats > 0 {
            return Ok(one.repeat(&kind, id)?);
        }
        if one.bracket.is_none() {
            return Err(differs(kind.name()).into());
        }
        match &kind {
            EventKind::ModelCallStart { model_name, .. } => {
                Fleet::check_budget(&one.cx, Amount::tokens(1))?;
                one.model = Some(model_name.clone());
            }
            EventKind::ModelFallback { to, .. } => one.model = Some(to.clone()),
            EventKind::ModelCallEnd { usage, .. } => one.count(*usage),
            _ => {}
        }
        one.cx.emit_with(kind, id.and_then(remote_id));
        if invocation != ROOT {
            Fleet::heard(&self.invocations[ROOT].cx);
        }
        Ok(())
    }

    /// Ends an invocation below the agent that was asked.
    ///
    /// # Errors
    /// As [`ended`].
    pub(crate) fn end(
        &mut self,
        invocation: usize,
        outcome: Outcome,
        error: Option<Failure>,
    ) -> Result<(), RemoteError> {
        let ended = self.ended(invocation, outcome, error)?;
        if let Some(bracket) = self.invocations[invocation].take() {
            bracket.close(ended);
        }
        Ok(())
    }

    /// Returns how an invocation has ended, as the remote says.
    ///
    /// # Errors
    /// It succeeded without an answer, or before its answer was complete.
    pub(crate) fn ended(
        &self,
        invocation: usize,
        outcome: Outcome,
        error: Option<Failure>,
    ) -> Result<Result<Outcome, AgentError>, RemoteError> {
        let unlawful = |what: &str| Err(RemoteError::Unlawful { what: format!("AGENT_END: {what}") });
        if self.invocations[invocation].repeats > 0 {
            return Err(differs("AGENT_END"));
        }
        let (has_answer, is_open) = self.context(invocation).with_transcript(|transcript| {
            (transcript.last_answer().is_some(), transcript.next_closing(StopReason::Stop).is_some())
        });
        match (outcome, error) {
            (Outcome::Success, _) if !has_answer => unlawful("it succeeded without an answer"),
            (Outcome::Success | Outcome::MaxIterations, _) if is_open => {
                unlawful("it has its answer within a model call or a tool call")
            }
            (outcome, Some(failure)) => Ok(Err(AgentError::remote(outcome, failure))),
            (outcome @ (Outcome::Success | Outcome::MaxIterations), None) => Ok(Ok(outcome)),
            (outcome, None) => {
                let failure = Failure::new(outcome.as_str(), format!("ended with {}", outcome.as_str()));
                Ok(Err(AgentError::remote(outcome, failure)))
            }
        }
    }

    /// Ends everything: what is open below the agent that was asked, then that one.
    pub(crate) fn close(mut self, result: Result<Outcome, AgentError>) -> RunOutcome {
        self.close_below();
        let outcome = self.invocations[ROOT].take().map(|bracket| bracket.close(result));
        outcome.unwrap_or_else(|| RunOutcome::refused(Failure::new("ended", "it has ended before")))
    }

    pub(crate) fn context(&self, invocation: usize) -> &RunContext {
        &self.invocations[invocation].cx
    }

    fn close_below(&mut self) {
        while let Some(mut one) = self.recorded.pop_back() {
            drop(one.take());
        }
        for one in self.invocations[ROOT + 1..].iter_mut().rev() {
            drop(one.take());
        }
    }
}

impl Drop for Invocations {
    fn drop(&mut self) {
        self.close_below();
        drop(self.invocations[ROOT].take());
    }
}

impl RemoteInvocation {
    fn new(cx: RunContext, bracket: Bracket) -> Self {
        Self { cx, bracket: Some(bracket), model: None, repeats: 0, latest: None }
    }

    fn recorded(cx: RunContext, recorded: &RecordedInvocation) -> Self {
        let bracket = (!recorded.is_over).then(|| Bracket::recorded(&cx, recorded));
        let latest = recorded.remote_id.as_ref();
        let latest = latest.map(|(event, id)| (recorded.events - event, id.clone()));
        let model = recorded.model.clone().filter(|_| recorded.parts.attempt.is_some());
        Self { cx, bracket, model, repeats: recorded.events, latest }
    }

    /// Goes on behind the record: what is open is discarded.
    fn fall_back(&mut self, own: &RecordedInvocation, reason: String) {
        (self.repeats, self.latest) = (0, None);
        if let Some(said) = own.parts.attempt.clone().filter(|said| !said.is_empty()) {
            let next =
                || self.cx.with_transcript(|transcript| transcript.next_closing(StopReason::Cancelled));
            while let Some(end) = next().filter(EventKind::ends_part) {
                self.cx.emit(end.with_discarded(true));
            }
            let why = Failure::new(RESTARTED, reason.as_str());
            self.cx.emit(EventKind::model_retry(1, 0, why).with_taken_back(said));
        }
        self.cx.emit(EventKind::StreamFallback { reason });
    }

    /// Takes in an event that the record has.
    ///
    /// # Errors
    /// The record has another one.
    fn repeat(&mut self, kind: &EventKind, id: Option<String>) -> Result<(), RemoteError> {
        self.repeats -= 1;
        match (self.latest.take_if(|(left, _)| *left == self.repeats), id) {
            (Some((_, recorded)), Some(id)) if recorded != id => Err(differs(kind.name())),
            _ => Ok(()),
        }
    }

    /// Counts the open model call; what it used is unknown if it is cut.
    fn count(&mut self, usage: Option<Usage>) {
        let Some(model) = self.model.take() else { return };
        let cost = match (&*model, usage) {
            // An answer of a middleware costs nothing.
            (MIDDLEWARE, _) => Some(0),
            (model, usage) => usage.and_then(|usage| self.cx.cost(model, &usage)),
        };
        let usage = usage.unwrap_or_default();
        self.cx.meter().add_own(usage, cost);
        Fleet::count_spent(&self.cx, Amount::of(&usage, cost.map(Cost::from_micros)));
    }

    /// Takes the bracket of an invocation that ends.
    fn take(&mut self) -> Option<Bracket> {
        self.count(None);
        self.bracket.take()
    }
}

/// Returns the error of a turn that is not repeated as it was recorded.
fn differs(event: &str) -> RemoteError {
    RemoteError::Unlawful { what: format!("{event}: the turn had another event here before") }
}

/// Returns the source of a remote's agent in this session, below the agent of `above`.
///
/// A key or session of the remote could be one of this process, so both are derived from the turn
/// and the session at the remote.
fn placed(above: &RunContext, asked: Option<&ReplyId>, remote: EventSource) -> EventSource {
    let EventSource { agent_id, agent_name, label, title, session_id, turn, parent_tool_call_id, .. } =
        remote;
    let derived = derived(asked.map_or("", ReplyId::as_str), session_id.as_str());
    EventSource {
        agent_key: AgentKey::from_lossy(format!("agent:{agent_id}:{derived}")),
        agent_name,
        label,
        title,
        session_id: SessionId::from_lossy(format!("sub-{derived}")),
        parent_session_id: above.session_id().clone(),
        depth: above.depth() + 1,
        path: format!("{}/{agent_id}", above.path()).into(),
        agent_id,
        task_id: None,
        turn,
        parent_tool_call_id,
        // The session log sets it.
        stream_id: 0,
    }
}

/// Returns metadata with an event's id at the remote, which is left out if it is long.
fn remote_id(id: String) -> Option<Map<String, Value>> {
    (id.len() <= MAX_ID).then(|| [("remoteId".to_owned(), Value::from(id))].into_iter().collect())
}

/// Returns 32 hexadecimal digits.
fn derived(turn: &str, session: &str) -> String {
    let hash = Sha256::digest(format!("{turn}\n{session}"));
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
