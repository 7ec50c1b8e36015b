//! The tools for a workspace's files and commands.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use mainstem_session::DeleteFiles;
use mainstem_spec::AgentSpec;
use mainstem_tool::{Tool, ToolSet};
#[cfg(feature = "session-files")]
use mainstem_workspace::SessionFiles;
#[cfg(unix)]
use mainstem_workspace::ShellOptions;
use mainstem_workspace::{Protection, Workspace, Workspaces};
use serde_json::json;

use super::{HarnessBuilder, compose::Scope, places};
use crate::BuildError;

/// The tools that agents get; none by default.
#[derive(Clone, Default)]
pub(super) struct Files {
    tools: bool,
    protected: Vec<PathBuf>,
    #[cfg(unix)]
    shell: Option<ShellOptions>,
    #[cfg(feature = "session-files")]
    pub(super) sessions: Option<SessionFiles>,
}

impl HarnessBuilder {
    /// Sets whether agents get `read_file`, `write_file`, `edit_file`, `list_files`, `glob_files`
    /// and `grep_files`, confined to the workspace; not by default, and not without a workspace. A
    /// tool of the program with one of these names takes its place, with a warning. A tool result
    /// that is too long for a conversation is then stored as a file that its agent can read.
    pub fn with_file_tools(mut self, file_tools: bool) -> Self {
        self.files.tools = file_tools;
        self
    }

    /// Keeps the files of each session in a store that several processes share, so that a session
    /// finds them at whatever process continues it. Its agents then work below
    /// [`Layout::session`](mainstem_workspace::Layout::session), a directory of their own that is
    /// empty at first, and not in the workspace itself. See [`SessionFiles`].
    ///
    /// [`delete_session`](crate::Harness::delete_session) deletes them.
    #[cfg(feature = "session-files")]
    pub fn with_session_files(mut self, files: SessionFiles) -> Self {
        self.files.sessions = Some(files);
        self
    }

    /// Protects a file, or a directory with all below it, from file tools and commands where the
    /// workspace has it, besides what is [protected](Protection) in every workspace. A rule of
    /// [`with_permissions`](Self::with_permissions) that allows the path by name lifts it:
    /// `write_file(path: skills/**)` for that tool, `shell(path: .git/**)` for commands.
    pub fn with_protected(mut self, path: impl Into<PathBuf>) -> Self {
        self.files.protected.push(path.into());
        self
    }

    /// Gives agents the tool `shell`, which runs commands in the directory where the agent works.
    ///
    /// [`ShellOptions`] describes what commands may reach. Commands run under a guard, which is
    /// this program run once more: its `main` begins with [`mainstem_guard::init`], or
    /// [`ShellOptions::with_guard`] names another program.
    #[cfg(unix)]
    pub fn with_shell(mut self, options: ShellOptions) -> Self {
        self.files.shell = Some(options);
        self
    }
}

impl HarnessBuilder {
    /// Opens a workspace whose protected files agents can't write.
    pub(super) fn protected(&self, path: &Path) -> Result<Workspace, BuildError> {
        let rules = self.permissions.clone();
        let protection = Protection::new().with_exemption(move |tool, path| {
            let path = path.to_string_lossy().replace('\\', "/");
            rules.is_allowed_by_name(tool, &json!({ "path": path }))
        });
        let protection = self.permissions.open_paths("shell").fold(protection, Protection::with_open);
        let protection = self.files.protected.iter().fold(protection, Protection::with_path);
        Ok(Workspace::open(path)?.with_protection(protection))
    }

    /// Returns each agent's directory in the workspace of a scope.
    pub(super) fn places(
        &self,
        workspace: &Path,
        scope: &Scope,
        root: Option<&AgentSpec>,
    ) -> Result<Workspaces, BuildError> {
        let workspace = self.protected(workspace)?;
        #[cfg(feature = "session-files")]
        if let Some(files) = &scope.session_files {
            return Ok(places::of_sessions(workspace, root, files.clone()));
        }
        let _ = scope;
        Ok(places::workspaces(workspace, root)?)
    }

    /// Returns what deletes the files of a scope's sessions, if a store keeps them.
    pub(in crate::harness) fn files_beside(
        &self,
        scope: &Scope,
    ) -> Result<Option<Arc<dyn DeleteFiles>>, BuildError> {
        #[cfg(feature = "session-files")]
        if let (Some(path), Some(files)) = (&scope.workspace, &scope.session_files) {
            let (workspace, files) = (Workspace::open(path)?, files.clone());
            return Ok(Some(Arc::new(crate::StoredFiles::new(workspace, files))));
        }
        let _ = scope;
        Ok(None)
    }

    /// Adds the tools of the workspace to the program's; returns the names of those that were
    /// added, and of those that a tool of the program replaces. `root` is the root's declaration.
    pub(super) fn add_file_tools(
        &self,
        tools: &mut ToolSet,
        scope: &Scope,
        root: Option<&AgentSpec>,
    ) -> Result<(Vec<String>, Vec<String>), BuildError> {
        let files = &self.files;
        let Some(path) = &scope.workspace else {
            return if files.has_shell() { Err(BuildError::ShellNowhere) } else { Ok(Default::default()) };
        };
        #[cfg(unix)]
        files.shell.as_ref().map(ShellOptions::guard).transpose().map_err(BuildError::Unguarded)?;
        let (mut added, mut taken) = (Vec::new(), Vec::new());
        if !files.has_any() {
            return Ok((added, taken));
        }
        let workspaces = self.places(path, scope, root)?;
        for tool in files.wanted(&workspaces) {
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
}

impl Files {
    /// Returns `true` if agents get a tool that works in their directory.
    pub(super) fn has_any(&self) -> bool {
        self.tools || self.has_shell()
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
