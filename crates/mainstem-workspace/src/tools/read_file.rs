//! `read_file`: reads a text file, or some of its lines.
//!
//! Lines are numbered: a model then names places as people, compilers and `grep_files` do, and
//! reads on at a line. It costs a number and a tab a line, and models copy these into edits, which
//! `edit_file` recognises.

use std::{io::Read, sync::Arc};

use mainstem_tool::{Tool, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Workspace, WorkspaceError, Workspaces,
    blocking::Stop,
    window::{View, Window},
    workspace::explain,
};

/// The maximum number of lines in one result.
const LINES: u64 = 2000;

/// The size of a block.
const BLOCK: usize = 64 << 10;

/// A NUL in the first so many bytes makes a file binary, as for git.
const LOOKED_AT: usize = 8 << 10;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadFile {
    /// The file, relative to the workspace.
    path: String,
    /// The first line to read, counted from 1. Default 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// How many lines to read. Default and maximum 2000.
    #[serde(default)]
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

pub(super) fn tool(workspaces: Workspaces) -> Arc<dyn Tool> {
    let description = "Read a text file of the workspace. Each line has its number and a tab before it, which are not part of the file. \
                       Long files come in parts; the answer says with which offset to read on.";
    let tool = tool_fn("read_file", description, move |cx, read: ReadFile| {
        let workspaces = workspaces.clone();
        async move { workspaces.work(&cx, move |workspace, stop| read.run(workspace, stop)).await }
    });
    Arc::new(tool.with_read_only(true))
}

impl ReadFile {
    fn run(self, workspace: &Workspace, stop: &Stop) -> Result<String, WorkspaceError> {
        let path = workspace.path(&self.path)?;
        let mut file = workspace.open_file(&path)?;
        let first = self.offset.unwrap_or(1).max(1);
        let mut window = Window::new(first, self.limit.unwrap_or(LINES).clamp(1, LINES));
        let mut block = vec![0; BLOCK];
        let mut is_start = true;
        loop {
            stop.check()?;
            let length = file.read(&mut block).map_err(|error| explain(&path.written, error))?;
            let read = &block[..length];
            if is_start && memchr::memchr(0, &read[..length.min(LOOKED_AT)]).is_some() {
                let bytes = file.metadata().map_or(0, |metadata| metadata.len());
                let why = format!("is a binary file of {bytes} bytes; read_file reads text only");
                return Err(WorkspaceError::Unfit { path: path.written, why });
            }
            if length == 0 {
                break;
            }
            is_start = false;
            window.push(read);
        }
        let view = window.finish();
        if first > view.total && first > 1 {
            let why = format!("has {} lines, so that there is no line {first}", view.total);
            return Err(WorkspaceError::Unfit { path: path.written, why });
        }
        Ok(render(view, first))
    }
}

fn render(view: View, first: u64) -> String {
    if view.total == 0 {
        return "[the file is empty]".to_owned();
    }
    let mut text = view.text;
    let last = first + view.shown - 1;
    if view.crlf > 0 {
        text.push_str("[lines end in CRLF]\n");
    }
    if view.garbled > 0 {
        text.push_str(&format!(
            "[lines that are not UTF-8: {}; U+FFFD stands for what is not]\n",
            view.garbled
        ));
    }
    if last < view.total {
        text.push_str(&format!(
            "[lines {first}-{last} of {}; read on with offset={}]\n",
            view.total,
            last + 1
        ));
    } else if first > 1 {
        text.push_str(&format!("[lines {first}-{last} of {}]\n", view.total));
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

#[cfg(test)]
mod tests;
