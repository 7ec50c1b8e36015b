//! Opens the directories that agents work in.

use mainstem_declarations::{WorkingDirectory, named_directory, working_directory};
use mainstem_react::RunContext;
use mainstem_spec::AgentSpec;
use mainstem_subagent::Fleet;
use mainstem_tool::ToolContext;
#[cfg(feature = "session-files")]
use mainstem_workspace::SessionFiles;
use mainstem_workspace::{Layout, Workspace, WorkspaceError, Workspaces};

/// Returns each agent's directory below that of the harness. `root` is the declaration of the root.
pub(super) fn workspaces(harness: Workspace, root: Option<&AgentSpec>) -> Result<Workspaces, WorkspaceError> {
    let places = Places::new(harness, root.and_then(named_directory).as_ref())?;
    Ok(Workspaces::new(move |cx| places.open(&directory_of(cx), cx.user())))
}

/// Returns each agent's directory below that of its session, whose files a store keeps.
#[cfg(feature = "session-files")]
pub(super) fn of_sessions(harness: Workspace, root: Option<&AgentSpec>, files: SessionFiles) -> Workspaces {
    let named = root.and_then(named_directory);
    Workspaces::of_sessions(harness, files, move |session, cx| {
        Places::new(session.clone(), named.as_ref())?.open(&directory_of(cx), cx.user())
    })
}

struct Places {
    harness: Workspace,
    root: Workspace,
}

impl Places {
    fn new(harness: Workspace, root: Option<&WorkingDirectory>) -> Result<Self, WorkspaceError> {
        let mut places = Self { root: harness.clone(), harness };
        if let Some(directory) = root {
            places.root = places.open(directory, None)?;
        }
        Ok(places)
    }

    fn open(&self, directory: &WorkingDirectory, user: Option<&str>) -> Result<Workspace, WorkspaceError> {
        match directory {
            WorkingDirectory::Root => Ok(self.root.clone()),
            WorkingDirectory::Named { path, is_in_code: true } => {
                Ok(Workspace::create(self.harness.root().join(path))?.protected_as(&self.harness))
            }
            WorkingDirectory::Named { path, is_in_code: false } => self.harness.create_inside(path),
            WorkingDirectory::Own(agent) => self.harness.create_inside(Layout::new("").instance(
                &agent.agent_id,
                user,
                agent.parent_session_id.as_str(),
                agent.session_id.as_str(),
            )),
        }
    }
}

fn directory_of(cx: &ToolContext) -> WorkingDirectory {
    let Some(source) = cx.source() else { return WorkingDirectory::Root };
    let Some(fleet) = RunContext::of(cx).and_then(Fleet::of) else {
        return WorkingDirectory::Own(source.clone());
    };
    let spec = |agent: &_| fleet.spec_of(agent);
    working_directory(source.clone(), spec, |session| fleet.child_of_session(session))
}
