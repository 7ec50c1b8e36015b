//! The tools that a workspace brings.

use std::{path::Path, sync::Arc};

use mainstem_spec::AgentSpec;
use mainstem_tool::{Tool, ToolSet};
#[cfg(unix)]
use mainstem_workspace::ShellOptions;
use mainstem_workspace::{Workspace, Workspaces};

use super::{HarnessBuilder, places};
use crate::BuildError;

/// Which of them are wanted.
pub(super) struct Files {
    tools: bool,
    #[cfg(unix)]
    shell: Option<ShellOptions>,
}

impl Default for Files {
    fn default() -> Self {
        Self {
            tools: true,
            #[cfg(unix)]
            shell: None,
        }
    }
}

impl HarnessBuilder {
    /// Whether agents get `read_file`, `write_file`, `edit_file`, `list_files`, `glob_files` and `grep_files`, confined to the
    /// workspace; they do by default if there is one. A tool of the program with one of these names takes its place, with a warning.
    pub fn file_tools(mut self, wanted: bool) -> Self {
        self.files.tools = wanted;
        self
    }

    /// Gives agents the tool `shell`, which runs commands in the directory where the agent works, with more than the default to read,
    /// write or know.
    ///
    /// What may be reached from there is said at [`ShellOptions`]. Commands run under a guard, which is this program run once more: its
    /// `main` begins with [`mainstem_guard::init`], or [`ShellOptions::with_guard`] names another program.
    #[cfg(unix)]
    pub fn shell(mut self, options: ShellOptions) -> Self {
        self.files.shell = Some(options);
        self
    }

    /// Gives agents the tool `shell` with its defaults; see [`shell`](Self::shell).
    #[cfg(unix)]
    pub fn with_shell(self) -> Self {
        self.shell(ShellOptions::default())
    }
}

impl Files {
    /// Adds what is wanted to the program's tools; returns the names of what was added, and those that were taken. `root` is what the root was
    /// declared as.
    pub(super) fn furnish(
        &self,
        tools: &mut ToolSet,
        workspace: Option<&Path>,
        root: Option<&AgentSpec>,
    ) -> Result<(Vec<String>, Vec<String>), BuildError> {
        let Some(path) = workspace else {
            return if self.has_shell() { Err(BuildError::ShellNowhere) } else { Ok(Default::default()) };
        };
        #[cfg(unix)]
        self.shell.as_ref().map(ShellOptions::guard).transpose().map_err(BuildError::Unguarded)?;
        let (mut added, mut taken) = (Vec::new(), Vec::new());
        if !self.tools && !self.has_shell() {
            return Ok((added, taken));
        }
        let workspaces = places::workspaces(Workspace::open(path)?, root)?;
        for tool in self.wanted(&workspaces) {
            let name = tool.spec().name;
            if tools.get(&name).is_some() {
                taken.push(name);
            } else {
                tools.insert(tool)?;
                added.push(name);
            }
        }
        Ok((added, taken))
    }

    fn wanted(&self, workspaces: &Workspaces) -> Vec<Arc<dyn Tool>> {
        let mut wanted = if self.tools { workspaces.tools() } else { Vec::new() };
        #[cfg(unix)]
        wanted.extend(self.shell.clone().map(|options| workspaces.shell_with(options)));
        wanted
    }

    #[cfg(unix)]
    fn has_shell(&self) -> bool {
        self.shell.is_some()
    }

    #[cfg(not(unix))]
    fn has_shell(&self) -> bool {
        false
    }
}
