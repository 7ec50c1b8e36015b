//! Builds the agents of a run from the declarations.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use mainstem_declarations::{Code, Declarations, Diagnostic, Inputs, settle};
use mainstem_policy::{Rule, RuleSet};
use mainstem_react::Agent;
use mainstem_session::RunAgents;
use mainstem_spec::{AgentSpec, SkillSet, Sources};
use mainstem_subagent::{AgentFactory, CatalogError, Misspelt, rules};
use mainstem_tool::{Artifacts, ToolSet};

use super::{HarnessBuilder, servers::Servers};
use crate::BuildError;

/// The directory of a harness or a tenant, and its agents.
pub(in crate::harness) struct Scope {
    pub(in crate::harness) workspace: Option<PathBuf>,
    pub(in crate::harness) inputs: Inputs,
    /// The MCP servers, one set for all agents of the scope.
    pub(in crate::harness) servers: Servers,
    /// The store of the files of its sessions.
    #[cfg(feature = "session-files")]
    pub(in crate::harness) session_files: Option<mainstem_workspace::SessionFiles>,
}

impl HarnessBuilder {
    /// Returns the scope of a tenant, or that of the harness itself.
    pub(in crate::harness) fn scope(&self, tenant: Option<&str>) -> Result<Scope, BuildError> {
        let (workspace, sources) = self.workspace_of(tenant)?;
        let own = tenant.and_then(|tenant| self.tenants.get(tenant)).into_iter().flatten();
        let specs = self.specs.iter().chain(own).cloned();
        let inputs = Inputs::new(sources).with_specs(specs).with_skills(self.skills.clone());
        Ok(Scope {
            workspace,
            inputs,
            servers: self.servers.connect(self)?,
            #[cfg(feature = "session-files")]
            session_files: self.files.sessions.as_ref().map(|files| match tenant {
                Some(tenant) => files.of_tenant(tenant),
                None => files.clone(),
            }),
        })
    }

    fn workspace_of(&self, tenant: Option<&str>) -> Result<(Option<PathBuf>, Sources), BuildError> {
        let Some(base) = &self.workspace else { return Ok((None, Sources::new())) };
        let (base, mut sources) = (existing(base)?, Sources::new());
        let mut workspace = base.clone();
        if let Some(tenant) = tenant {
            workspace = base.join("tenants").join(tenant);
            // If this fails, the path is not a directory.
            fs::create_dir_all(&workspace).ok();
            sources = self.read_from(sources, &existing(&workspace)?);
        }
        Ok((Some(workspace), self.read_from(sources, &base)))
    }

    fn read_from(&self, sources: Sources, workspace: &Path) -> Sources {
        let sources = sources.with_workspace(workspace);
        if self.foreign_agents { sources.with_other_products_of(workspace) } else { sources }
    }

    /// Builds the agents of a run, with diagnostics for those that are left out or stay as they
    /// were in `last`. The root is the harness's own agent, unless `leader` is another one: then it
    /// has that spec's model and prompt. Agents that name no model inherit the root's, which is
    /// `model` if that is given.
    pub(in crate::harness) fn compose(
        &self,
        scope: &Scope,
        declarations: &Declarations,
        last: Option<&RunAgents>,
        leader: Option<&AgentSpec>,
        model: Option<&str>,
    ) -> Result<(RunAgents, Vec<Diagnostic>), BuildError> {
        let workspaces = scope.inputs.sources().workspaces();
        let (specs, untrusted) = self.trust.without_untrusted(declarations.specs(), workspaces);
        let specs = &specs;
        // The declaration of an agent that runs elsewhere does not describe the root.
        let own = specs.get(&self.name).filter(|spec| spec.url.is_none());
        let spec = leader.or(own);
        let root = spec.cloned().unwrap_or_else(|| AgentSpec::new(&*self.name, "the root"));
        let mut skills = declarations.skills().clone();
        skills.retain(|skill| root.skills.as_ref().is_none_or(|list| list.contains(&skill.name)));
        let (mut factory, replaced) = self.factory(scope, spec, &skills)?;
        let (offers, about_servers) =
            scope.servers.renew(specs, |spec| self.trust.untrusted(spec, workspaces));
        factory.servers = offers;
        if let Some(name) = model.or_else(|| leader?.model.as_deref()) {
            let unusable = |source| BuildError::Agent(CatalogError::Model { id: root.id.clone(), source });
            factory.model = self.registry.resolve(name).map_err(unusable)?;
        }
        let (mut catalog, problems) = factory.catalog(specs);
        let last = last.map(RunAgents::catalog);
        let mut found =
            settle(problems, &scope.inputs, specs, last, &mut catalog).map_err(BuildError::Agent)?;
        found.extend(about_servers);
        found.extend(untrusted);
        found.extend(replaced.iter().map(|tool| tool_replaced(tool)));
        found.extend(self.misspelt_rules(&factory));
        let prompt = self.system_prompt.clone().filter(|_| leader.is_none());
        let agent = self.root(&factory, &root, prompt)?;
        let rules = self
            .permissions
            .narrowed_by(&self.workspace_permissions)
            .narrowed_by(&rules(&root).map_err(BuildError::Agent)?);
        let agents = RunAgents::new(agent).with_catalog(catalog).with_rules(rules).with_skills(skills);
        let agents = agents.with_artifacts(self.artifacts(scope, spec)?).with_factory(Arc::new(factory));
        Ok((agents, found))
    }

    /// Returns a warning for each rule of the harness that names a tool, or an argument of a tool,
    /// that does not exist.
    pub(super) fn misspelt_rules(&self, factory: &AgentFactory) -> Vec<Diagnostic> {
        let layers = self.permissions.layers().chain(self.workspace_permissions.layers());
        let warning = |rule: &Rule| {
            let about = match factory.misspelt(&rule.pattern)? {
                Misspelt::Tool { tool, near } => {
                    format!("tool {tool:?}, which does not exist; did you mean {near:?}?")
                }
                Misspelt::Argument { tool, argument, known } => {
                    let known = known.join(", ");
                    format!(
                        "argument {argument:?} of tool {tool:?}, which has no such argument; known: {known}"
                    )
                }
                _ => return None,
            };
            let origin = rule.origin.as_ref().map_or_else(String::new, |origin| format!("{origin}: "));
            let message = format!("{origin}the rule \"{}\" is about {about}", rule.pattern);
            Some(Diagnostic::warning(Code::UnknownTool, message))
        };
        layers.flat_map(RuleSet::rules).filter_map(warning).collect()
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
        let (file_tools, mut replaced) = self.add_workspace_tools(&mut tools, scope, root)?;
        if !skills.is_empty() && tools.get("load_skill").is_some() {
            replaced.push("load_skill".to_owned());
        }
        let mut factory = AgentFactory::new(self.model.clone());
        factory.registry = self.registry.clone();
        factory.tools = tools;
        factory.has_workspace = scope.workspace.is_some();
        factory.file_tools = file_tools;
        factory.tools_off.clone_from(&self.tools_off);
        #[cfg(feature = "remote")]
        {
            factory.remotes = Some(Arc::new(self.remotes.clone()));
        }
        factory.options = self.options.clone();
        factory.repetition = self.repetition;
        factory.compaction = self.compaction.clone();
        factory.middleware.clone_from(&self.middleware);
        factory.plan_tools = self.plan_tools;
        if self.generate {
            factory.generate_in = Some(scope.workspace.clone().ok_or(BuildError::GenerateNowhere)?);
        }
        factory.skills = skills.iter().map(|skill| skill.name.clone()).collect();
        Ok((factory, replaced))
    }

    /// Returns the store of long tool results, which is beside the files of each agent; `None` if
    /// agents have no tools for files.
    #[cfg(feature = "files")]
    fn artifacts(
        &self,
        scope: &Scope,
        root: Option<&AgentSpec>,
    ) -> Result<Option<Arc<dyn Artifacts>>, BuildError> {
        let workspace = scope.workspace.as_ref().filter(|_| self.files.has_any());
        let Some(workspace) = workspace else { return Ok(None) };
        Ok(Some(Arc::new(self.places(workspace, scope, root)?)))
    }

    #[cfg(not(feature = "files"))]
    pub(in crate::harness) fn files_beside(
        &self,
        _: &Scope,
    ) -> Result<Option<Arc<dyn mainstem_session::DeleteFiles>>, BuildError> {
        Ok(None)
    }

    #[cfg(not(feature = "files"))]
    fn artifacts(&self, _: &Scope, _: Option<&AgentSpec>) -> Result<Option<Arc<dyn Artifacts>>, BuildError> {
        Ok(None)
    }

    /// Adds the tools of the workspace; returns the names of those that were added, and of those
    /// that a tool of the program replaces.
    #[cfg(feature = "files")]
    fn add_workspace_tools(
        &self,
        tools: &mut ToolSet,
        scope: &Scope,
        root: Option<&AgentSpec>,
    ) -> Result<(Vec<String>, Vec<String>), BuildError> {
        self.add_file_tools(tools, scope, root)
    }

    #[cfg(not(feature = "files"))]
    fn add_workspace_tools(
        &self,
        _: &mut ToolSet,
        _: &Scope,
        _: Option<&AgentSpec>,
    ) -> Result<(Vec<String>, Vec<String>), BuildError> {
        Ok(Default::default())
    }

    fn root(
        &self,
        factory: &AgentFactory,
        spec: &AgentSpec,
        prompt: Option<Arc<str>>,
    ) -> Result<Agent, BuildError> {
        let mut agent = factory.root(spec, self.limits).map_err(BuildError::Agent)?;
        if let Some(prompt) = prompt {
            agent = agent.with_system_prompt(prompt);
        }
        if let Some(most) = self.max_iterations {
            agent = agent.with_max_iterations(most);
        }
        Ok(agent.build()?)
    }
}

fn tool_replaced(tool: &str) -> Diagnostic {
    let message = format!("the program has a tool {tool:?}, so the workspace's is not used");
    Diagnostic::warning(Code::ToolReplaced, message)
}

fn existing(path: &Path) -> Result<PathBuf, BuildError> {
    if path.is_dir() { Ok(path.to_owned()) } else { Err(BuildError::Workspace { path: path.to_owned() }) }
}
