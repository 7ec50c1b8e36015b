//! `edit_file`: replaces a part of a file.

use std::sync::Arc;

use mainstem_tool::{Tool, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Workspace, WorkspaceError, Workspaces,
    edit::{Edit, list},
    workspace::Target,
};

/// The size of the largest file that is edited, in bytes: it has to be in memory.
const MAX_BYTES: u64 = 16 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditFile {
    /// The file, relative to the workspace.
    path: String,
    /// The text to replace, exactly as it is in the file, with enough around it to occur once.
    old: String,
    /// What to put there.
    new: String,
    /// Replace every occurrence. Default false.
    #[serde(default)]
    replace_all: bool,
}

pub(super) fn tool(workspaces: Workspaces) -> Arc<dyn Tool> {
    let description = "Replace a text in a file of the workspace. The text must occur exactly once, white space included, unless \
                       replace_all is set. Give it without the line numbers of read_file.";
    Arc::new(tool_fn("edit_file", description, move |cx, edit: EditFile| {
        let workspaces = workspaces.clone();
        async move { workspaces.change(&cx, move |workspace, _| edit.run(workspace)).await }
    }))
}

impl EditFile {
    fn run(self, workspace: &Workspace) -> Result<String, WorkspaceError> {
        let path = workspace.path(&self.path)?;
        // A claim creates parent directories, and an edit that fails must not.
        drop(workspace.open_file(&path)?);
        let target = Target::claim("edit_file", workspace, &path)?;
        let content = target.read(MAX_BYTES)?;
        let Self { old, new, replace_all, .. } = &self;
        let edited = Edit { old, new, replace_all: *replace_all }
            .apply(&content)
            .map_err(|why| WorkspaceError::Refused(format!("{} is unchanged: {why}", path.written)))?;
        target.replace(&edited.content)?;
        let (count, lines) = (edited.lines.len(), list(&edited.lines));
        let places = if count == 1 { "1 place, line" } else { "places, lines" };
        Ok(match count {
            1 => format!("edited {} in {places} {lines}", path.written),
            _ => format!("edited {} in {count} {places} {lines}", path.written),
        })
    }
}

#[cfg(test)]
mod tests;
