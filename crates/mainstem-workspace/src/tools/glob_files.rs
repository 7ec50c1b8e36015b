//! `glob_files`: finds files by their names.

use std::{path::Path, sync::Arc};

use globset::{GlobBuilder, GlobMatcher};
use mainstem_tool::{Tool, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Workspace, WorkspaceError, Workspaces,
    blocking::Stop,
    text::{Listing, shown},
    walk::{Failures, Kind, Walk},
};

/// The maximum number of files in one result.
const FILES: usize = 1000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GlobFiles {
    /// A pattern such as "*.rs" (names in every directory) or "src/**/*.{ts,tsx}" (paths below
    /// path).
    pattern: String,
    /// The directory to look in, relative to the workspace. Default: the whole workspace.
    #[serde(default)]
    path: Option<String>,
}

pub(super) fn tool(workspaces: Workspaces) -> Arc<dyn Tool> {
    let description = "Find files of the workspace by a pattern of their names; the answer is one path a line, sorted. What .gitignore \
                       excludes is left out.";
    let tool = tool_fn("glob_files", description, move |cx, glob: GlobFiles| {
        let workspaces = workspaces.clone();
        async move { workspaces.work(&cx, move |workspace, stop| glob.run(workspace, stop)).await }
    });
    Arc::new(tool.with_read_only(true))
}

impl GlobFiles {
    fn run(self, workspace: &Workspace, stop: &Stop) -> Result<String, WorkspaceError> {
        let pattern = Pattern::new("pattern", &self.pattern)?;
        let start = workspace.directory(self.path.as_deref())?;
        let base = start.relative.clone();
        let (mut listing, mut failures) = (Listing::new(FILES), Failures::default());
        for entry in Walk::unignored(workspace, stop, start) {
            match entry {
                Ok(entry) if !matches!(entry.kind, Kind::File | Kind::Link) => {}
                Ok(entry) if pattern.matches(&entry.path, &base) => listing.push(&shown(&entry.path)),
                Ok(_) => {}
                Err(error) => failures.add(error)?,
            }
        }
        let mut notes = failures.into_notes();
        if listing.is_full() {
            notes.push(format!("and {} more; give a narrower pattern or a path", listing.left_out()));
        }
        Ok(listing.finish("[no file matches]", &notes))
    }
}

/// A glob: without a slash for names, otherwise for paths below the searched directory.
#[derive(Debug)]
pub(super) struct Pattern {
    glob: GlobMatcher,
    is_name: bool,
}

impl Pattern {
    /// Compiles a pattern; `argument` is its name in errors.
    pub(super) fn new(argument: &str, pattern: &str) -> Result<Self, WorkspaceError> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        match glob {
            Ok(glob) => Ok(Self { glob: glob.compile_matcher(), is_name: !pattern.contains('/') }),
            Err(error) => Err(WorkspaceError::Refused(format!("{argument} is no glob: {error}"))),
        }
    }

    /// Returns `true` if it matches a path below `base`, both relative to the root.
    pub(super) fn matches(&self, path: &Path, base: &Path) -> bool {
        if self.is_name {
            return path.file_name().is_some_and(|name| self.glob.is_match(name));
        }
        self.glob.is_match(path.strip_prefix(base).unwrap_or(path))
    }
}

#[cfg(test)]
mod tests;
