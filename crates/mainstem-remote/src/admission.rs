//! Decides which events of a remote are emitted in the session's log, and as what. Pure.
//!
//! A remote is another program, of another version or hostile. Its events are admitted if the laws
//! of event streams hold for them; the first that breaks one ends the turn with an error.

mod grammar;

use std::{collections::HashMap, sync::Arc};

use mainstem_event::{ConfirmResult, EventKind, EventSource, Outcome, fold::RecordedInvocation};
use mainstem_message::{
    ConfirmId, ContentBlock, Failure, Message, Role, SessionId, ToolCall, ToolCallId, ToolResult, ToolState,
};

use self::grammar::Grammar;
use crate::{RemoteError, RemoteEvent};

/// The most invocations below a remote agent in one of its turns.
const MAX_INVOCATIONS: usize = 1_024;

/// The most bytes of content in one of its turns.
const MAX_BYTES: usize = 64 << 20;

/// The most requests for approvals and results in one of its turns.
const MAX_REQUESTS: usize = 1_024;

/// The longest text of a remote in a message, in characters.
const MAX_MESSAGE: usize = 200;

/// The longest name of an agent, in bytes.
const MAX_NAME: usize = 256;

/// The invocation of the agent that was asked.
pub(crate) const ROOT: usize = 0;

/// What is done with an event.
#[derive(Debug, PartialEq)]
pub(crate) enum Admitted {
    /// It is not emitted: it is about the remote's own session, or is emitted by this side itself.
    Nothing,
    /// An invocation below another begins. Its index is the next one. Its turn is counted here, and
    /// its call is left out if children start out of order.
    Start {
        parent: usize,
        /// The agent whose work it is: the parent, or one above it that sent it a message.
        caller: usize,
        source: Box<EventSource>,
        name: Arc<str>,
        input: Vec<Arc<Message>>,
    },
    /// An event of an open invocation.
    Emit { invocation: usize, kind: EventKind },
    /// An invocation ends.
    End { invocation: usize, outcome: Outcome, error: Option<Failure> },
    /// It requires a person's approval.
    Ask { invocation: usize, id: ConfirmId, calls: Vec<ToolCall> },
    /// A request was answered, here or elsewhere.
    Answered { id: ConfirmId, results: Vec<ConfirmResult> },
    /// The results of calls were given, here or elsewhere.
    Executed { results: Vec<ToolResult> },
    /// The caller has to run these calls.
    Execute { invocation: usize, calls: Vec<ToolCall> },
}

/// The events of one turn, as far as they have come.
#[derive(Debug)]
pub(crate) struct Admission {
    invocations: Vec<Invocation>,
    /// The agents by their sessions at the remote.
    agents: HashMap<SessionId, Agent>,
    /// How many levels may be below the agent that was asked.
    levels: u16,
    has_started: bool,
    bytes: usize,
    requests: usize,
}

/// An agent of the remote.
#[derive(Debug)]
struct Agent {
    /// What its turns have in common; `None` for the one that was asked.
    identity: Option<Identity>,
    /// Its latest invocation.
    latest: usize,
    turns: u32,
}

#[derive(Debug, PartialEq)]
struct Identity {
    agent_id: Arc<str>,
    agent_name: Option<Arc<str>>,
    label: Option<Arc<str>>,
    parent: SessionId,
}

/// One invocation.
#[derive(Debug, Default)]
struct Invocation {
    grammar: Grammar,
    depth: u16,
    turn: u32,
    /// The invocation that it is below.
    parent: Option<usize>,
    /// The call that caused it, and the invocation that made it.
    cause: Option<(usize, ToolCallId)>,
    is_over: bool,
}

impl Admission {
    /// Creates the admission of a turn of the agent whose session at the remote is `session`.
    pub(crate) fn new(session: SessionId, levels: u16) -> Self {
        let asked = Agent { identity: None, latest: ROOT, turns: 1 };
        Self {
            invocations: vec![Invocation::default()],
            agents: [(session, asked)].into(),
            levels,
            has_started: false,
            bytes: 0,
            requests: 0,
        }
    }

    /// Goes on behind the recorded events of the agent that was asked.
    pub(crate) fn skip_to(&mut self, own: &RecordedInvocation) {
        self.has_started = true;
        self.invocations[ROOT].grammar = Grammar::recorded(own);
    }

    /// Takes in the next event.
    ///
    /// # Errors
    /// The event breaks a law, or one limit is exceeded.
    pub(crate) fn admit(&mut self, event: RemoteEvent) -> Result<Admitted, RemoteError> {
        let name = shortened(event.kind.name());
        self.decide(event)
            .map_err(|what| RemoteError::Unlawful { what: format!("{name}: {}", shortened(&what)) })
    }

    /// Returns `true` if a call of an invocation has no result yet.
    pub(crate) fn is_open(&self, invocation: usize, call: &ToolCallId) -> bool {
        let invocation = &self.invocations[invocation];
        !invocation.is_over && invocation.grammar.is_open(call)
    }

    fn decide(&mut self, RemoteEvent { source, kind, .. }: RemoteEvent) -> Result<Admitted, String> {
        use EventKind::*;
        if matches!(
            kind,
            TaskUpdated { .. }
                | MessageSent { .. }
                | AgentClosed { .. }
                | PlanModeChanged { .. }
                | StateCheckpoint { .. }
                | RunCancelled { .. }
        ) {
            return Ok(Admitted::Nothing);
        }
        if let Gap { missed, .. } = kind {
            return Err(format!("{missed} events are missing"));
        }
        self.count(&kind)?;
        if let AgentStart { name, input, .. } = kind {
            return self.start(source, name, input);
        }
        let Some(invocation) = self.place(source.as_deref())? else { return Ok(Admitted::Nothing) };
        self.invocations[invocation].grammar.apply(&kind)?;
        Ok(match kind {
            AgentEnd { outcome, error, .. } => return self.end(invocation, outcome, error),
            // It follows from what is emitted here.
            AgentResult { .. } => Admitted::Nothing,
            ExternalExecutionResult { tool_results: results } => Admitted::Executed { results },
            RequireUserConfirm { confirm_id, tool_calls, .. } => {
                self.request(invocation, &tool_calls)?;
                Admitted::Ask { invocation, id: confirm_id, calls: tool_calls }
            }
            UserConfirmResult { confirm_id: id, confirm_results: results } => {
                Admitted::Answered { id, results }
            }
            RequireExternalExecution { tool_calls, .. } => {
                self.request(invocation, &tool_calls)?;
                Admitted::Execute { invocation, calls: tool_calls }
            }
            ToolResultEnd { ref tool_call_id, state, .. } => {
                self.check_children_of(invocation, tool_call_id, state)?;
                Admitted::Emit { invocation, kind }
            }
            kind => Admitted::Emit { invocation, kind },
        })
    }

    /// Returns the open invocation of an event; `None` for an agent that has begun in another turn,
    /// as a background task of it may go on.
    fn place(&self, source: Option<&EventSource>) -> Result<Option<usize>, String> {
        let at = match source {
            None => ROOT,
            Some(source) => {
                let Some(agent) = self.agents.get(&source.session_id) else { return Ok(None) };
                let at = Some(agent.latest).filter(|at| self.invocations[*at].turn == source.turn);
                at.filter(|_| agent.identity.is_some())
                    .ok_or_else(|| format!("{} has not begun its turn {}", source.agent_key, source.turn))?
            }
        };
        let is_open = self.has_started && !self.invocations[at].is_over;
        if is_open { Ok(Some(at)) } else { Err("the invocation has not begun, or is over".to_owned()) }
    }

    fn start(
        &mut self,
        source: Option<Arc<EventSource>>,
        name: Arc<str>,
        input: Vec<Arc<Message>>,
    ) -> Result<Admitted, String> {
        let Some(source) = source else {
            // The one that was asked begins here, before the remote is asked.
            if std::mem::replace(&mut self.has_started, true) {
                return Err("the agent begins twice".to_owned());
            }
            return Ok(Admitted::Nothing);
        };
        let mut source = Arc::unwrap_or_clone(source);
        check_names(&source, &name)?;
        check_input(&input)?;
        let parent = self.parent(&source)?;
        let cause = self.cause(parent, &source)?;
        let caller = cause.as_ref().map_or(parent, |(caller, _)| *caller);
        if self.invocations[caller].is_over {
            return Err(format!("{} begins below an agent that is not running", source.agent_key));
        }
        let depth = self.invocations[parent].depth + 1;
        if depth > self.levels {
            return Err(format!(
                "an agent at depth {depth} below the remote, where {} is the most",
                self.levels
            ));
        }
        if self.invocations.len() > MAX_INVOCATIONS {
            return Err(format!("more than {MAX_INVOCATIONS} invocations in one turn"));
        }
        let turn = self.turn_of(&source)?;
        let cause = cause.filter(|(caller, call)| self.invocations[*caller].grammar.child_starts(call));
        let remote = std::mem::replace(&mut source.turn, turn);
        source.parent_tool_call_id = cause.as_ref().map(|(_, call)| call.clone());
        let (grammar, is_over) = Default::default();
        self.invocations.push(Invocation {
            grammar,
            depth,
            turn: remote,
            parent: Some(parent),
            cause,
            is_over,
        });
        Ok(Admitted::Start { parent, caller, source: Box::new(source), name, input })
    }

    /// Counts a turn of an agent that begins one.
    fn turn_of(&mut self, source: &EventSource) -> Result<u32, String> {
        let identity = Identity {
            agent_id: source.agent_id.clone(),
            agent_name: source.agent_name.clone(),
            label: source.label.clone(),
            parent: source.parent_session_id.clone(),
        };
        let latest = self.invocations.len();
        let Some(agent) = self.agents.get_mut(&source.session_id) else {
            let agent = Agent { identity: Some(identity), latest, turns: 1 };
            self.agents.insert(source.session_id.clone(), agent);
            return Ok(1);
        };
        if agent.identity.is_none() || !self.invocations[agent.latest].is_over {
            return Err(format!("{} begins a turn within another", source.agent_key));
        }
        if agent.identity.as_ref() != Some(&identity) {
            return Err(format!("{} is another agent than in its last turn", source.agent_key));
        }
        (agent.latest, agent.turns) = (latest, agent.turns + 1);
        Ok(agent.turns)
    }

    /// Returns the invocation that a child is below.
    fn parent(&self, source: &EventSource) -> Result<usize, String> {
        let parent = self.agents.get(&source.parent_session_id).map(|agent| agent.latest);
        let parent = parent.filter(|_| self.has_started);
        parent.ok_or_else(|| format!("{} begins below an agent that is not running", source.agent_key))
    }

    /// Returns the call that caused a child, with its caller: the parent, or an agent above it,
    /// which sent a further message.
    fn cause(&self, parent: usize, source: &EventSource) -> Result<Option<(usize, ToolCallId)>, String> {
        let Some(call) = &source.parent_tool_call_id else { return Ok(None) };
        let above = || std::iter::successors(Some(parent), |at| self.invocations[*at].parent);
        let open = above().find(|at| self.invocations[*at].grammar.is_open(call));
        let caller = open.or_else(|| above().find(|at| self.invocations[*at].grammar.lets_go(call)));
        let unknown = || format!("{} was caused by call {call}, which is not open", source.agent_key);
        Ok(Some((caller.ok_or_else(unknown)?, call.clone())))
    }

    /// Checks that the result of a call does not come before the ends of its children, unless they
    /// go on in the background.
    fn check_children_of(
        &self,
        invocation: usize,
        call: &ToolCallId,
        state: ToolState,
    ) -> Result<(), String> {
        let is_awaited = |child: &Invocation| {
            let cause = child.cause.as_ref().map(|(caller, cause)| (*caller, cause));
            !child.is_over && cause == Some((invocation, call))
        };
        if state == ToolState::Running || !self.invocations.iter().any(is_awaited) {
            return Ok(());
        }
        Err(format!("the result of call {call} comes before the end of its child"))
    }

    fn end(
        &mut self,
        invocation: usize,
        outcome: Outcome,
        error: Option<Failure>,
    ) -> Result<Admitted, String> {
        let grammar = &self.invocations[invocation].grammar;
        let is_awaited = |child: &Invocation| {
            let cause = child.cause.as_ref().filter(|(caller, _)| *caller == invocation);
            !child.is_over && cause.is_some_and(|(_, call)| !grammar.lets_go(call))
        };
        if self.invocations.iter().any(is_awaited) {
            return Err("it ends before a child that it waits for".to_owned());
        }
        self.invocations[invocation].is_over = true;
        Ok(Admitted::End { invocation, outcome, error })
    }

    /// Checks a request about calls of an invocation.
    fn request(&mut self, invocation: usize, calls: &[ToolCall]) -> Result<(), String> {
        let grammar = &self.invocations[invocation].grammar;
        if let Some(call) = calls.iter().find(|call| !grammar.is_open(&call.id)) {
            return Err(format!("call {} is not open", call.id));
        }
        self.requests += calls.len().max(1);
        let is_too_many = self.requests > MAX_REQUESTS;
        if is_too_many { Err(format!("more than {MAX_REQUESTS} requests in one turn")) } else { Ok(()) }
    }

    fn count(&mut self, kind: &EventKind) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(size(kind));
        if self.bytes <= MAX_BYTES { Ok(()) } else { Err(format!("more than {MAX_BYTES} bytes in one turn")) }
    }
}

fn check_names(source: &EventSource, name: &str) -> Result<(), String> {
    let id = &*source.agent_id;
    let optional = [&source.label, &source.title, &source.agent_name].into_iter().flatten();
    let is_short =
        [id, name].into_iter().chain(optional.map(|name| &**name)).all(|name| name.len() <= MAX_NAME);
    let is_segment = !id.is_empty() && !id.contains(|c: char| c == '/' || c.is_control());
    if is_short && is_segment { Ok(()) } else { Err("an agent's id or name is not valid".to_owned()) }
}

/// Checks the input of an agent below: answers in it would be taken for its own.
fn check_input(input: &[Arc<Message>]) -> Result<(), String> {
    let is_input =
        |block: &ContentBlock| matches!(block, ContentBlock::Text { .. } | ContentBlock::Data { .. });
    let is_valid =
        |message: &Arc<Message>| message.role == Role::User && message.content.iter().all(is_input);
    let is_valid = input.iter().all(is_valid);
    if is_valid { Ok(()) } else { Err("the input of an agent is text and data of users".to_owned()) }
}

/// Returns about how many bytes an event holds in memory.
fn size(kind: &EventKind) -> usize {
    use EventKind::*;
    const SMALL: usize = 64;
    let failure = |failure: &Failure| failure.code.len() + failure.message.len();
    let content = match kind {
        TextBlockDelta { delta, .. }
        | ThinkingBlockDelta { delta, .. }
        | DataBlockDelta { delta, .. }
        | ToolCallDelta { delta, .. }
        | ToolResultTextDelta { delta, .. }
        | StreamFallback { reason: delta } => delta.len(),
        HintBlock { hint, hint_source, .. } => hint.len() + hint_source.len(),
        DataBlockStart { media_type, .. } => media_type.len(),
        AgentStart { input, .. } => json_bytes(input),
        AgentEnd { error, .. } => error.as_ref().map_or(0, failure),
        ModelCallStart { model_name: name, .. }
        | ToolCallStart { tool_call_name: name, .. }
        | ToolResultEnd { tool_call_name: name, .. } => name.len(),
        ModelCallEnd { stop_reason, .. } => json_bytes(stop_reason),
        ModelFallback { from, to, reason, .. } => from.len() + to.len() + failure(reason),
        ModelRetry { error, .. } => failure(error),
        RateLimitWait { refusal, .. } => refusal.as_ref().map_or(0, failure),
        ToolResultStart { tool_call_name, input, .. } => tool_call_name.len() + value_bytes(input),
        ToolResultDataDelta { data, .. } => json_bytes(data),
        RequireUserConfirm { tool_calls, .. }
        | RequireExternalExecution { tool_calls, .. }
        | AllToolsDenied { denied_tool_calls: tool_calls } => json_bytes(tool_calls),
        TextBlockEnd { opaque, .. } | ThinkingBlockEnd { opaque, .. } | DataBlockEnd { opaque, .. } => {
            value_bytes(opaque)
        }
        ToolCallEnd { tool_call_name, opaque, .. } => tool_call_name.len() + value_bytes(opaque),
        Custom { name, value } => name.len() + value_bytes(value),
        Unknown { name, value } => name.len() + value_bytes(value),
        _ => 0,
    };
    content.saturating_add(SMALL)
}

fn json_bytes(value: &impl serde::Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |json| json.len())
}

/// A parsed value has several times the bytes of its text.
fn value_bytes(value: &impl serde::Serialize) -> usize {
    json_bytes(value).saturating_mul(8)
}

/// Returns the first characters of a text that is not ours.
fn shortened(text: &str) -> String {
    text.chars().take(MAX_MESSAGE).collect()
}

#[cfg(test)]
mod tests;
