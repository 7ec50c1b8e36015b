//! Which directory an agent works in.

use std::{path::PathBuf, sync::Arc};

use mainstem_event::EventSource;
use mainstem_message::{AgentKey, SessionId};
use mainstem_react::RunContext;
use mainstem_spec::{AgentSpec, Origin, WorkspaceMode};
use mainstem_subagent::Fleet;
use mainstem_tool::ToolContext;
use mainstem_workspace::{Layout, Workspace, WorkspaceError, Workspaces};

/// A place in the harness's workspace.
#[derive(Debug, PartialEq)]
enum Place {
    /// Where the root works.
    Root,
    /// The directory that a spec names. Code may name any; what a file names is inside.
    Named { path: PathBuf, is_in_code: bool },
    /// The directory of one instance.
    Own(EventSource),
}

/// Each agent's directory below that of the harness. `root` is what the root was declared as.
pub(super) fn workspaces(harness: Workspace, root: Option<&AgentSpec>) -> Result<Workspaces, WorkspaceError> {
    let mut places = Places { root: harness.clone(), harness };
    if let Some(place) = root.and_then(named) {
        places.root = places.open(&place, None)?;
    }
    Ok(Workspaces::new(move |cx| places.open(&place_of(cx), cx.user())))
}

struct Places {
    harness: Workspace,
    root: Workspace,
}

impl Places {
    fn open(&self, place: &Place, user: Option<&str>) -> Result<Workspace, WorkspaceError> {
        match place {
            Place::Root => Ok(self.root.clone()),
            Place::Named { path, is_in_code: true } => {
                Ok(Workspace::create(self.harness.root().join(path))?.protected_as(&self.harness))
            }
            Place::Named { path, is_in_code: false } => self.harness.create_inside(path),
            Place::Own(agent) => self.harness.create_inside(Layout::new("").instance(
                &agent.agent_id,
                user,
                agent.parent_session_id.as_str(),
                agent.session_id.as_str(),
            )),
        }
    }
}

fn place_of(cx: &ToolContext) -> Place {
    let Some(source) = cx.source() else { return Place::Root };
    let Some(fleet) = RunContext::of(cx).and_then(Fleet::of) else { return Place::Own(source.clone()) };
    place(source.clone(), |agent| fleet.spec_of(agent), |session| fleet.child_of_session(session))
}

/// Where a child works: the place of the nearest agent, upwards from itself, that shares nobody's.
///
/// An agent without a spec is a tool of the program and no part of the fleet. It shares nothing,
/// and what is below it can't share its place.
fn place(
    mut agent: EventSource,
    spec: impl Fn(&AgentKey) -> Option<Arc<AgentSpec>>,
    with_session: impl Fn(&SessionId) -> Option<EventSource>,
) -> Place {
    loop {
        match spec(&agent.agent_key) {
            Some(spec) if spec.workspace.mode == WorkspaceMode::Shared => {}
            spec => return spec.and_then(|spec| named(&spec)).unwrap_or(Place::Own(agent)),
        }
        if agent.depth <= 1 {
            return Place::Root;
        }
        let Some(parent) = with_session(&agent.parent_session_id) else { return Place::Own(agent) };
        agent = parent;
    }
}

/// The directory that a spec names, unless it only takes its prompt from there.
fn named(spec: &AgentSpec) -> Option<Place> {
    let path = spec.workspace.path.clone().filter(|_| spec.workspace.mode != WorkspaceMode::Shared)?;
    Some(Place::Named { path, is_in_code: spec.origin == Origin::Program })
}

#[cfg(test)]
mod tests;
