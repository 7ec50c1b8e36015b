//! Which parts of a workspace's files are in effect.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use mainstem_policy::Part;
use mainstem_spec::{AgentSpec, Origin, SpecError, SpecSet, locate};
use mainstem_subagent::trust::{ADDRESS, SERVER_TOOLS, parts};

use crate::{Code, Diagnostic};

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

    /// Returns the specs without remote agents whose address is not trusted, and without tools of
    /// vendors that are not; with a diagnostic for each.
    ///
    /// Reads files again for the places; blocks on the file system.
    #[must_use]
    pub fn without_untrusted(&self, specs: &SpecSet, workspaces: &[PathBuf]) -> (SpecSet, Vec<Diagnostic>) {
        let (mut trusted, mut found) = (specs.clone(), Vec::new());
        for spec in specs.iter() {
            let untrusted = self.untrusted(spec, workspaces);
            if let Some(part) = untrusted.iter().find(|part| part.key() == ADDRESS) {
                trusted.remove(&spec.id);
                let why = format!("agent {:?} is left out until it is trusted ({part})", spec.id);
                let finding = locate(SpecError::error(why).about("url"), spec, None);
                found.push(Diagnostic::new(Code::Untrusted, finding));
            } else if let Some(part) = untrusted.iter().find(|part| part.key() == SERVER_TOOLS) {
                let mut without = spec.clone();
                without.server_tools = Some(Vec::new());
                trusted.insert(without);
                let why = format!("agent {:?} has no server tools until they are trusted ({part})", spec.id);
                let finding = locate(SpecError::warning(why).about("server_tools"), spec, None);
                found.push(Diagnostic::new(Code::Untrusted, finding));
            }
        }
        (trusted, found)
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
