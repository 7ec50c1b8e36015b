//! Building a harness: what is said here is put together in [`build`](HarnessBuilder::build), and
//! decided elsewhere.

mod check;
mod compose;
#[cfg(feature = "files")]
mod files;
#[cfg(feature = "files")]
mod places;
mod servers;
mod trust;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use mainstem_declarations::Trust;
use mainstem_event::{Clock, Ids, LogOptions, RandomIds, SystemClock};
use mainstem_journal::Journal;
use mainstem_model::{Model, ModelOptions, ModelRegistry};
use mainstem_policy::{Limits as Budget, Prices, Rules};
use mainstem_react::Middleware;
use mainstem_session::{AssemblySource, OnTaskFinished, Session, SessionBuilder, Store};
use mainstem_spec::{AgentSpec, Skill};
use mainstem_subagent::Limits;
use mainstem_task::{ExecutorId, FileTaskStore, MemoryTaskStore, ScopedTaskStore, TaskSet, TaskStore};
use mainstem_tool::Tool;

pub(super) use self::{compose::Scope, servers::Servers};
use super::Harness;
use crate::BuildError;

/// Builds a [`Harness`].
#[must_use]
pub struct HarnessBuilder {
    name: Arc<str>,
    model: Arc<dyn Model>,
    system_prompt: Option<Arc<str>>,
    tools: Vec<Arc<dyn Tool>>,
    middleware: Vec<Arc<dyn Middleware>>,
    workspace: Option<PathBuf>,
    #[cfg(feature = "files")]
    files: files::Files,
    servers: servers::Declared,
    foreign_agents: bool,
    specs: Vec<AgentSpec>,
    tenants: BTreeMap<String, Vec<AgentSpec>>,
    skills: Vec<Skill>,
    registry: ModelRegistry,
    options: ModelOptions,
    max_iterations: Option<u32>,
    limits: Limits,
    task_store: Option<Arc<dyn TaskStore>>,
    journal: Option<Arc<dyn Journal>>,
    permissions: Rules,
    workspace_permissions: Rules,
    trust: Trust,
    plan_tools: bool,
    generate: bool,
    budget: Budget,
    prices: Arc<Prices>,
    on_task_finished: OnTaskFinished,
    ids: Arc<dyn Ids>,
    clock: Arc<dyn Clock>,
    log: LogOptions,
}

impl Harness {
    /// A harness whose root agent has this id and thinks with this model.
    ///
    /// If the workspace or the code declares an agent of this id, the root is what it declares:
    /// instructions, tools, steps, sampling. The model given here is the root's all the same.
    pub fn builder(name: impl Into<Arc<str>>, model: impl Model) -> HarnessBuilder {
        HarnessBuilder {
            name: name.into(),
            model: Arc::new(model),
            system_prompt: None,
            tools: Vec::new(),
            middleware: Vec::new(),
            workspace: None,
            #[cfg(feature = "files")]
            files: files::Files::default(),
            servers: servers::Declared::default(),
            foreign_agents: false,
            specs: Vec::new(),
            tenants: BTreeMap::new(),
            skills: Vec::new(),
            registry: ModelRegistry::new(),
            options: ModelOptions::default(),
            max_iterations: None,
            limits: Limits::default(),
            task_store: None,
            journal: None,
            permissions: Rules::new(),
            workspace_permissions: Rules::new(),
            trust: Trust::default(),
            plan_tools: false,
            generate: false,
            budget: Budget::default(),
            prices: Arc::default(),
            on_task_finished: OnTaskFinished::default(),
            ids: Arc::new(RandomIds),
            clock: Arc::new(SystemClock),
            log: LogOptions::default(),
        }
    }
}

impl HarnessBuilder {
    /// The root's instructions; without them, those of the declared agent of the same id.
    pub fn system_prompt(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.system_prompt = Some(prompt.into());
        self
    }

    /// A tool for the root, inherited by children whose spec does not say otherwise.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Code around each model call and tool call, of the root and of its children.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// The directory that the agents work in, whose `subagents/*.md` declare agents and whose
    /// `skills/*/SKILL.md` are skills.
    ///
    /// Before each run the harness looks whether these files have changed, off the async threads,
    /// and reads them again if so: what was edited is in effect from then on, and what is at work
    /// keeps what it began with. A file that has errors then leaves its agent as it was;
    /// [`Harness::diagnostics`] says both.
    ///
    /// With [`file_tools`](Self::file_tools) the root gets tools for the files in it, which
    /// children inherit like any other tool; none of them leaves the directory. A child whose
    /// `workspace.mode` is `isolated`, as it is by default, works in a directory of its own below
    /// it (see [`Layout::instance`](crate::workspace::Layout::instance)), one that is `shared`,
    /// such as `general-purpose`, where its parent does.
    pub fn workspace(mut self, path: impl Into<PathBuf>) -> Self {
        self.workspace = Some(path.into());
        self
    }

    /// Reads the agent files that the workspace has for Claude Code, OpenCode and Copilot, too;
    /// `subagents/` wins over them.
    ///
    /// What is read otherwise or ignored is among the warnings of the harness.
    ///
    /// ```
    /// # let workspace = std::env::temp_dir().join(format!("mainstem-foreign-agents-{}", std::process::id()));
    /// # std::fs::create_dir_all(workspace.join(".claude/agents"))?;
    /// use mainstem::prelude::*;
    ///
    /// std::fs::write(workspace.join(".claude/agents/critic.md"), "---\ndescription: Criticises\ncolor: red\n---\n")?;
    /// let build = |harness: HarnessBuilder| harness.workspace(&workspace).build();
    ///
    /// let harness = build(Harness::builder("main", ScriptedModel::new()).foreign_agents())?;
    /// assert!(harness.assembly().catalog.get("critic").is_some());
    /// assert!(harness.diagnostics()[0].message().contains("\"color\" of Claude Code is ignored"));
    /// assert!(build(Harness::builder("main", ScriptedModel::new()))?.assembly().catalog.get("critic").is_none());
    /// # std::fs::remove_dir_all(&workspace)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn foreign_agents(mut self) -> Self {
        self.foreign_agents = true;
        self
    }

    /// An agent that can be spawned; wins over a file of the same id.
    pub fn subagent(mut self, spec: AgentSpec) -> Self {
        self.specs.push(spec);
        self
    }

    /// An agent that only this tenant's agents can spawn (see [`Harness::tenant`]); wins over a
    /// file of the same id, and over an agent that [`subagent`](Self::subagent) declares for all.
    pub fn tenant_subagent(mut self, tenant: impl Into<String>, spec: AgentSpec) -> Self {
        self.tenants.entry(tenant.into()).or_default().push(spec);
        self
    }

    /// Instructions that agents read when they need them, by the tool `load_skill`; wins over a
    /// folder of the same name.
    pub fn skill(mut self, skill: Skill) -> Self {
        self.skills.push(skill);
        self
    }

    /// Where the models that specs name are found.
    pub fn registry(mut self, registry: ModelRegistry) -> Self {
        self.registry = registry;
        self
    }

    /// How models shall answer.
    pub fn options(mut self, options: ModelOptions) -> Self {
        self.options = options;
        self
    }

    /// Most model calls of the root in one run; 10 by default.
    pub fn max_iterations(mut self, most: u32) -> Self {
        self.max_iterations = Some(most);
        self
    }

    /// How deep agents may nest; 3 by default, 0 forbids children.
    pub fn max_depth(mut self, depth: u16) -> Self {
        self.limits.max_depth = depth;
        self
    }

    /// How many children of a session are at work at once; 16 by default, more wait for their turn.
    pub fn max_children(mut self, most: usize) -> Self {
        self.limits.max_children = most;
        self
    }

    /// How many background tasks of a session there can be at once; 16 by default, more are
    /// refused.
    pub fn max_tasks(mut self, most: usize) -> Self {
        self.limits.max_tasks = most;
        self
    }

    /// What happens when a background task of the root ends between two runs of its session: by
    /// default the next turn begins with it.
    pub fn on_task_finished(mut self, what: OnTaskFinished) -> Self {
        self.on_task_finished = what;
        self
    }

    /// How long a call waits for its child unless it says otherwise; 30 s by default.
    pub fn wait(mut self, time: Duration) -> Self {
        self.limits.wait = time;
        self
    }

    /// How long a child may be silent before it is ended with `timeout`; 10 min by default,
    /// `Duration::MAX` is for ever.
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.limits.idle = time;
        self
    }

    /// Where the records of background tasks are kept: by default in the workspace, where other
    /// processes see them, and without a workspace in memory. Each [tenant](Harness::tenant) has a
    /// [part](mainstem_task::ScopedTaskStore) of it.
    pub fn task_store(mut self, store: impl TaskStore) -> Self {
        self.task_store = Some(Arc::new(store));
        self
    }

    /// Where sessions are kept, so that they go on after this process: see
    /// [`Harness::open_session`]. Without one they are in memory. Each [tenant](Harness::tenant)
    /// has a [part](mainstem_journal::Scoped) of it.
    pub fn journal(mut self, journal: impl Journal) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }

    /// What agents may run: which tool calls are allowed, refused, or put before a person. What an
    /// agent's spec says narrows it for that agent and everything below it.
    ///
    /// A rule that allows a path by name, such as `write_file(path: skills/**)`, also lifts the
    /// protection that files have which the next run obeys: see
    /// [`Protection`](crate::workspace::Protection).
    pub fn permissions(mut self, rules: impl Into<Rules>) -> Self {
        self.permissions = rules.into();
        self
    }

    /// Sets the rules of a file that comes with the workspace. They narrow the
    /// [`permissions`](Self::permissions), and can't lift a protection.
    pub fn workspace_permissions(mut self, rules: impl Into<Rules>) -> Self {
        self.workspace_permissions = rules.into();
        self
    }

    /// Whether the root gets `plan_enter` and `plan_exit`: see
    /// [`RunOptions::plan_mode`](mainstem_session::RunOptions::plan_mode).
    pub fn plan_tools(mut self, plan_tools: bool) -> Self {
        self.plan_tools = plan_tools;
        self
    }

    /// Whether the root gets `agent_generate`, which drafts a new agent with the root's model and
    /// writes its file into the workspace, never over another; not by default. A child gets it if
    /// its `tools` list it. The draft is a child of its own: it is in the stream, and is paid for.
    ///
    /// Without a workspace [`build`](Self::build) fails.
    pub fn agent_generate(mut self, wanted: bool) -> Self {
        self.generate = wanted;
        self
    }

    /// What a session may spend, with all its agents: tokens, money, spawns, time. A model call or
    /// a spawn that doesn't fit is refused, and the refusal says what is left. What a call will use
    /// is an estimate (the bytes of the request ÷ 4 + the most it may write), corrected by the
    /// usage that comes back.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// What models cost, besides the built-in list of prices.
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = Arc::new(prices);
        self
    }

    /// Where ids come from; for tests.
    pub fn ids(mut self, ids: impl Ids) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// What time it is; for tests.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// How much a session's log keeps and lets through.
    pub fn log(mut self, options: LogOptions) -> Self {
        self.log = options;
        self
    }

    /// The harness. Reads the workspace's agent files; blocks on the file system.
    ///
    /// # Errors
    /// A workspace that is none, tools that clash, an agent declared in code that can't be built.
    /// Files that can't be read are left out and said in [`Harness::diagnostics`].
    pub fn build(self) -> Result<Harness, BuildError> {
        Harness::open(Arc::new(self), Store::new(), None)
    }

    /// Begins a session in whose runs these work.
    pub(super) fn session(&self, assemblies: Arc<dyn AssemblySource>, tasks: TaskSet) -> SessionBuilder {
        Session::builder(assemblies)
            .limits(self.limits)
            .tasks(tasks)
            .budget(self.budget)
            .prices(self.prices.clone())
            .on_task_finished(self.on_task_finished)
            .ids(self.ids.clone())
            .clock(self.clock.clone())
            .log(self.log.clone())
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns the journal that records the sessions of all tenants.
    pub(super) fn journal_of_all(&self) -> Option<&Arc<dyn Journal>> {
        self.journal.as_ref()
    }

    pub(super) fn task_set(&self, workspace: Option<&Path>, tenant: Option<&str>) -> TaskSet {
        let store: Arc<dyn TaskStore> = match (&self.task_store, workspace, tenant) {
            (Some(whole), _, Some(tenant)) => Arc::new(ScopedTaskStore::new(whole.clone(), tenant)),
            (Some(whole), ..) => whole.clone(),
            (None, Some(workspace), _) => Arc::new(FileTaskStore::new(workspace)),
            (None, None, _) => Arc::new(MemoryTaskStore::new()),
        };
        TaskSet::new(store, self.clock.clone(), ExecutorId::new(self.ids.next("executor-")))
    }
}

impl fmt::Debug for HarnessBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HarnessBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}
