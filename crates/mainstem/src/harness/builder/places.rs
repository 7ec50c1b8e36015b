//! Opens the directories that agents work in.

use mainstem_declarations::{WorkingDirectory, named_directory, working_directory};
use mainstem_react::RunContext;
use mainstem_spec::AgentSpec;
use mainstem_subagent::Fleet;
use mainstem_tool::ToolContext;
use mainstem_workspace::{Layout, Workspace, WorkspaceError, Workspaces};
#[cfg(feature = "session-files")]
use {
    mainstem_message::SessionId, mainstem_session::DeleteFiles, mainstem_tool::async_trait,
    mainstem_workspace::SessionFiles,
};

/// Returns each agent's directory below that of the harness. `root` is the declaration of the root.
pub(super) fn workspaces(harness: Workspace, root: Option<&AgentSpec>) -> Result<Workspaces, WorkspaceError> {
    let places = Places::new(harness, root.and_then(named_directory).as_ref())?;
    Ok(Workspaces::new(move |cx| places.open(&directory_of(cx), cx.user())))
}

/// Deletes the files of a scope's sessions.
#[cfg(feature = "session-files")]
pub(super) struct StoredFiles {
    pub(super) workspace: Workspace,
    pub(super) files: SessionFiles,
}

#[cfg(feature = "session-files")]
#[async_trait]
impl DeleteFiles for StoredFiles {
    async fn delete_files(&self, session: &SessionId) -> Result<(), String> {
        let deleted = match session.as_str().split_once('/') {
            // The harness of all deletes a tenant's, too, whose id begins with the tenant.
            Some((tenant, own)) => {
                let place = self.workspace.root().join("tenants").join(tenant);
                let workspace = Workspace::create(place).map_err(|error| error.to_string())?;
                self.files.of_tenant(tenant).delete(&workspace, &SessionId::from_lossy(own)).await
            }
            None => self.files.delete(&self.workspace, session).await,
        };
        deleted.map_err(|error| error.to_string())
    }
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
