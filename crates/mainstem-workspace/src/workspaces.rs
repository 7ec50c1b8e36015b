//! Finds the workspace of an agent.

use std::{fmt, sync::Arc};

use mainstem_tool::{Tool, ToolContext};

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
pub struct Workspaces(Arc<Resolve>);

type Resolve = dyn Fn(&ToolContext) -> Result<Workspace, WorkspaceError> + Send + Sync;

impl Workspaces {
    /// Creates a set whose workspaces a function finds, from the context of a call:
    /// [`agent`](ToolContext::agent), [`source`](ToolContext::source),
    /// [`session_id`](ToolContext::session_id), [`user`](ToolContext::user), and values that the
    /// embedding application attached. It may block; it runs off the async threads.
    pub fn new(
        resolve: impl Fn(&ToolContext) -> Result<Workspace, WorkspaceError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(resolve))
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

    /// Runs work in the agent's workspace, off the async threads.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        cx: &ToolContext,
        work: impl FnOnce(&Workspace, &Stop) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let (this, run) = (self.clone(), cx.clone());
        blocking::blocking(cx, move |stop| {
            stop.check()?;
            work(&(this.0)(&run).map_err(unplaced)?, stop)
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
