//! Several directories of agent files, and of skills, the more important ones first.

use std::path::{Path, PathBuf};

use crate::{FindingKind, Origin, SkillSet, SpecError, SpecSet, Watch, load, skills};

/// Where agent files and skills are looked for, and whose counts where two have one name.
///
/// A file of an earlier directory counts, with a warning that names both. If it can't be read, or
/// switches its agent off, no later one steps into its place: that is said, too.
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
    skills: Vec<PathBuf>,
    workspaces: Vec<PathBuf>,
}

/// Where other products keep their agents.
const OTHER_PRODUCTS: [&str; 4] = [".claude/agents", ".opencode/agent", ".opencode/agents", ".github/agents"];

impl Sources {
    /// No directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The directories `subagents` and `skills` of a workspace.
    #[must_use]
    pub fn of_workspace(workspace: &Path) -> Self {
        Self::new().with_workspace(workspace)
    }

    /// Adds the directories `subagents` and `skills` of a workspace, less important than those
    /// before. Agents work in the first one, so that only the files of its skills are named.
    #[must_use]
    pub fn with_workspace(mut self, workspace: &Path) -> Self {
        self.workspaces.push(workspace.to_owned());
        self.skills.push(workspace.join("skills"));
        self.with_dir(workspace.join("subagents"))
    }

    /// Adds a directory of agent files, less important than those before.
    #[must_use]
    pub fn with_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dirs.push(dir.into());
        self
    }

    /// Adds the directories in which Claude Code, OpenCode and Copilot look for agents in a
    /// workspace, in this order.
    #[must_use]
    pub fn with_other_products_of(self, workspace: &Path) -> Self {
        OTHER_PRODUCTS.iter().fold(self, |sources, dir| sources.with_dir(workspace.join(dir)))
    }

    /// The directories of agent files, the most important one first.
    #[must_use]
    pub fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }

    /// The workspaces, the most important one first: what [`load_prompts`](crate::load_prompts)
    /// wants to know.
    #[must_use]
    pub fn workspaces(&self) -> &[PathBuf] {
        &self.workspaces
    }

    /// Reads every directory of agent files as [`load_dir`](crate::load_dir) does; what is found is
    /// in the order of the directories.
    ///
    /// Blocks on the file system.
    #[must_use]
    pub fn load(&self) -> (SpecSet, Vec<SpecError>) {
        self.reload(&SpecSet::new())
    }

    /// The same, but an agent of `last` whose file has errors now stays as it was, and that is
    /// said. What is gone or switched off goes.
    ///
    /// Blocks on the file system.
    #[must_use]
    pub fn reload(&self, last: &SpecSet) -> (SpecSet, Vec<SpecError>) {
        let (mut specs, mut errors) = (SpecSet::new(), Vec::new());
        for dir in self.dirs.iter().rev() {
            let mut found = load::directory(dir);
            found.keep(dir, last);
            let mut said = found.errors;
            for (id, path) in found.broken.iter().chain(&found.disabled) {
                let lesser = specs.remove(id);
                said.extend(lesser.map(|it| supplanted(&format!("agent {id:?}"), &it.origin, path)));
            }
            said.extend(specs.merge(found.specs));
            errors.splice(0..0, said);
        }
        (specs, errors)
    }

    /// Reads every directory of skills as [`load_skills`](crate::load_skills) does, with the same
    /// precedence.
    ///
    /// Blocks on the file system.
    #[must_use]
    pub fn load_skills(&self) -> (SkillSet, Vec<SpecError>) {
        self.reload_skills(&SkillSet::new())
    }

    /// The same, but a skill of `last` whose file has errors now stays as it was, and that is said.
    ///
    /// Blocks on the file system.
    #[must_use]
    pub fn reload_skills(&self, last: &SkillSet) -> (SkillSet, Vec<SpecError>) {
        let (mut all, mut errors) = (SkillSet::new(), Vec::new());
        for dir in self.skills.iter().rev() {
            let mut found = skills::folders(dir);
            if self.skills.first() != Some(dir) {
                found.skills.forget_files();
            }
            found.keep(dir, last);
            let mut said = found.errors;
            for (name, path) in &found.broken {
                let lesser = all.remove(name);
                said.extend(lesser.map(|it| supplanted(&format!("skill {name:?}"), &it.origin, path)));
            }
            said.extend(all.merge(found.skills));
            errors.splice(0..0, said);
        }
        (all, errors)
    }

    /// A watch over the directories as they are now.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch::new(&self.dirs).with_skills(&self.skills)
    }

    /// Has a watch look at the prompts, too, that these specs have from elsewhere. Blocks on the
    /// file system.
    pub fn watch_prompts(&self, watch: &mut Watch, specs: &SpecSet) {
        watch.look_at(load::prompt_files(specs, &self.workspaces));
    }
}

fn supplanted(what: &str, lesser: &Origin, path: &Path) -> SpecError {
    let why = "comes first, and has errors or is switched off";
    let message = format!("{what} is left out with {lesser}: this file {why}");
    SpecError::warning(message).of_kind(FindingKind::Superseded).in_file(path)
}

#[cfg(test)]
mod tests;
