//! Long results as files that the agent can read.

use mainstem_tool::{Artifacts, ToolContext, ToolError, async_trait};

use crate::{Layout, Workspace, WorkspaceError, Workspaces, workspace::Target};

/// Stores each in the workspace of the agent that it belongs to: see [`Layout::artifact`].
#[async_trait]
impl Artifacts for Workspaces {
    async fn store(&self, cx: &ToolContext, text: &str) -> Result<String, ToolError> {
        let (session, text) = (cx.session_id().to_string(), text.to_owned());
        let call = cx.call_id().to_string();
        let stored = self.change(cx, move |workspace, _| write_new(workspace, &session, &call, &text));
        Ok(stored.await?)
    }
}

/// Writes a new file; never replaces one. Returns the path.
fn write_new(workspace: &Workspace, session: &str, call: &str, text: &str) -> Result<String, WorkspaceError> {
    let mut again = 0;
    loop {
        let path = Layout::new("").artifact(session, call, again).to_string_lossy().into_owned();
        let inside = workspace.path(&path)?;
        let target = Target::claim("artifact", workspace, &inside)?;
        if target.is_new() {
            target.replace(text.as_bytes())?;
            return Ok(path);
        }
        again += 1;
    }
}

#[cfg(test)]
mod tests;
