//! Several directories of agents' files and of skills, the ones that win first.

use std::path::{Path, PathBuf};

use crate::{FindingKind, Origin, SkillSet, SpecError, SpecSet, Watch, load, skills};

/// The directories of agents' files and skills, the one that wins first.
///
/// Of two files of one name, that of the earlier directory wins, with a warning that names both. If
/// it can't be read, or disables its agent, no later one replaces it, and a warning says so.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// use mainstem_spec::Sources;
///
/// std::fs::create_dir_all(workspace.join(".claude/agents"))?;
/// let text = "---\ndescription: Criticises\n---\n";
/// std::fs::write(workspace.join(".claude/agents/critic.md"), text)?;
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
const OTHER_PRODUCTS: [&str; 9] = [
    ".claude/agents",
    ".opencode/agent",
    ".opencode/agents",
    ".github/agents",
    ".gemini/agents",
    ".cursor/agents",
    ".codex/agents",
    ".goose/agents",
    ".agents/agents",
];

impl Sources {
    /// Creates an empty list of directories.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the directories `subagents` and `skills` of a workspace.
    #[must_use]
    pub fn of_workspace(workspace: &Path) -> Self {
        Self::new().with_workspace(workspace)
    }

    /// Adds the directories `subagents` and `skills` of a workspace, after those before. Agents
    /// work in the first one, so only the files of its skills are named.
    #[must_use]
    pub fn with_workspace(mut self, workspace: &Path) -> Self {
        self.workspaces.push(workspace.to_owned());
        self.skills.push(workspace.join("skills"));
        self.with_dir(workspace.join("subagents"))
    }

    /// Adds a directory of agents' files, after those before.
    #[must_use]
    pub fn with_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dirs.push(dir.into());
        self
    }

    /// Adds the directories in which Claude Code, OpenCode, Copilot, Gemini CLI, Cursor, Codex and
    /// goose look for agents in a workspace, in this order.
    #[must_use]
    pub fn with_other_products_of(self, workspace: &Path) -> Self {
        OTHER_PRODUCTS.iter().fold(self, |sources, dir| sources.with_dir(workspace.join(dir)))
    }

    /// Returns the directories of agents' files, the one that wins first.
    #[must_use]
    pub fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }

    /// Returns the workspaces, the one that wins first, for [`load_prompts`](crate::load_prompts).
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

    /// Reads as [`load`](Self::load) does, but an agent of `last` whose file has errors now stays
    /// as it was, with a warning. Agents whose files are removed or disabled are left out.
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

    /// Reads as [`load_skills`](Self::load_skills) does, but a skill of `last` whose file has
    /// errors now stays as it was, with a warning.
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

    /// Returns a watch over the directories in their present state.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch::new(&self.dirs).with_skills(&self.skills)
    }

    /// Adds to a watch the prompts that these specs have from other files. Blocks on the file
    /// system.
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
