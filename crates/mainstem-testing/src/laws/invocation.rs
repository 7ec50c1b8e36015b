//! Law 2: an invocation begins with `AGENT_START` and ends with `AGENT_END`, one of each.

use std::{collections::HashMap, sync::Arc};

use mainstem_event::{AgentEvent, EventKind, EventSource};
use mainstem_message::{ConfirmId, ReplyId, SessionId, TaskId};

use super::Violation;

/// One invocation's events, from its start to its end.
pub(super) struct Invocation<'a> {
    pub(super) source: Option<&'a Arc<EventSource>>,
    pub(super) events: Vec<&'a AgentEvent>,
}

impl<'a> Invocation<'a> {
    pub(super) fn start(&self) -> u64 {
        self.events[0].seq
    }

    pub(super) fn end(&self) -> u64 {
        self.events[self.events.len() - 1].seq
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = (&'a AgentEvent, &'a EventKind)> + '_ {
        self.events.iter().map(|event| (*event, &event.kind))
    }

    /// Returns the agent's own session.
    pub(super) fn session(&self) -> &'a SessionId {
        self.source.map_or_else(|| self.events[0].session_id(), |source| &source.session_id)
    }

    /// Returns the last event, an `AGENT_END`.
    pub(super) fn ending(&self) -> &'a EventKind {
        &self.events[self.events.len() - 1].kind
    }

    pub(super) fn key(&self) -> &str {
        self.source.map_or("root", |source| source.agent_key.as_str())
    }
}

/// Returns the invocations in the order of their start, after checking law 2 for each.
pub(super) fn invocations(events: &[AgentEvent]) -> Result<Vec<Invocation<'_>>, Violation> {
    let mut all: Vec<Invocation<'_>> = Vec::new();
    let mut index: HashMap<&ReplyId, usize> = HashMap::new();
    for event in events {
        belongs(event)?;
        let Some(reply_id) = event.reply_id() else { continue };
        let at = *index.entry(reply_id).or_insert_with(|| {
            all.push(Invocation { source: event.origin.source.as_ref(), events: Vec::new() });
            all.len() - 1
        });
        all[at].events.push(event);
    }
    all.iter().try_for_each(bracket)?;
    requests(events, &all)?;
    tasks(events, &all)?;
    turns(&all)?;
    Ok(all)
}

/// Checks that an event belongs to an invocation, or to the session, as its kind requires.
fn belongs(event: &AgentEvent) -> Result<(), Violation> {
    use EventKind::*;
    let broken = |what: &str| Err(Violation::new(2, event.seq, format!("{} {what}", event.kind.name())));
    match event.kind {
        TaskUpdated { .. }
        | MessageSent { .. }
        | AgentClosed { .. }
        | PlanModeChanged { .. }
        | StateCheckpoint { .. }
        | RunCancelled { .. }
            if event.reply_id().is_some() =>
        {
            broken("belongs to the session, not to an invocation")
        }
        _ if event.reply_id().is_some() => Ok(()),
        _ if event.source().is_some() => broken("has a source but belongs to no invocation"),
        TaskUpdated { .. } | MessageSent { .. } | AgentClosed { .. } | PlanModeChanged { .. } => Ok(()),
        StateCheckpoint { .. } | Custom { .. } => Ok(()),
        RunCancelled { .. } | UserConfirmResult { .. } | ExternalExecutionResult { .. } => Ok(()),
        Unknown { .. } => Ok(()),
        _ => broken("belongs to no invocation"),
    }
}

fn bracket(one: &Invocation<'_>) -> Result<(), Violation> {
    let count = |is: fn(&EventKind) -> bool| one.kinds().filter(|(_, kind)| is(kind)).count();
    let starts = count(|kind| matches!(kind, EventKind::AgentStart { .. }));
    let ends = count(|kind| matches!(kind, EventKind::AgentEnd { .. }));
    let broken = |seq, what: &str| Err(Violation::new(2, seq, format!("{what} of {}", one.key())));
    match (starts, ends) {
        _ if !matches!(one.events[0].kind, EventKind::AgentStart { .. }) => {
            broken(one.start(), "the first event is no AGENT_START")
        }
        (1, 1) if matches!(one.events[one.events.len() - 1].kind, EventKind::AgentEnd { .. }) => Ok(()),
        (1, 1) => broken(one.end(), "there are events after the AGENT_END"),
        (_, 0) => broken(one.end(), "there is no AGENT_END"),
        (1, _) => broken(one.end(), "there are several AGENT_ENDs"),
        _ => broken(one.end(), "there are several AGENT_STARTs"),
    }
}

/// Checks that each request for approval is answered, or withdrawn, before its invocation ends:
/// without that, it stays open.
fn requests(events: &[AgentEvent], all: &[Invocation<'_>]) -> Result<(), Violation> {
    let answer = |event: &AgentEvent| match &event.kind {
        EventKind::UserConfirmResult { confirm_id, .. } => Some((confirm_id.clone(), event.seq)),
        _ => None,
    };
    let answers: HashMap<ConfirmId, u64> = events.iter().filter_map(answer).collect();
    for one in all {
        let asked = one.kinds().filter_map(|(_, kind)| match kind {
            EventKind::RequireUserConfirm { confirm_id, .. } => Some(confirm_id),
            _ => None,
        });
        let is_open = |id: &&ConfirmId| answers.get(*id).is_none_or(|answered| *answered > one.end());
        if let Some(id) = asked.into_iter().find(is_open) {
            return Err(Violation::new(
                2,
                one.end(),
                format!("{} ends before request {id} is answered", one.key()),
            ));
        }
    }
    Ok(())
}

/// Checks that a task's terminal change is its last, after the `AGENT_END`s of its invocations.
fn tasks(events: &[AgentEvent], all: &[Invocation<'_>]) -> Result<(), Violation> {
    let mut ended: HashMap<&TaskId, u64> = HashMap::new();
    for event in events {
        let EventKind::TaskUpdated { task_id, to, .. } = &event.kind else { continue };
        if ended.contains_key(task_id) {
            return Err(Violation::new(2, event.seq, format!("{task_id} changes after its end")));
        }
        if to.is_terminal() {
            ended.insert(task_id, event.seq);
        }
    }
    let task = |one: &Invocation<'_>| one.events.last().and_then(|event| event.source()?.task_id.clone());
    let end = |one: &Invocation<'_>| ended.get(&task(one)?).copied();
    let outlives = |one: &&Invocation<'_>| end(one).is_some_and(|end| end < one.end());
    match all.iter().find(outlives) {
        Some(one) => Err(Violation::new(2, one.end(), format!("{} ends after its task", one.key()))),
        None => Ok(()),
    }
}

/// Checks that the turns of an instance are 1, 2, 3 …, in sequence. A timeline that begins later
/// than the session may begin with any.
fn turns(all: &[Invocation<'_>]) -> Result<(), Violation> {
    let is_whole = all.first().is_none_or(|first| first.start() == 1);
    let mut last: HashMap<&str, (u32, u64)> = HashMap::new();
    for one in all {
        let broken = |what: &str| Err(Violation::new(2, one.start(), format!("{} {what}", one.key())));
        let before = last.get(one.key()).copied();
        if before.is_some_and(|(_, ended)| one.start() < ended) {
            return broken("starts before its last turn ended");
        }
        let next = before.map_or(1, |(turn, _)| turn.saturating_add(1));
        let turn = one.source.map_or(next, |source| source.turn);
        let may_be_later = before.is_none() && !is_whole;
        if turn != next && !(may_be_later && turn > next) {
            return broken("skips a turn");
        }
        last.insert(one.key(), (turn, one.end()));
    }
    Ok(())
}
