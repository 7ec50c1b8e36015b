//! Reading what is declared. The only place that reads files, besides the places of diagnostics.

use mainstem_spec::{AgentSpec, Skill, SkillSet, Sources, SpecError, SpecSet, Watch, load_prompts};
use mainstem_subagent::CatalogError;

use crate::Diagnostic;

/// What declarations are read from: directories, and values of the program.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    sources: Sources,
    specs: Vec<AgentSpec>,
    skills: Vec<Skill>,
}

/// Agents and skills, as they were last read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declarations {
    specs: SpecSet,
    /// The specs without the texts that directories add to their prompts.
    written: SpecSet,
    skills: SkillSet,
}

/// A mistake in what the program itself declares. Files never cause one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeclarationError {
    /// A spec contradicts itself.
    #[error("agent {id:?}: {}", joined(errors))]
    #[non_exhaustive]
    Spec {
        /// The agent.
        id: String,
        /// What contradicts what.
        errors: Vec<SpecError>,
    },
    /// A skill is invalid.
    #[error("skill {name:?}: {}", joined(errors))]
    #[non_exhaustive]
    Skill {
        /// The skill.
        name: String,
        /// Why.
        errors: Vec<SpecError>,
    },
    /// An agent can't be built.
    #[error(transparent)]
    Agent(#[from] CatalogError),
}

impl Inputs {
    /// The files of these directories.
    #[must_use]
    pub fn new(sources: Sources) -> Self {
        Self { sources, ..Self::default() }
    }

    /// Adds agents of the program, which replace files of the same id.
    #[must_use]
    pub fn with_specs(mut self, specs: impl IntoIterator<Item = AgentSpec>) -> Self {
        self.specs.extend(specs);
        self
    }

    /// Adds skills of the program, which replace folders of the same name.
    #[must_use]
    pub fn with_skills(mut self, skills: impl IntoIterator<Item = Skill>) -> Self {
        self.skills.extend(skills);
        self
    }

    /// The directories.
    #[must_use]
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Returns `true` if the program declares an agent of this id.
    #[must_use]
    pub fn has_in_code(&self, id: &str) -> bool {
        self.specs.iter().any(|spec| spec.id == id)
    }

    /// Returns `true` if all declarations are in code: no file can change them.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.sources.dirs().is_empty()
    }

    /// Returns a watch over the directories in their present state. Blocks on the file system.
    #[must_use]
    pub fn watch(&self) -> Watch {
        self.sources.watch()
    }

    /// Reads the declarations; a file that has errors now stays as it was in `last`, with a
    /// diagnostic.
    ///
    /// Blocks on the file system.
    ///
    /// # Errors
    /// A declaration of the program is invalid.
    pub fn read(&self, last: &Declarations) -> Result<(Declarations, Vec<Diagnostic>), DeclarationError> {
        self.read_after(last, |_| {})
    }

    /// Reads as [`read`](Self::read) does, and has `watch` look at the files that the specs take
    /// prompts from. It looks before they are read, so that it sees a change meanwhile.
    pub(crate) fn read_and_watch(
        &self,
        watch: &mut Watch,
        last: &Declarations,
    ) -> Result<(Declarations, Vec<Diagnostic>), DeclarationError> {
        self.read_after(last, |specs| self.sources.watch_prompts(watch, specs))
    }

    fn read_after(
        &self,
        last: &Declarations,
        before_prompts: impl FnOnce(&SpecSet),
    ) -> Result<(Declarations, Vec<Diagnostic>), DeclarationError> {
        let (mut specs, mut found) = self.sources.reload(&last.written);
        for spec in &self.specs {
            spec.validate().map_err(|errors| DeclarationError::Spec { id: spec.id.clone(), errors })?;
            found.extend(specs.insert(spec.clone()));
        }
        before_prompts(&specs);
        let written = specs.clone();
        found.extend(load_prompts(&mut specs, self.sources.workspaces()));
        let (mut skills, about_skills) = self.sources.reload_skills(&last.skills);
        found.extend(about_skills);
        for skill in &self.skills {
            let name = skill.name.clone();
            skill.validate().map_err(|errors| DeclarationError::Skill { name, errors })?;
            found.extend(skills.insert(skill.clone()));
        }
        let found = found.into_iter().map(Diagnostic::from).collect();
        Ok((Declarations { specs, written, skills }, found))
    }
}

impl Declarations {
    /// The agents.
    #[must_use]
    pub fn specs(&self) -> &SpecSet {
        &self.specs
    }

    /// The skills.
    #[must_use]
    pub fn skills(&self) -> &SkillSet {
        &self.skills
    }

    /// Replaces the agents of the same ids with these, and adds the others.
    #[must_use]
    pub fn with_agents(mut self, agents: &SpecSet) -> Self {
        for agent in agents.iter() {
            self.specs.remove(&agent.id);
            self.specs.insert(agent.clone());
        }
        self
    }
}

fn joined(errors: &[SpecError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
