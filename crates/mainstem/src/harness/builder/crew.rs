//! From what is declared, in files and in code, to those who work in a run.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use mainstem_react::Agent;
use mainstem_spec::{AgentSpec, Origin, SkillSet, Sources, SpecError, SpecSet, Watch, load_prompts};
use mainstem_subagent::{AgentFactory, Catalog, CatalogEntry, CatalogError, Crew, rules};
use mainstem_tool::{Artifacts, ToolSet};

#[cfg(feature = "files")]
use super::places;
use super::{HarnessBuilder, servers::Servers};
use crate::BuildError;

/// Where a harness works and what it reads.
pub(in crate::harness) struct Scope {
    pub(in crate::harness) workspace: Option<PathBuf>,
    pub(in crate::harness) sources: Sources,
    /// What the tools of servers come from, once for all who work here.
    pub(in crate::harness) servers: Servers,
    tenant: Option<String>,
}

/// Agents and skills.
#[derive(Default)]
pub(in crate::harness) struct Declared {
    specs: SpecSet,
    /// The specs without the texts that directories add to their prompts.
    written: SpecSet,
    skills: SkillSet,
}

impl Declared {
    pub(super) fn specs(&self) -> &SpecSet {
        &self.specs
    }

    pub(super) fn skills(&self) -> &SkillSet {
        &self.skills
    }
}

impl HarnessBuilder {
    /// The scope of a tenant, or that of the harness itself.
    pub(in crate::harness) fn scope(&self, tenant: Option<&str>) -> Result<Scope, BuildError> {
        let tenant = tenant.map(str::to_owned);
        let servers = self.servers.connect()?;
        let Some(base) = &self.workspace else {
            return Ok(Scope { workspace: None, sources: Sources::new(), servers, tenant });
        };
        let (base, mut sources) = (existing(base)?, Sources::new());
        let mut workspace = base.clone();
        if let Some(tenant) = &tenant {
            workspace = base.join("tenants").join(tenant);
            // Whatever goes wrong: it is no directory then.
            fs::create_dir_all(&workspace).ok();
            sources = self.read_from(sources, &existing(&workspace)?);
        }
        let sources = self.read_from(sources, &base);
        Ok(Scope { workspace: Some(workspace), sources, servers, tenant })
    }

    fn read_from(&self, sources: Sources, workspace: &Path) -> Sources {
        let sources = sources.with_workspace(workspace);
        if self.foreign_agents { sources.with_other_products_of(workspace) } else { sources }
    }

    /// Reads what is declared, and says what is wrong with it; a file that has errors now stays as
    /// it was in `last`. The watch looks at what was read besides the directories, too.
    pub(in crate::harness) fn declared(
        &self,
        scope: &Scope,
        watch: &mut Watch,
        last: &Declared,
    ) -> Result<(Declared, Vec<SpecError>), BuildError> {
        let (mut specs, mut said) = scope.sources.reload(&last.written);
        for spec in self.specs_of(scope) {
            spec.validate().map_err(|errors| BuildError::Spec { id: spec.id.clone(), errors })?;
            said.extend(specs.insert(spec.clone()));
        }
        scope.sources.watch_prompts(watch, &specs);
        let written = specs.clone();
        said.extend(load_prompts(&mut specs, scope.sources.workspaces()));
        let (mut skills, about_skills) = scope.sources.reload_skills(&last.skills);
        said.extend(about_skills);
        for skill in &self.skills {
            skill.validate().map_err(|errors| BuildError::Skill { name: skill.name.clone(), errors })?;
            said.extend(skills.insert(skill.clone()));
        }
        Ok((Declared { specs, written, skills }, said))
    }

    /// The agents that code declares for a scope.
    fn specs_of(&self, scope: &Scope) -> impl Iterator<Item = &AgentSpec> {
        let own = scope.tenant.as_ref().and_then(|tenant| self.tenants.get(tenant));
        self.specs.iter().chain(own.into_iter().flatten())
    }

    /// Builds the crew of a run, and returns the problems of what is left out; agents from files
    /// with problems stay as they were in `last`. The root is the harness's own agent, unless
    /// another is chosen.
    pub(in crate::harness) fn crew(
        &self,
        scope: &Scope,
        declared: &Declared,
        last: Option<&Crew>,
        chosen: Option<&AgentSpec>,
    ) -> Result<(Crew, Vec<SpecError>), BuildError> {
        let Declared { specs, skills, .. } = declared;
        let (specs, left_out) = self.without_untrusted_addresses(scope, specs);
        let specs = &specs;
        let spec = chosen.or_else(|| specs.get(&self.name));
        let root = spec.cloned().unwrap_or_else(|| AgentSpec::new(&*self.name, "the root"));
        let mut skills = skills.clone();
        skills.retain(|skill| root.skills.as_ref().is_none_or(|list| list.contains(&skill.name)));
        let (mut factory, taken) = self.factory(scope, spec, &skills)?;
        let (offers, mut about_servers) = scope.servers.renew(specs, |spec| self.untrusted(scope, spec));
        factory.servers = offers;
        let (mut catalog, problems) = factory.catalog(specs);
        let mut said = self.said_of(scope, problems, specs, last, &mut catalog)?;
        said.append(&mut about_servers);
        said.extend(left_out);
        said.extend(taken.iter().map(|tool| {
            SpecError::warning(format!("the program has a tool {tool:?}, so the workspace's is not used"))
        }));
        let prompt = self.system_prompt.clone().filter(|_| chosen.is_none());
        let agent = self.root(&factory, &root, prompt)?;
        let rules = self
            .permissions
            .narrowed_by(&self.workspace_permissions)
            .narrowed_by(&rules(&root).map_err(BuildError::Agent)?);
        let crew = Crew::new(agent).with_catalog(catalog).with_rules(rules).with_skills(skills);
        let crew = crew.with_artifacts(self.artifacts(scope, spec)?).with_factory(Arc::new(factory));
        Ok((crew, said))
    }

    /// Returns the findings about agents; an agent whose file can't be built stays as it was in
    /// `last`.
    fn said_of(
        &self,
        scope: &Scope,
        problems: Vec<CatalogError>,
        specs: &SpecSet,
        last: Option<&Crew>,
        catalog: &mut Catalog,
    ) -> Result<Vec<SpecError>, BuildError> {
        let mut said = Vec::new();
        for problem in problems {
            if self.is_fatal(scope, &problem) {
                return Err(BuildError::Agent(problem));
            }
            said.push(problem.finding(specs));
            let spec = specs.get(problem.agent_id()).filter(|_| !problem.is_warning());
            if let Some(entry) = former(spec, last) {
                let stays = format!("agent {:?} stays in effect as it was before", entry.spec.id);
                said.push(SpecError::warning(stays));
                catalog.keep(entry.clone());
            }
        }
        Ok(said)
    }

    pub(super) fn factory(
        &self,
        scope: &Scope,
        root: Option<&AgentSpec>,
        skills: &SkillSet,
    ) -> Result<(AgentFactory, Vec<String>), BuildError> {
        let mut tools = ToolSet::new();
        for tool in &self.tools {
            tools.insert(tool.clone())?;
        }
        let (file_tools, mut taken) = self.furnish(&mut tools, scope, root)?;
        if !skills.is_empty() && tools.get("load_skill").is_some() {
            taken.push("load_skill".to_owned());
        }
        let mut factory = AgentFactory::new(self.model.clone());
        factory.registry = self.registry.clone();
        factory.tools = tools;
        factory.has_workspace = scope.workspace.is_some();
        factory.file_tools = file_tools;
        factory.options = self.options.clone();
        factory.middleware.clone_from(&self.middleware);
        factory.plan_tools = self.plan_tools;
        if self.generate {
            factory.generate_in = Some(scope.workspace.clone().ok_or(BuildError::GenerateNowhere)?);
        }
        factory.skills = skills.iter().map(|skill| skill.name.clone()).collect();
        Ok((factory, taken))
    }

    /// Beside the files that each agent works with, if agents have tools to read them.
    #[cfg(feature = "files")]
    fn artifacts(
        &self,
        scope: &Scope,
        root: Option<&AgentSpec>,
    ) -> Result<Option<Arc<dyn Artifacts>>, BuildError> {
        let workspace = scope.workspace.as_ref().filter(|_| self.files.has_any());
        let Some(workspace) = workspace else { return Ok(None) };
        let workspaces = places::workspaces(self.protected(workspace)?, root)?;
        Ok(Some(Arc::new(workspaces)))
    }

    #[cfg(not(feature = "files"))]
    fn artifacts(&self, _: &Scope, _: Option<&AgentSpec>) -> Result<Option<Arc<dyn Artifacts>>, BuildError> {
        Ok(None)
    }

    /// Adds the tools of the workspace; returns the names of what was added, and those that were
    /// taken.
    #[cfg(feature = "files")]
    fn furnish(
        &self,
        tools: &mut ToolSet,
        scope: &Scope,
        root: Option<&AgentSpec>,
    ) -> Result<(Vec<String>, Vec<String>), BuildError> {
        self.furnish_from(tools, scope.workspace.as_deref(), root)
    }

    #[cfg(not(feature = "files"))]
    fn furnish(
        &self,
        _: &mut ToolSet,
        _: &Scope,
        _: Option<&AgentSpec>,
    ) -> Result<(Vec<String>, Vec<String>), BuildError> {
        Ok(Default::default())
    }

    /// Whether it is the program's mistake. What it lists of skills may come and go with their
    /// folders.
    fn is_fatal(&self, scope: &Scope, problem: &CatalogError) -> bool {
        let is_passing = matches!(problem, CatalogError::UnknownSkill { .. });
        !is_passing && self.specs_of(scope).any(|spec| spec.id == problem.agent_id())
    }

    fn root(
        &self,
        factory: &AgentFactory,
        spec: &AgentSpec,
        prompt: Option<Arc<str>>,
    ) -> Result<Agent, BuildError> {
        let mut agent = factory.root(spec, self.limits).map_err(BuildError::Agent)?;
        if let Some(prompt) = prompt {
            agent = agent.system_prompt(prompt);
        }
        if let Some(most) = self.max_iterations {
            agent = agent.max_iterations(most);
        }
        Ok(agent.build()?)
    }
}

/// What the file of a spec declared before.
fn former<'a>(spec: Option<&AgentSpec>, last: Option<&'a Crew>) -> Option<&'a CatalogEntry> {
    let spec = spec.filter(|spec| matches!(spec.origin, Origin::File(_)))?;
    last?.catalog.get(&spec.id).filter(|entry| entry.spec.origin == spec.origin)
}

fn existing(path: &Path) -> Result<PathBuf, BuildError> {
    if path.is_dir() { Ok(path.to_owned()) } else { Err(BuildError::Workspace { path: path.to_owned() }) }
}
