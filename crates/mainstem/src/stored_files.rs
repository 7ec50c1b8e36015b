//! Deletes the files of sessions that a store keeps.

use mainstem_message::SessionId;
use mainstem_session::DeleteFiles;
use mainstem_tool::async_trait;
use mainstem_workspace::{SessionFiles, Workspace};

/// The files of sessions that a store keeps, to delete them with their sessions:
/// [`Records::with_files`](mainstem_session::Records::with_files). A harness with
/// [`with_session_files`](crate::HarnessBuilder::with_session_files) has it already.
#[derive(Debug)]
pub struct StoredFiles {
    workspace: Workspace,
    files: SessionFiles,
}

impl StoredFiles {
    /// Creates it for the sessions of a harness in this workspace, whose directories there are
    /// deleted, too.
    pub fn new(workspace: Workspace, files: SessionFiles) -> Self {
        Self { workspace, files }
    }
}

#[async_trait]
impl DeleteFiles for StoredFiles {
    async fn delete_files(&self, session: &SessionId) -> Result<(), String> {
        let deleted = match session.as_str().split_once('/') {
            // The harness of all deletes a tenant's, too, whose id begins with the tenant.
            Some((tenant, own)) => {
                let (files, own) = (self.files.of_tenant(tenant), SessionId::from_lossy(own));
                match Workspace::open(self.workspace.root().join("tenants").join(tenant)) {
                    Ok(workspace) => files.delete(&workspace, &own).await,
                    Err(_) => files.delete_stored(&own).await,
                }
            }
            None => self.files.delete(&self.workspace, session).await,
        };
        deleted.map_err(|error| error.to_string())
    }
}
