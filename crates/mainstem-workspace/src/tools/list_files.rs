//! `list_files`: lists a directory.

use std::sync::Arc;

use mainstem_tool::{Tool, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Workspace, WorkspaceError, Workspaces,
    blocking::Stop,
    text::{Listing, shown},
    walk::{DEEPEST, Entry, Failures, Kind, Walk},
};

/// The maximum number of entries in one result.
const ENTRIES: usize = 1000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListFiles {
    /// The directory, relative to the workspace. Default: the whole workspace.
    #[serde(default)]
    path: Option<String>,
    /// How many levels to show. Default 1: only what is directly in it.
    #[serde(default)]
    #[schemars(range(min = 1))]
    depth: Option<usize>,
}

pub(super) fn tool(workspaces: Workspaces) -> Arc<dyn Tool> {
    let description = "List a directory of the workspace, one path a line, directories with a slash at their end. Ignored files are \
                       shown, .git is not.";
    let tool = tool_fn("list_files", description, move |cx, list: ListFiles| {
        let workspaces = workspaces.clone();
        async move { workspaces.work(&cx, move |workspace, stop| list.run(workspace, stop)).await }
    });
    Arc::new(tool.with_read_only(true))
}

impl ListFiles {
    fn run(self, workspace: &Workspace, stop: &Stop) -> Result<String, WorkspaceError> {
        let start = workspace.directory(self.path.as_deref())?;
        let depth = self.depth.unwrap_or(1).clamp(1, DEEPEST);
        let (mut listing, mut failures) = (Listing::new(ENTRIES), Failures::default());
        for entry in Walk::all(workspace, stop, start, depth) {
            match entry {
                Ok(entry) => listing.push(&line(workspace, &entry)),
                Err(error) => failures.add(error)?,
            }
        }
        let mut notes = failures.into_notes();
        if listing.is_full() {
            notes.push(format!(
                "and {} more; give the path of a directory or a smaller depth",
                listing.left_out()
            ));
        }
        Ok(listing.finish("[the directory is empty]", &notes))
    }
}

fn line(workspace: &Workspace, entry: &Entry) -> String {
    let path = shown(&entry.path);
    match entry.kind {
        Kind::Directory => format!("{path}/"),
        Kind::File => path,
        Kind::Link => match workspace.dir().read_link_contents(&entry.path) {
            Ok(target) => format!("{path} -> {}", shown(&target)),
            Err(_) => format!("{path} -> ?"),
        },
        Kind::Special => format!("{path} (not a regular file)"),
    }
}

#[cfg(test)]
mod tests;
