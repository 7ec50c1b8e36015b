//! Law 2: an invocation begins with `AGENT_START` and ends with `AGENT_END`, one of each.

use std::{collections::HashMap, sync::Arc};

use mainstem_event::{AgentEvent, EventKind, EventSource};
use mainstem_message::{ReplyId, TaskId};

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

    /// The agent's own session.
    pub(super) fn session(&self) -> &str {
        let root = self.events[0].session_id();
        self.source.map_or(root, |source| &source.session_id).as_str()
    }

    fn key(&self) -> &str {
        self.source.map_or("root", |source| source.agent_key.as_str())
    }
}

/// The invocations in the order of their start, each of which obeys law 2.
pub(super) fn invocations(events: &[AgentEvent]) -> Result<Vec<Invocation<'_>>, Violation> {
    let mut all: Vec<Invocation<'_>> = Vec::new();
    let mut index: HashMap<&ReplyId, usize> = HashMap::new();
    for event in events {
        let Some(reply_id) = event.reply_id() else { continue };
        let at = *index.entry(reply_id).or_insert_with(|| {
            all.push(Invocation { source: event.origin.source.as_ref(), events: Vec::new() });
            all.len() - 1
        });
        all[at].events.push(event);
    }
    all.iter().try_for_each(bracket)?;
    tasks(events, &all)?;
    turns(&all)?;
    Ok(all)
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

/// A task's terminal change comes after the `AGENT_END`s of what belongs to it.
fn tasks(events: &[AgentEvent], all: &[Invocation<'_>]) -> Result<(), Violation> {
    use mainstem_event::TaskStatus::{Cancelled, Completed, Failed};
    let mut ended: HashMap<&TaskId, u64> = HashMap::new();
    for event in events {
        if let EventKind::TaskUpdated { task_id, to: Completed | Failed | Cancelled, .. } = &event.kind {
            ended.insert(task_id, event.seq);
        }
    }
    let of = |one: &Invocation<'_>| one.events.last().and_then(|event| event.source()?.task_id.clone());
    let late = all
        .iter()
        .find(|one| of(one).is_some_and(|task| ended.get(&task).is_some_and(|end| *end < one.end())));
    late.map_or(Ok(()), |one| Err(Violation::new(2, one.end(), format!("{} ends after its task", one.key()))))
}

/// The turns of an instance are 1, 2, 3 …, one after the other.
fn turns(all: &[Invocation<'_>]) -> Result<(), Violation> {
    let mut last: HashMap<&str, (u32, u64)> = HashMap::new();
    for one in all {
        let turn = one.source.map(|source| source.turn);
        let first = (turn.map_or(0, |turn| turn - 1), 0);
        let (before, ended) = last.get(one.key()).copied().unwrap_or(first);
        if one.start() < ended {
            return Err(Violation::new(
                2,
                one.start(),
                format!("{} starts before its last turn ended", one.key()),
            ));
        }
        if turn.is_some_and(|turn| turn != before + 1) {
            return Err(Violation::new(2, one.start(), format!("{} skips a turn", one.key())));
        }
        last.insert(one.key(), (before + 1, one.end()));
    }
    Ok(())
}
