//! Which parts of the workspace's files are trusted.

use std::path::Path;

use mainstem_declarations::Trust;
use mainstem_policy::Part;

use super::HarnessBuilder;

impl HarnessBuilder {
    /// Decides which parts of agents' files are in effect of those that need trust: what starts a
    /// process, reads an environment variable or sends something to an address (see
    /// [`parts`](crate::subagent::trust::parts)). The function is given the workspace to which the
    /// file belongs and the part, whenever files are read, so that a file that is changed by then
    /// is not trusted because it once was.
    ///
    /// Without it, none of these parts is in effect, and
    /// [`Harness::diagnostics`](crate::Harness::diagnostics) lists them. Specs declared in code
    /// need no trust.
    ///
    /// ```
    /// use mainstem::prelude::*;
    ///
    /// // The parts that the operator has read.
    /// let trusted = ["6f2c…"];
    /// let harness = Harness::builder("main", ScriptedModel::new())
    ///     .with_trust(move |_workspace, part| trusted.contains(&&*part.hash()))
    ///     .build()?;
    /// # Ok::<(), mainstem::BuildError>(())
    /// ```
    pub fn with_trust(mut self, is_trusted: impl Fn(&Path, &Part) -> bool + Send + Sync + 'static) -> Self {
        self.trust = Trust::new(is_trusted);
        self
    }
}
