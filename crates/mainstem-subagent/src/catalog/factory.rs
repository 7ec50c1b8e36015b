//! Builds agents from specs: what they inherit, and what their specs change.

mod allowed;
mod check;
mod reach;
mod tool_grant;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use mainstem_model::{Model, ModelOptions, ModelRegistry};
use mainstem_policy::{Effect, RuleSet, Rules};
use mainstem_react::{
    Agent, AgentBuilder, Compaction, Middleware, OutputSchema, RepetitionLimits, StructuredOutput,
};
use mainstem_spec::{AgentSpec, Origin, Permission, ServerTool, SpecSet, WorkspaceMode};
use mainstem_tool::{Tool, ToolSet, ToolSource};

use self::allowed::Allowed;
pub use self::{
    check::Misspelt,
    tool_grant::{Grantee, ToolGrant},
};
use crate::{
    budget::metered::Metered,
    catalog::{
        Catalog, CatalogAgent, CatalogEntry, Factory, RemoteAgents,
        error::CatalogError,
        generate::{Drafts, GENERATE},
        prompt::child_prompt,
    },
    fleet::Limits,
    middleware::Subagents,
    server_tools::ServerTools,
    tools::{self, agent_tool::agent_tools},
};

/// The id of the agent that always exists.
pub(crate) const GENERAL_PURPOSE: &str = "general-purpose";

/// Builds agents from specs. Its fields are what children have unless their specs change it.
#[derive(Clone)]
#[non_exhaustive]
pub struct AgentFactory {
    /// The model of a spec that names none.
    pub model: Arc<dyn Model>,
    /// The models that specs name.
    pub registry: ModelRegistry,
    /// The tools that can be inherited.
    pub tools: ToolSet,
    /// The servers with more tools, and the agents that have them.
    pub servers: Vec<ToolGrant>,
    /// The options of model calls, unless the spec changes them.
    pub options: ModelOptions,
    /// How often agents may repeat themselves.
    pub repetition: RepetitionLimits,
    /// When and how conversations are compacted.
    pub compaction: Compaction,
    /// The middleware around each call, also of children.
    pub middleware: Vec<Arc<dyn Middleware>>,
    /// Whether the root gets `plan_enter` and `plan_exit`.
    pub plan_tools: bool,
    /// The names of the skills. Without any, no agent has `load_skill`.
    pub skills: Vec<String>,
    /// The workspace in which the root can write new agents, by `agent_generate`; so can children
    /// that list it.
    pub generate_in: Option<PathBuf>,
    /// Whether there is a workspace. Without one, an agent with a `workspace.path` is left out.
    pub has_workspace: bool,
    /// What runs agents elsewhere. Without it, those with a `url` are left out.
    pub remotes: Option<Arc<dyn RemoteAgents>>,
    /// The names of the tools for files. The prompts of agents that have any say which agents see
    /// the files.
    pub file_tools: Vec<String>,
    /// The tools that the program has and does not give, each with how to turn it on. An agent
    /// that lists one is told so, instead of that it does not exist.
    pub tools_off: BTreeMap<String, String>,
}

impl AgentFactory {
    /// Creates a factory whose agents have this model and nothing else.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            registry: ModelRegistry::new(),
            tools: ToolSet::new(),
            servers: Vec::new(),
            options: ModelOptions::default(),
            repetition: RepetitionLimits::default(),
            compaction: Compaction::default(),
            middleware: Vec::new(),
            plan_tools: false,
            skills: Vec::new(),
            generate_in: None,
            has_workspace: false,
            remotes: None,
            file_tools: Vec::new(),
            tools_off: BTreeMap::new(),
        }
    }

    /// Builds all agents of a set, and `general-purpose` unless the set declares it.
    ///
    /// Never fails as a whole: an agent that can't be built is left out, and the reason returned.
    pub fn catalog(&self, specs: &SpecSet) -> (Catalog, Vec<CatalogError>) {
        let (mut catalog, mut problems) = (Catalog::default(), Vec::new());
        let general = general_purpose();
        for spec in std::iter::once(&general).chain(specs.iter()) {
            let entry = self.entry(spec.clone());
            // What the spec of a remote agent names is at the remote.
            if !entry.as_ref().is_ok_and(|entry| entry.agent.local().is_none()) {
                problems.extend(self.unknown_tools(spec));
                problems.extend(self.unknown_skills(spec));
                problems.extend(self.unknown_servers(spec));
            }
            match entry {
                Ok(entry) => catalog.keep(entry),
                Err(error) => problems.push(error),
            }
        }
        problems.extend(self.add_agent_tools(&self.tools, &mut catalog));
        problems.extend(reach::stuck(&catalog));
        (catalog, problems)
    }

    /// Adds the agents that these tools have and those below them, so that a later process finds
    /// them, with this factory's middleware around them. Returns the problems with agents that the
    /// tools start and that are declared elsewhere.
    fn add_agent_tools(&self, tools: &ToolSet, catalog: &mut Catalog) -> Vec<CatalogError> {
        let mut problems = Vec::new();
        for tool in agent_tools(tools) {
            let Some(entry) = tool.code() else {
                problems.extend(tool.problem(catalog));
                continue;
            };
            let Some(agent) = entry.agent.local().filter(|_| catalog.code_of(&entry.spec).is_none()) else {
                continue;
            };
            let wrapped = CatalogAgent::Code(agent.with_outermost(&self.middleware));
            catalog.add_code(CatalogEntry { agent: wrapped, ..entry.clone() });
            problems.extend(self.add_agent_tools(agent.tools(), catalog));
        }
        problems
    }

    /// Builds one agent, here or elsewhere.
    ///
    /// # Errors
    /// As [`build`](Self::build), or the agent's address can't be used.
    fn agent(&self, spec: &AgentSpec) -> Result<CatalogAgent, CatalogError> {
        let id = || spec.id.clone();
        let runner = self.remotes.as_ref().map_or(Ok(None), |remotes| remotes.runner(spec));
        match runner.map_err(|reason| CatalogError::Remote { id: id(), reason })? {
            Some(runner) => Ok(CatalogAgent::Remote(runner)),
            None if spec.url.is_some() => Err(CatalogError::NoRemotes { id: id() }),
            None => self.build(spec).map(CatalogAgent::Local),
        }
    }

    /// Builds one agent of this process.
    ///
    /// # Errors
    /// The spec names an unknown model, which another one does not replace, or its agent runs
    /// elsewhere.
    pub fn build(&self, spec: &AgentSpec) -> Result<Agent, CatalogError> {
        if spec.url.is_some() {
            return Err(CatalogError::RunsElsewhere { id: spec.id.clone() });
        }
        if spec.workspace.path.is_some() && !self.has_workspace {
            return Err(CatalogError::NoWorkspace { id: spec.id.clone() });
        }
        let model = match &spec.model {
            None => self.model.clone(),
            Some(name) => {
                let id = spec.id.clone();
                self.registry.resolve(name).map_err(|source| CatalogError::Model { id, source })?
            }
        };
        let fleet_tools = self.fleet_tools().filter(|tool| lists(spec, tool)).chain(self.load_skill(spec));
        let tools = self.tools_of(spec, |tool| lists(spec, tool));
        let prompt = child_prompt(spec, self.has_files(spec));
        let mut agent = self.builder(spec, model, &prompt, tools, fleet_tools.collect());
        if let Some(schema) = output(spec)? {
            agent = agent.with_middleware(StructuredOutput::new(schema));
        }
        agent
            .with_middleware(Metered)
            .build()
            .map_err(|source| CatalogError::Tools { id: spec.id.clone(), source })
    }

    /// Returns the builder of the root that a spec declares. It has the spec's instructions
    /// unchanged, this factory's model, and the tools for children unless the spec or the limits
    /// exclude them.
    ///
    /// # Errors
    /// The output schema is invalid.
    pub fn root(&self, spec: &AgentSpec, limits: Limits) -> Result<AgentBuilder, CatalogError> {
        let fleet_tools = self.fleet_tools().filter(|tool| limits.max_depth > 0 && inherits(spec, tool));
        let plan_tools = tools::PLAN.into_iter().filter(|_| self.plan_tools).map(str::to_owned);
        let fleet_tools = fleet_tools.chain(plan_tools).chain(self.load_skill(spec));
        let tools = self.tools_of(spec, |_| limits.max_depth > 0);
        let output = StructuredOutput::of_run(output(spec)?);
        let (model, prompt) = (self.model.clone(), spec.prompt.trim());
        let agent = self.builder(spec, model, prompt, tools, fleet_tools.collect());
        Ok(agent.with_middleware(output).with_middleware(Metered))
    }

    /// Returns the tool for skills, if the agent has skills and the program has no tool of that
    /// name.
    fn load_skill(&self, spec: &AgentSpec) -> Option<String> {
        let listed = |skill| spec.skills.as_ref().is_none_or(|list| list.contains(skill));
        let is_given = inherits(spec, tools::LOAD_SKILL)
            && self.skills.iter().any(listed)
            && self.tools.get(tools::LOAD_SKILL).is_none();
        is_given.then(|| tools::LOAD_SKILL.to_owned())
    }

    /// Builds all but the innermost middleware: the form of the answer, and the budget.
    fn builder(
        &self,
        spec: &AgentSpec,
        model: Arc<dyn Model>,
        prompt: &str,
        tools: ToolSet,
        fleet_tools: Vec<String>,
    ) -> AgentBuilder {
        let mut over = ModelOptions::default();
        (over.temperature, over.top_p) = (spec.temperature, spec.top_p);
        over.effort = spec.effort.map(|effort| effort.to_string());
        let named = |tools: &Vec<ServerTool>| tools.iter().map(ToString::to_string).collect();
        over.server_tools = spec.server_tools.as_ref().map(named);
        (over.thinking_budget, over.max_output_tokens) = (spec.thinking_budget, spec.max_output_tokens);
        let generate = fleet_tools.iter().any(|tool| tool == GENERATE).then(|| self.generate(model.clone()));
        let mut agent = Agent::builder(&*spec.id, model)
            .with_tools(tools)
            .with_max_iterations(spec.steps)
            .with_options(self.options.overlaid(&over))
            .with_repetition_limits(self.repetition)
            .with_compaction(self.compaction(spec));
        if !prompt.is_empty() {
            agent = agent.with_system_prompt(prompt);
        }
        if let Some(generate) = generate.flatten() {
            agent = agent.with_shared_tool(generate);
        }
        for middleware in &self.middleware {
            agent = agent.with_shared_middleware(middleware.clone());
        }
        let agent = agent.with_middleware(Subagents::only(fleet_tools).with_files(self.has_files(spec)));
        agent.with_middleware(ServerTools)
    }

    /// Returns when an agent's conversation is compacted.
    fn compaction(&self, spec: &AgentSpec) -> Compaction {
        let compaction = self.compaction.clone();
        match spec.compact_at {
            None => compaction,
            Some(0) => compaction.with_enabled(false),
            Some(percent) => compaction.with_enabled(true).with_threshold(f64::from(percent) / 100.0),
        }
    }

    /// Returns `true` if an agent has tools for files.
    fn has_files(&self, spec: &AgentSpec) -> bool {
        self.file_tools.iter().any(|tool| inherits(spec, tool))
    }

    /// Returns `agent_generate` for an agent with this model.
    fn generate(&self, model: Arc<dyn Model>) -> Option<Arc<dyn Tool>> {
        let workspace = self.generate_in.clone()?;
        let tools = self.tools.names().chain(self.fleet_tools()).collect();
        Some(
            Drafts::new(model, self.options.clone(), &self.middleware, workspace, tools, self.clone()).tool(),
        )
    }

    /// Returns the names of the tools for children.
    fn fleet_tools(&self) -> impl Iterator<Item = String> {
        let generate = self.generate_in.iter().map(|_| GENERATE.to_owned());
        tools::all().map(|(name, _)| name.clone()).chain(generate)
    }

    /// Returns the tools of an agent except those for children; of the tools that are agents, those
    /// that it may call.
    fn tools_of(&self, spec: &AgentSpec, may_call: impl Fn(&str) -> bool) -> ToolSet {
        let mut tools = self.tools.clone();
        self.servers_of(spec).for_each(|source| tools.insert_source(source.clone()));
        let allowed = Allowed::of(spec);
        let agents = agent_tools(&self.tools).map(|tool| tool.name().to_owned());
        let denied: BTreeSet<_> = agents.filter(|name| !may_call(name)).collect();
        tools.filtered(move |name| allowed.has(name) && !denied.contains(name))
    }

    /// Returns the servers whose tools an agent has, its own first.
    fn servers_of(&self, spec: &AgentSpec) -> impl Iterator<Item = &Arc<dyn ToolSource>> {
        let (own, others): (Vec<_>, Vec<_>) =
            self.servers.iter().filter(|grant| grant.is_for(spec)).partition(|grant| grant.is_own());
        let mut servers: Vec<_> = own.iter().map(|grant| &grant.source).collect();
        let is_hidden =
            |other: &ToolGrant| own.iter().any(|grant| grant.source.name() == other.source.name());
        servers.extend(others.into_iter().filter(|other| !is_hidden(other)).map(|grant| &grant.source));
        servers.into_iter()
    }
}

impl Factory for AgentFactory {
    fn entry(&self, spec: AgentSpec) -> Result<CatalogEntry, CatalogError> {
        let (agent, rules) = (self.agent(&spec)?, rules(&spec)?);
        Ok(CatalogEntry { spec: Arc::new(spec), agent, rules })
    }
}

impl std::fmt::Debug for AgentFactory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentFactory").field("tools", &self.tools).finish_non_exhaustive()
    }
}

/// Returns the form of an agent's answer that its spec declares.
fn output(spec: &AgentSpec) -> Result<Option<OutputSchema>, CatalogError> {
    let schema = spec.output_schema.clone().map(OutputSchema::new).transpose();
    schema.map_err(|source| CatalogError::Output { id: spec.id.clone(), source })
}

/// Returns the permissions in an agent's spec as rules.
///
/// # Errors
/// A pattern is invalid.
pub fn rules(spec: &AgentSpec) -> Result<Rules, CatalogError> {
    let mut set = RuleSet::default();
    for (pattern, permission) in &spec.permissions {
        let effect = match permission {
            Permission::Allow => Effect::Allow,
            Permission::Ask => Effect::Ask,
            Permission::Deny => Effect::Deny,
        };
        set = set
            .with_pattern(effect, pattern)
            .map_err(|source| CatalogError::Permissions { id: spec.id.clone(), source })?;
    }
    Ok(Rules::from(set.with_origin(&format!("agent {:?}", spec.id))))
}

/// Returns `true` if a spec lets its agent inherit a tool.
fn inherits(spec: &AgentSpec, tool: &str) -> bool {
    Allowed::of(spec).has(tool)
}

/// Returns `true` if a spec names a tool. The tools that let a child spawn are never inherited.
fn lists(spec: &AgentSpec, tool: &str) -> bool {
    Allowed::of(spec).names(tool)
}

/// Returns the declaration of `general-purpose`, the agent that always exists unless another one of
/// its id is declared: with the parent's model, tools, skills and directory; it can't spawn.
#[must_use]
pub fn general_purpose() -> AgentSpec {
    let description =
        "Has the same tools as you. For any task that can be handed over whole and answered in one reply.";
    AgentSpec::new(GENERAL_PURPOSE, description)
        .with_workspace_mode(WorkspaceMode::Shared)
        .with_origin(Origin::BuiltIn)
}

#[cfg(test)]
mod tests;
