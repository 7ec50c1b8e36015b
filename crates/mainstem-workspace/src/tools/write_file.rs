//! `write_file`: writes a whole file.

use std::sync::Arc;

use mainstem_tool::{Tool, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Workspace, WorkspaceError, Workspaces, workspace::Target};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteFile {
    /// The file, relative to the workspace. Missing directories are made.
    path: String,
    /// All that shall be in it.
    content: String,
}

pub(super) fn tool(workspaces: Workspaces) -> Arc<dyn Tool> {
    let description = "Write a file of the workspace: a new one, or in place of all that is in it. To change a part of a file, use \
                       edit_file.";
    Arc::new(tool_fn("write_file", description, move |cx, write: WriteFile| {
        let workspaces = workspaces.clone();
        async move { workspaces.change(&cx, move |workspace, _| write.run(workspace)).await }
    }))
}

impl WriteFile {
    fn run(self, workspace: &Workspace) -> Result<String, WorkspaceError> {
        let path = workspace.path(&self.path)?;
        let target = Target::claim("write_file", workspace, &path)?;
        let did = if target.is_new() { "created" } else { "overwrote" };
        target.replace(self.content.as_bytes())?;
        Ok(format!("{did} {} ({} bytes)", path.written, self.content.len()))
    }
}
