//! Opens the directories that agents work in.

use mainstem_declarations::{WorkingDirectory, named_directory, working_directory};
use mainstem_react::RunContext;
use mainstem_spec::AgentSpec;
use mainstem_subagent::Fleet;
use mainstem_tool::ToolContext;
use mainstem_workspace::{Layout, Workspace, WorkspaceError, Workspaces};

/// Returns each agent's directory below that of the harness. `root` is the declaration of the root.
pub(super) fn workspaces(harness: Workspace, root: Option<&AgentSpec>) -> Result<Workspaces, WorkspaceError> {
    let mut places = Places { root: harness.clone(), harness };
    if let Some(directory) = root.and_then(named_directory) {
        places.root = places.open(&directory, None)?;
    }
    Ok(Workspaces::new(move |cx| places.open(&directory_of(cx), cx.user())))
}

struct Places {
    harness: Workspace,
    root: Workspace,
}

impl Places {
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
