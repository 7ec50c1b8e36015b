//! Several directories of agent files, the more important ones first.

use std::path::{Path, PathBuf};

use crate::{SpecError, SpecSet, Watch, load};

/// Where agent files are looked for, and whose agent counts where two have one id.
///
/// A file of an earlier directory counts, with a warning that names both. If it can't be read, or switches its agent off, no later
/// one steps into its place: that is said, too.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// use mainstem_spec::Sources;
///
/// std::fs::create_dir_all(workspace.join(".claude/agents"))?;
/// std::fs::write(workspace.join(".claude/agents/critic.md"), "---\ndescription: Criticises\n---\n")?;
///
/// let sources = Sources::of_workspace(workspace);
/// assert!(sources.load().0.is_empty());
/// let (specs, _) = sources.with_other_products_of(workspace).load();
/// assert!(specs.get("critic").is_some());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    dirs: Vec<PathBuf>,
}

/// Where other products keep their agents.
const OTHER_PRODUCTS: [&str; 4] = [".claude/agents", ".opencode/agent", ".opencode/agents", ".github/agents"];

impl Sources {
    /// No directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The directory `subagents` of a workspace.
    #[must_use]
    pub fn of_workspace(workspace: &Path) -> Self {
        Self::new().with_dir(workspace.join("subagents"))
    }

    /// Adds a directory, less important than those before.
    #[must_use]
    pub fn with_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dirs.push(dir.into());
        self
    }

    /// Adds the directories in which Claude Code, OpenCode and Copilot look in a workspace, in this order.
    #[must_use]
    pub fn with_other_products_of(self, workspace: &Path) -> Self {
        OTHER_PRODUCTS.iter().fold(self, |sources, dir| sources.with_dir(workspace.join(dir)))
    }

    /// The directories, the most important one first.
    #[must_use]
    pub fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }

    /// Reads every directory as [`load_dir`](crate::load_dir) does; what is found is in the order of the directories.
    ///
    /// Blocks on the file system.
    #[must_use]
    pub fn load(&self) -> (SpecSet, Vec<SpecError>) {
        let (mut specs, mut errors) = (SpecSet::new(), Vec::new());
        for dir in self.dirs.iter().rev() {
            let found = load::directory(dir);
            let mut said = found.errors;
            for (id, path) in &found.left_out {
                said.extend(specs.remove(id).map(|lesser| supplanted(&lesser, path)));
            }
            said.extend(specs.merge(found.specs));
            errors.splice(0..0, said);
        }
        (specs, errors)
    }

    /// A watch over the directories as they are now.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch::new(&self.dirs)
    }
}

fn supplanted(lesser: &crate::AgentSpec, path: &Path) -> SpecError {
    let (id, origin) = (&lesser.id, &lesser.origin);
    let why = "comes first, and has errors or is switched off";
    SpecError::warning(format!("agent {id:?} is left out with {origin}: this file {why}")).in_file(path)
}

#[cfg(test)]
mod tests;
