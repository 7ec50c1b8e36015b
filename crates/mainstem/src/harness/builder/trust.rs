//! Which parts of the workspace's files count that need trust.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use mainstem_policy::Part;
use mainstem_spec::{AgentSpec, Origin, SpecError, SpecSet, locate};
use mainstem_subagent::trust::{ADDRESS, parts};

use super::{HarnessBuilder, Scope};

/// Decides about a part of a workspace's files.
#[derive(Clone)]
pub(super) struct Trust(Arc<IsTrusted>);

type IsTrusted = dyn Fn(&Path, &Part) -> bool + Send + Sync;

impl Default for Trust {
    /// Trusts nothing.
    fn default() -> Self {
        Self(Arc::new(|_, _| false))
    }
}

impl HarnessBuilder {
    /// Decides which parts of agents' files are in effect of those that need trust: what starts a
    /// process, reads an environment variable or sends something to an address (see
    /// [`parts`](crate::subagent::trust::parts)). The function is given the workspace to which the
    /// file belongs and the part, whenever files are read, so that a file that is changed by then
    /// is not trusted because it once was.
    ///
    /// Without it, none of these parts is in effect, and
    /// [`Harness::warnings`](crate::Harness::warnings) lists them. Specs declared in code need no
    /// trust.
    ///
    /// ```
    /// use mainstem::prelude::*;
    ///
    /// // What the operator has looked at.
    /// let trusted = ["6f2c…"];
    /// let harness = Harness::builder("main", ScriptedModel::new()).trust(move |_workspace, part| trusted.contains(&&*part.hash())).build()?;
    /// # Ok::<(), mainstem::BuildError>(())
    /// ```
    pub fn trust(mut self, is_trusted: impl Fn(&Path, &Part) -> bool + Send + Sync + 'static) -> Self {
        self.trust = Trust(Arc::new(is_trusted));
        self
    }

    /// The specs without remote agents whose address is not trusted, and which these are.
    pub(super) fn without_untrusted_addresses(
        &self,
        scope: &Scope,
        specs: &SpecSet,
    ) -> (SpecSet, Vec<SpecError>) {
        let (mut kept, mut said) = (specs.clone(), Vec::new());
        for spec in specs.iter() {
            if let Some(part) = self.untrusted(scope, spec).iter().find(|part| part.key() == ADDRESS) {
                kept.remove(&spec.id);
                let why = format!("agent {:?} is left out until it is trusted ({part})", spec.id);
                said.push(locate(SpecError::error(why).about("url"), spec, None));
            }
        }
        (kept, said)
    }

    /// The parts of an agent's file that are not trusted.
    pub(super) fn untrusted(&self, scope: &Scope, spec: &AgentSpec) -> Vec<Part> {
        let Origin::File(path) = &spec.origin else { return Vec::new() };
        let mut workspaces = scope.sources.workspaces().iter();
        let workspace = workspaces.find(|workspace| path.starts_with(workspace));
        let workspace = workspace.map_or_else(|| Path::new(""), PathBuf::as_path);
        let mut parts = parts(spec, workspace);
        parts.retain(|part| !(self.trust.0)(workspace, part));
        parts
    }
}
