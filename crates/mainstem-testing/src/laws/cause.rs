//! Law 3: a child comes after the call that caused it and ends before that call's result; children
//! start in call order.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use mainstem_event::EventKind;
use mainstem_message::{SessionId, TaskId, ToolCallId, ToolState};

use super::{Invocation, Violation};

/// The index of the invocation that caused each one. Without a call, as when code starts a child,
/// it is the running one in its parent's session; a background task has none.
pub(super) type Callers = Vec<Option<usize>>;

pub(super) fn check(all: &[Invocation<'_>]) -> Result<Callers, Violation> {
    all.iter().try_for_each(denials)?;
    let calls = Calls::index(all);
    let mut latest: HashMap<&SessionId, usize> = HashMap::new();
    let mut order = Order::default();
    let mut callers = Callers::with_capacity(all.len());
    for (index, child) in all.iter().enumerate() {
        let call = calls.cause(child)?;
        if let Some(call) = call {
            call.encloses(child)?;
            order.check(child, call)?;
        }
        let parent = child.source.and_then(|source| latest.get(&source.parent_session_id).copied());
        // A child that is a task of its own is awaited by no agent.
        let parent = parent
            .filter(|parent| task(child, 0).is_none() || task(child, 0) == task(&all[*parent], usize::MAX));
        callers.push(call.map_or(parent, |call| Some(call.caller)));
        latest.insert(child.session(), index);
    }
    Ok(callers)
}

/// Checks that an `ALL_TOOLS_DENIED` is about the last turn: it names all of its calls, and each
/// has ended as `denied`.
fn denials(one: &Invocation<'_>) -> Result<(), Violation> {
    let (mut called, mut denied) = (Vec::new(), Vec::new());
    for (event, kind) in one.kinds() {
        match kind {
            EventKind::ModelCallStart { .. } => (called, denied) = (Vec::new(), Vec::new()),
            kind if kind.taken_back().is_some() => called.clear(),
            EventKind::ToolCallEnd { tool_call_id, .. } => called.push(tool_call_id),
            EventKind::ToolResultEnd { tool_call_id, state: ToolState::Denied, .. } => {
                denied.push(tool_call_id)
            }
            EventKind::AllToolsDenied { denied_tool_calls: listed } => {
                denied.sort();
                let is_told = listed.iter().map(|call| &call.id).eq(called.iter().copied());
                called.sort();
                if called.is_empty() || called != denied || !is_told {
                    let message = format!("not every call of {} was denied, or another is named", one.key());
                    return Err(Violation::new(3, event.seq, message));
                }
                // It may come once.
                called.clear();
            }
            _ => {}
        }
    }
    Ok(())
}

/// One tool call.
struct Call<'a> {
    id: &'a ToolCallId,
    /// The index of the caller.
    caller: usize,
    /// The number of the caller's model call.
    turn: usize,
    called: u64,
    result: Option<(u64, ToolState)>,
    /// Whether it needed an approval; only such a call waits, its siblings continue.
    is_held: bool,
}

impl Call<'_> {
    fn is_open(&self, at: u64) -> bool {
        self.result.is_none_or(|(end, _)| at < end)
    }

    fn is_running(&self) -> bool {
        self.result.is_some_and(|(_, state)| state == ToolState::Running)
    }

    /// Returns `true` if the child may outlive the call: the call reported the handover, unless it
    /// was interrupted before.
    fn lets_go(&self, child: &Invocation<'_>) -> bool {
        let is_interrupted = self.result.is_some_and(|(_, state)| state == ToolState::Interrupted);
        self.is_running() || is_interrupted && is_task(child)
    }

    /// Checks that the child ends within the call, unless it may outlive it.
    fn encloses(&self, child: &Invocation<'_>) -> Result<(), Violation> {
        if self.lets_go(child) || self.is_open(child.end()) {
            return Ok(());
        }
        let message = format!("the result of {} ends before {}", self.id, child.key());
        Err(Violation::new(3, child.end(), message))
    }
}

/// All calls, by the session of the calling agent. Their ids are unique within a reply only.
struct Calls<'a> {
    by_id: HashMap<(&'a SessionId, &'a ToolCallId), Vec<Call<'a>>>,
    parents: HashMap<&'a SessionId, &'a SessionId>,
}

impl<'a> Calls<'a> {
    fn index(all: &[Invocation<'a>]) -> Self {
        let mut calls = Self { by_id: HashMap::new(), parents: HashMap::new() };
        for (caller, one) in all.iter().enumerate() {
            calls.add(caller, one);
            if let Some(source) = one.source {
                calls.parents.insert(&source.session_id, &source.parent_session_id);
            }
        }
        calls
    }

    fn add(&mut self, caller: usize, one: &Invocation<'a>) {
        let mut turn = 0;
        for (event, kind) in one.kinds() {
            match kind {
                EventKind::ModelCallStart { .. } => turn += 1,
                EventKind::ToolCallEnd { tool_call_id: id, .. } => {
                    let call = Call { id, caller, turn, called: event.seq, result: None, is_held: false };
                    self.by_id.entry((one.session(), id)).or_default().push(call);
                }
                EventKind::ToolResultEnd { tool_call_id: id, state, .. } => {
                    self.change(one, id, |call| call.result = Some((event.seq, *state)));
                }
                EventKind::RequireUserConfirm { tool_calls, .. } => {
                    tool_calls.iter().for_each(|held| self.change(one, &held.id, |call| call.is_held = true));
                }
                _ => {}
            }
        }
    }

    fn change(&mut self, one: &Invocation<'a>, id: &'a ToolCallId, change: impl FnOnce(&mut Call<'a>)) {
        if let Some(call) = self.by_id.get_mut(&(one.session(), id)).and_then(|calls| calls.last_mut()) {
            change(call);
        }
    }

    /// Returns the call that caused a child: its parent's, or that of an agent above which sent it
    /// a further message; `None` if it names none.
    fn cause(&self, child: &Invocation<'a>) -> Result<Option<&Call<'a>>, Violation> {
        let broken = |message| Err(Violation::new(3, child.start(), message));
        let Some(source) = child.source else { return Ok(None) };
        if named_call(child) != source.parent_tool_call_id.as_ref() {
            return broken(format!("the AGENT_START of {} says another call than its source", child.key()));
        }
        let Some(id) = &source.parent_tool_call_id else { return Ok(None) };
        let above =
            std::iter::successors(Some(&source.parent_session_id), |it| self.parents.get(it).copied());
        let found = above.enumerate().flat_map(|(far, session)| {
            let calls = self.by_id.get(&(session, id)).into_iter().flatten();
            calls.filter(|call| call.called < child.start()).map(move |call| (call, Reverse(far)))
        });
        let best = found
            .max_by_key(|(call, near)| (call.is_open(child.start()), *near, call.is_running(), call.called));
        match best {
            Some((call, _)) => Ok(Some(call)),
            None => broken(format!("{} was caused by {id}, which no agent called before", child.key())),
        }
    }
}

/// Returns the task that an invocation is part of, at its first event or its last.
fn task<'a>(one: &Invocation<'a>, at: usize) -> Option<&'a TaskId> {
    one.events[at.min(one.events.len() - 1)].source()?.task_id.as_ref()
}

fn is_task(child: &Invocation<'_>) -> bool {
    child.events.last().and_then(|event| event.source()).is_some_and(|source| source.task_id.is_some())
}

/// Returns the call that its `AGENT_START` names.
fn named_call<'a>(child: &Invocation<'a>) -> Option<&'a ToolCallId> {
    match &child.events[0].kind {
        EventKind::AgentStart { parent_tool_call_id, .. } => parent_tool_call_id.as_ref(),
        _ => None,
    }
}

/// Checks that the first children of a turn's calls start in the order of the calls; except
/// background children, and those that needed an approval.
#[derive(Default)]
struct Order<'a> {
    last: HashMap<(usize, usize), u64>,
    seen: HashSet<(usize, &'a ToolCallId)>,
}

impl<'a> Order<'a> {
    fn check(&mut self, child: &Invocation<'_>, call: &Call<'a>) -> Result<(), Violation> {
        if call.is_held || call.lets_go(child) || !self.seen.insert((call.caller, call.id)) {
            return Ok(());
        }
        let before = self.last.insert((call.caller, call.turn), call.called);
        if before.is_some_and(|before| before > call.called) {
            let message = format!("the child of {} starts out of order", call.id);
            return Err(Violation::new(3, child.start(), message));
        }
        Ok(())
    }
}
