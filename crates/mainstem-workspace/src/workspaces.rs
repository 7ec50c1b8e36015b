//! Finds the workspace of an agent.

use std::{fmt, sync::Arc};

use mainstem_tool::{Tool, ToolContext};

#[cfg(feature = "object-store")]
use crate::SessionFiles;
use crate::{Layout, Workspace, WorkspaceError, blocking, blocking::Stop, tools};

/// Finds the workspace of the calling agent, so that one set of tools serves many agents, each with
/// a directory of its own.
///
/// It is called at every tool call and stores nothing: opening a directory takes microseconds, and
/// a table of open ones would only grow.
///
/// ```
/// use mainstem_workspace::{Workspace, Workspaces};
///
/// # let (one, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
/// # let (one, other) = (one.path(), other.path());
/// let (reviewer, others) = (Workspace::open(one)?, Workspace::open(other)?);
/// let workspaces = Workspaces::new(move |cx| match cx.agent() {
///     "reviewer" => Ok(reviewer.clone()),
///     _ => Ok(others.clone()),
/// });
/// assert_eq!(workspaces.tools().len(), 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Workspaces {
    resolve: Arc<Resolve>,
    #[cfg(feature = "object-store")]
    stored: Option<(Workspace, SessionFiles)>,
}

type Resolve = dyn Fn(&ToolContext) -> Result<Workspace, WorkspaceError> + Send + Sync;

impl Workspaces {
    /// Creates a set whose workspaces a function finds, from the context of a call:
    /// [`agent`](ToolContext::agent), [`source`](ToolContext::source),
    /// [`session_id`](ToolContext::session_id), [`user`](ToolContext::user), and values that the
    /// embedding application attached. It may block; it runs off the async threads.
    pub fn new(
        resolve: impl Fn(&ToolContext) -> Result<Workspace, WorkspaceError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            resolve: Arc::new(resolve),
            #[cfg(feature = "object-store")]
            stored: None,
        }
    }

    /// Creates a set in which each session has a directory of its own below `root`, whose files a
    /// store keeps. A function finds the workspace of the calling agent in that of its session; it
    /// is called as in [`new`](Self::new).
    #[cfg(feature = "object-store")]
    pub fn of_sessions(
        root: Workspace,
        files: SessionFiles,
        resolve: impl Fn(&Workspace, &ToolContext) -> Result<Workspace, WorkspaceError> + Send + Sync + 'static,
    ) -> Self {
        let harness = root.clone();
        let resolve = move |cx: &ToolContext| {
            let session = Layout::new("").session(crate::session_files::session_of(cx).as_str());
            resolve(&harness.create_inside(session)?, cx)
        };
        Self { resolve: Arc::new(resolve), stored: Some((root, files)) }
    }

    /// Creates a set in which the root agent has `root`, and each instance of a child
    /// [`Layout::instance`] below it.
    pub fn isolated(root: Workspace) -> Self {
        Self::new(move |cx| match cx.source() {
            None => Ok(root.clone()),
            Some(source) => root.create_inside(Layout::new("").instance(
                &source.agent_id,
                cx.user(),
                source.parent_session_id.as_str(),
                source.session_id.as_str(),
            )),
        })
    }

    /// Returns the six file tools: see [`Workspace::tools`].
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        tools::files(self)
    }

    /// Returns the tool `shell`, which runs a command in the agent's workspace, with the default
    /// [`ShellOptions`](crate::ShellOptions).
    ///
    /// All processes of a command are killed when it ends, after its timeout, and when the run is
    /// cancelled or the call dropped. Needs a runtime with I/O and time, and a guard: see
    /// [`ShellOptions`](crate::ShellOptions).
    #[cfg(unix)]
    pub fn shell(&self) -> Arc<dyn Tool> {
        self.shell_with(crate::ShellOptions::default())
    }

    /// Returns the tool `shell` with these options.
    #[cfg(unix)]
    pub fn shell_with(&self, options: crate::ShellOptions) -> Arc<dyn Tool> {
        tools::shell(self, options)
    }

    /// Runs work that changes files, and stores them if a store keeps them.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        cx: &ToolContext,
        change: impl FnOnce(&Workspace, &Stop) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let changed = self.work(cx, change).await?;
        self.store_changes(cx).await?;
        Ok(changed)
    }

    /// Stores the files that have changed, if a store keeps them.
    #[cfg_attr(not(feature = "object-store"), expect(clippy::unused_async, reason = "there is no store"))]
    pub(crate) async fn store_changes(&self, cx: &ToolContext) -> Result<(), WorkspaceError> {
        #[cfg(feature = "object-store")]
        if let Some((root, files)) = &self.stored {
            return files.store_changes(cx, root).await;
        }
        let _ = cx;
        Ok(())
    }

    /// Runs work in the agent's workspace, off the async threads.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        cx: &ToolContext,
        work: impl FnOnce(&Workspace, &Stop) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        #[cfg(feature = "object-store")]
        if let Some((root, files)) = &self.stored {
            files.prepare(cx, root).await?;
        }
        let (this, run) = (self.clone(), cx.clone());
        blocking::blocking(cx, move |stop| {
            stop.check()?;
            work(&(this.resolve)(&run).map_err(unplaced)?, stop)
        })
        .await
    }
}

/// Removes the directory from an error for the model: only operators see it.
fn unplaced(error: WorkspaceError) -> WorkspaceError {
    match error {
        WorkspaceError::Root { source, .. } => {
            WorkspaceError::Refused(format!("the workspace can't be opened: {source}"))
        }
        error => error,
    }
}

impl From<Workspace> for Workspaces {
    /// Creates a set with one workspace for all agents.
    fn from(workspace: Workspace) -> Self {
        Self::new(move |_| Ok(workspace.clone()))
    }
}

impl fmt::Debug for Workspaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Workspaces")
    }
}

#[cfg(test)]
mod tests;
