//! Decides what becomes of a remote's events before they enter the session's log. Pure.
//!
//! A remote is another program, of another version or hostile. Its events are admitted if the laws
//! of event streams hold for them; the first that breaks one ends the turn with an error.

mod grammar;

use std::{collections::HashMap, sync::Arc};

use mainstem_event::{EventKind, EventSource, Outcome};
use mainstem_message::{ConfirmId, Failure, Message, SessionId, ToolCall, ToolCallId, ToolState};

use self::grammar::Grammar;
use crate::{RemoteError, RemoteEvent};

/// The most invocations below a remote agent in one of its turns.
const MOST_INVOCATIONS: usize = 1_024;

/// The most bytes of content in one of its turns.
const MOST_BYTES: usize = 64 << 20;

/// The longest name of an agent, in bytes.
const LONGEST_NAME: usize = 256;

/// The invocation of the agent that was asked.
pub(crate) const ROOT: usize = 0;

/// What becomes of an event.
#[derive(Debug, PartialEq)]
pub(crate) enum Admitted {
    /// It has no place in this log: a remote's own bookkeeping, or what this side says itself.
    Nothing,
    /// An invocation below another begins. Its index is the next one.
    Start { parent: usize, source: Box<EventSource>, name: Arc<str>, input: Vec<Arc<Message>> },
    /// An event of an open invocation.
    Emit { invocation: usize, kind: EventKind },
    /// An invocation ends.
    End { invocation: usize, outcome: Outcome, error: Option<Failure> },
    /// It requires a person's approval.
    Ask { invocation: usize, id: ConfirmId, calls: Vec<ToolCall> },
    /// A request was answered, here or elsewhere.
    Answered { id: ConfirmId },
    /// The caller has to run these calls.
    Execute { invocation: usize, calls: Vec<ToolCall> },
}

/// The events of one turn, as far as they have come.
#[derive(Debug)]
pub(crate) struct Border {
    invocations: Vec<Invocation>,
    /// The latest invocation in each session of the remote.
    latest: HashMap<SessionId, usize>,
    /// How many levels may be below the agent that was asked.
    levels: u16,
    has_started: bool,
    bytes: usize,
}

/// One invocation.
#[derive(Debug, Default)]
struct Invocation {
    grammar: Grammar,
    depth: u16,
    turn: u32,
    /// The invocation that it is below, and the call that caused it.
    parent: Option<(usize, Option<ToolCallId>)>,
    is_over: bool,
}

impl Border {
    /// Creates a border for a turn of the agent whose session at the remote is `session`.
    pub(crate) fn new(session: SessionId, levels: u16) -> Self {
        let latest = [(session, ROOT)].into();
        Self { invocations: vec![Invocation::default()], latest, levels, has_started: false, bytes: 0 }
    }

    /// Takes in the next event.
    ///
    /// # Errors
    /// The event breaks a law, or one limit is exceeded.
    pub(crate) fn admit(&mut self, event: RemoteEvent) -> Result<Admitted, RemoteError> {
        let name = event.kind.name().to_owned();
        self.decide(event).map_err(|what| RemoteError::Unlawful { what: format!("{name}: {what}") })
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
        let invocation = self.place(source.as_deref())?;
        self.invocations[invocation].grammar.apply(&kind)?;
        Ok(match kind {
            AgentEnd { outcome, error, .. } => return self.end(invocation, outcome, error),
            // Both follow from what is emitted here.
            AgentResult { .. } | ExternalExecutionResult { .. } => Admitted::Nothing,
            RequireUserConfirm { confirm_id, tool_calls, .. } => {
                Admitted::Ask { invocation, id: confirm_id, calls: tool_calls }
            }
            UserConfirmResult { confirm_id, .. } => Admitted::Answered { id: confirm_id },
            RequireExternalExecution { tool_calls, .. } => {
                Admitted::Execute { invocation, calls: tool_calls }
            }
            ToolResultEnd { ref tool_call_id, state, .. } => {
                self.check_children_of(invocation, tool_call_id, state)?;
                Admitted::Emit { invocation, kind }
            }
            kind => Admitted::Emit { invocation, kind },
        })
    }

    /// Returns the open invocation of an event.
    fn place(&self, source: Option<&EventSource>) -> Result<usize, String> {
        let at = match source {
            None => ROOT,
            Some(source) => *self
                .latest
                .get(&source.session_id)
                .filter(|at| **at != ROOT && self.invocations[**at].turn == source.turn)
                .ok_or_else(|| format!("{} has not begun its turn {}", source.agent_key, source.turn))?,
        };
        let is_open = self.has_started && !self.invocations[at].is_over;
        if is_open { Ok(at) } else { Err("the invocation has not begun, or is over".to_owned()) }
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
        let parent = self.parent(&source)?;
        let depth = self.invocations[parent].depth + 1;
        self.check_names(&source, &name)?;
        if depth > self.levels {
            return Err(format!(
                "an agent at depth {depth} below the remote, where {} is the most",
                self.levels
            ));
        }
        if self.invocations.len() > MOST_INVOCATIONS {
            return Err(format!("more than {MOST_INVOCATIONS} invocations in one turn"));
        }
        let before = self.latest.insert(source.session_id.clone(), self.invocations.len());
        if before.is_some_and(|before| before == ROOT || !self.invocations[before].is_over) {
            return Err(format!("{} begins a turn within another", source.agent_key));
        }
        self.invocations.push(Invocation {
            depth,
            turn: source.turn,
            parent: Some((parent, source.parent_tool_call_id.clone())),
            ..Invocation::default()
        });
        Ok(Admitted::Start { parent, source: Box::new(Arc::unwrap_or_clone(source)), name, input })
    }

    /// Returns the invocation that a child is below, with the call that caused it.
    fn parent(&self, source: &EventSource) -> Result<usize, String> {
        let parent = self.latest.get(&source.parent_session_id).copied();
        let parent = parent.filter(|parent| self.has_started && !self.invocations[*parent].is_over);
        let parent = parent
            .ok_or_else(|| format!("{} begins below an agent that is not running", source.agent_key))?;
        let Some(call) = &source.parent_tool_call_id else { return Ok(parent) };
        // A further message may come from an agent above the parent.
        let above =
            std::iter::successors(Some(parent), |at| self.invocations[*at].parent.as_ref().map(|it| it.0));
        let mut callers = above.filter(|at| self.invocations[*at].grammar.has_called(call));
        match callers.next() {
            Some(_) => Ok(parent),
            None => Err(format!("{} was caused by call {call}, which was not made", source.agent_key)),
        }
    }

    fn check_names(&self, source: &EventSource, name: &str) -> Result<(), String> {
        let id = &*source.agent_id;
        let is_short = [Some(id), Some(name), source.label.as_deref(), source.agent_name.as_deref()]
            .into_iter()
            .flatten()
            .all(|name| name.len() <= LONGEST_NAME);
        let is_segment = !id.is_empty() && !id.contains(|c: char| c == '/' || c.is_control());
        let is_named = is_short && is_segment;
        if is_named { Ok(()) } else { Err("an agent's id or name is not valid".to_owned()) }
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
            let cause = child.parent.as_ref().and_then(|(parent, cause)| Some((*parent, cause.as_ref()?)));
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
        self.invocations[invocation].is_over = true;
        Ok(Admitted::End { invocation, outcome, error })
    }

    fn count(&mut self, kind: &EventKind) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(size(kind));
        if self.bytes <= MOST_BYTES {
            Ok(())
        } else {
            Err(format!("more than {MOST_BYTES} bytes in one turn"))
        }
    }
}

/// Returns about how many bytes an event holds in memory.
fn size(kind: &EventKind) -> usize {
    use EventKind::*;
    const SMALL: usize = 64;
    let content = match kind {
        TextBlockDelta { delta, .. }
        | ThinkingBlockDelta { delta, .. }
        | DataBlockDelta { delta, .. }
        | ToolCallDelta { delta, .. }
        | ToolResultTextDelta { delta, .. }
        | HintBlock { hint: delta, .. } => delta.len(),
        AgentStart { input, .. } => json_bytes(input),
        ToolResultStart { input: value, .. } | Custom { value, .. } => json_bytes(value),
        ToolResultDataDelta { data, .. } => json_bytes(data),
        RequireUserConfirm { tool_calls, .. } | RequireExternalExecution { tool_calls, .. } => {
            json_bytes(tool_calls)
        }
        TextBlockEnd { opaque, .. }
        | ThinkingBlockEnd { opaque, .. }
        | DataBlockEnd { opaque, .. }
        | ToolCallEnd { opaque, .. } => json_bytes(opaque),
        Unknown { value, .. } => json_bytes(value),
        _ => 0,
    };
    content + SMALL
}

fn json_bytes(value: &impl serde::Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |json| json.len())
}

#[cfg(test)]
mod tests;
