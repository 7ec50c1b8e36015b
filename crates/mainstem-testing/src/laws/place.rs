//! Law 5: depth, path and session say where an agent is, and agree; events keep their source.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use mainstem_event::{AgentEvent, EventKind, EventSource, Origin};
use mainstem_message::{AgentKey, SessionId, TaskId};

use super::{Invocation, Violation};

pub(super) fn check(events: &[AgentEvent], invocations: &[Invocation<'_>]) -> Result<(), Violation> {
    let is_partial = invocations.first().is_some_and(|first| first.start() > 1);
    let tasks = events.iter().filter_map(|event| match &event.kind {
        EventKind::TaskUpdated { task_id, .. } => Some(task_id),
        _ => None,
    });
    let mut seen = State { is_partial, tasks: tasks.collect(), ..State::default() };
    invocations.iter().try_for_each(|invocation| {
        let violation =
            |message| Violation::new(5, invocation.start(), format!("{}: {message}", invocation.key()));
        seen.check(invocation).map_err(violation)
    })
}

/// The state of the check.
#[derive(Default)]
struct State<'a> {
    /// The timeline begins later than the session.
    is_partial: bool,
    tasks: HashSet<&'a TaskId>,
    root: Option<&'a SessionId>,
    agents: HashMap<&'a AgentKey, &'a EventSource>,
    sessions: HashMap<&'a SessionId, &'a EventSource>,
    /// The latest stream.
    stream: u64,
}

impl<'a> State<'a> {
    fn check(&mut self, invocation: &Invocation<'a>) -> Result<(), String> {
        self.check_origin(invocation)?;
        let Some(source) = invocation.source else {
            self.root = Some(invocation.events[0].session_id());
            return Ok(());
        };
        if source.stream_id <= self.stream {
            return Err(format!("stream {} starts after {}", source.stream_id, self.stream));
        }
        self.stream = source.stream_id;
        self.check_parent(source)?;
        let before =
            [self.agents.insert(&source.agent_key, source), self.sessions.insert(&source.session_id, source)];
        match before.into_iter().flatten().find(|before| identity(before) != identity(source)) {
            Some(before) => Err(format!(
                "the agent or its session is used again: it was {} in session {}",
                before.agent_key, before.session_id
            )),
            None => Ok(()),
        }
    }

    fn check_origin(&self, invocation: &Invocation<'_>) -> Result<(), String> {
        let mut pairs = invocation.events.windows(2).map(|pair| (&pair[0].origin, &pair[1].origin));
        let stays = pairs.all(|(before, now)| before == now || is_moved(before, now, &self.tasks));
        if stays { Ok(()) } else { Err("its origin changes".to_owned()) }
    }

    fn check_parent(&self, source: &EventSource) -> Result<(), String> {
        let parent = &source.parent_session_id;
        let (depth, path) = match self.sessions.get(parent) {
            Some(above) => (above.depth, &*above.path),
            None if self.root == Some(parent) => (0, parent.as_str()),
            None if self.is_partial && source.turn > 1 => return Ok(()),
            None => return Err(format!("its parent's session {parent} was not seen before")),
        };
        if source.depth.checked_sub(1) != Some(depth) || *source.path != format!("{path}/{}", source.agent_id)
        {
            return Err(format!("{} at depth {} is not below {path} at {depth}", source.path, source.depth));
        }
        Ok(())
    }
}

/// Returns the fields that all turns of one agent share.
fn identity(source: &EventSource) -> impl PartialEq + '_ {
    let EventSource {
        agent_key,
        agent_id,
        agent_name,
        label,
        session_id,
        parent_session_id,
        depth,
        path,
        ..
    } = source;
    (agent_key, agent_id, agent_name, label, session_id, parent_session_id, depth, path)
}

/// Returns `true` for the changes that are allowed within one invocation: it moves into a task, and
/// then into another run, because a task may outlive its run.
fn is_moved(before: &Origin, now: &Origin, tasks: &HashSet<&TaskId>) -> bool {
    let Some((was, is)) = before.source.as_deref().zip(now.source.as_deref()) else { return false };
    let task_id = is.task_id.clone();
    let moved = was.task_id == task_id || task_id.as_ref().is_some_and(|task| tasks.contains(task));
    let run_id = if task_id.is_some() { now.run_id.clone() } else { before.run_id.clone() };
    let source = Some(Arc::new(EventSource { task_id, ..was.clone() }));
    moved && *now == Origin { source, run_id, ..before.clone() }
}
