//! Which directory an agent works in.

use std::{path::PathBuf, sync::Arc};

use mainstem_event::EventSource;
use mainstem_message::{AgentKey, SessionId};
use mainstem_spec::{AgentSpec, Origin, WorkspaceMode};

/// A directory of the workspace.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "each is opened in its own way")]
pub enum WorkingDirectory {
    /// The root's directory.
    Root,
    /// The directory that a spec names. Code may name any; a directory that a file names is inside
    /// the workspace.
    Named {
        /// The name, as the spec has it.
        path: PathBuf,
        /// Whether code declares the spec.
        is_in_code: bool,
    },
    /// The directory of one agent.
    Own(EventSource),
}

/// Decides where a child works: in the directory of the nearest agent, upwards from the child
/// itself, that shares no other agent's. `spec` returns the declaration of a child, `with_session`
/// the child that has a session.
///
/// An agent without a spec is a tool of the program and is not part of the fleet. It shares no
/// directory, and what is below it can't share its directory.
pub fn working_directory(
    mut agent: EventSource,
    spec: impl Fn(&AgentKey) -> Option<Arc<AgentSpec>>,
    with_session: impl Fn(&SessionId) -> Option<EventSource>,
) -> WorkingDirectory {
    loop {
        match spec(&agent.agent_key) {
            Some(spec) if spec.workspace.mode == WorkspaceMode::Shared => {}
            spec => {
                let named = spec.and_then(|spec| named_directory(&spec));
                return named.unwrap_or(WorkingDirectory::Own(agent));
            }
        }
        if agent.depth <= 1 {
            return WorkingDirectory::Root;
        }
        let Some(parent) = with_session(&agent.parent_session_id) else {
            return WorkingDirectory::Own(agent);
        };
        agent = parent;
    }
}

/// Returns the directory that a spec names, unless the spec takes only its prompt from there.
#[must_use]
pub fn named_directory(spec: &AgentSpec) -> Option<WorkingDirectory> {
    let path = spec.workspace.path.clone().filter(|_| spec.workspace.mode != WorkspaceMode::Shared)?;
    Some(WorkingDirectory::Named { path, is_in_code: spec.origin == Origin::Program })
}

#[cfg(test)]
mod tests;
