//! The tools, one file each.

mod edit_file;
mod glob_files;
mod grep_files;
mod list_files;
mod read_file;
#[cfg(unix)]
mod shell;
mod write_file;

use std::sync::Arc;

use mainstem_tool::Tool;

#[cfg(unix)]
pub(crate) use self::shell::tool as shell;
use crate::Workspaces;

/// The names of the tools for files, in the order of
/// [`Workspaces::tools`](crate::Workspaces::tools).
pub const FILE_TOOLS: [&str; 6] =
    ["read_file", "write_file", "edit_file", "list_files", "glob_files", "grep_files"];

/// Returns the file tools.
pub(crate) fn files(workspaces: &Workspaces) -> Vec<Arc<dyn Tool>> {
    let all = [
        read_file::tool,
        write_file::tool,
        edit_file::tool,
        list_files::tool,
        glob_files::tool,
        grep_files::tool,
    ];
    all.into_iter().map(|tool| tool(workspaces.clone())).collect()
}

#[cfg(test)]
mod tests;
