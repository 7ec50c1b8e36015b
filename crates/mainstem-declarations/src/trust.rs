//! Which parts of a workspace's files are in effect.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use mainstem_policy::Part;
use mainstem_spec::{AgentSpec, Origin};
use mainstem_subagent::trust::parts;

/// Decides about the parts of a workspace's files that need trust. By default none is trusted.
#[derive(Clone)]
pub struct Trust(Arc<IsTrusted>);

type IsTrusted = dyn Fn(&Path, &Part) -> bool + Send + Sync;

impl Default for Trust {
    fn default() -> Self {
        Self::new(|_, _| false)
    }
}

impl Trust {
    /// Trusts the parts for which the function returns `true`. The function is called whenever
    /// files are read, with the workspace to which the file belongs.
    pub fn new(is_trusted: impl Fn(&Path, &Part) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_trusted))
    }

    /// The parts of an agent's file that are not trusted; `workspaces` as in
    /// [`Sources::workspaces`](mainstem_spec::Sources::workspaces).
    #[must_use]
    pub fn untrusted(&self, spec: &AgentSpec, workspaces: &[PathBuf]) -> Vec<Part> {
        let Origin::File(path) = &spec.origin else { return Vec::new() };
        let workspace = workspaces.iter().find(|workspace| path.starts_with(workspace));
        let workspace = workspace.map_or_else(|| Path::new(""), PathBuf::as_path);
        let mut parts = parts(spec, workspace);
        parts.retain(|part| !(self.0)(workspace, part));
        parts
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
