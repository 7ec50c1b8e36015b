//! The builder of a harness. Setters store settings; [`build`](HarnessBuilder::build) validates and
//! combines them.

mod check;
mod compose;
#[cfg(feature = "files")]
mod files;
mod off;
#[cfg(feature = "files")]
mod places;
#[cfg(feature = "remote")]
mod remotes;
mod servers;
mod setters;
mod trust;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use mainstem_declarations::Trust;
use mainstem_event::{Clock, Ids, LogOptions, RandomIds, SystemClock};
use mainstem_journal::Journal;
use mainstem_message::TenantName;
use mainstem_model::{Model, ModelOptions, ModelRegistry};
use mainstem_policy::{Budget, Prices, Rules};
use mainstem_react::{Compaction, Middleware, RepetitionLimits};
use mainstem_session::{AgentSource, OnTaskFinished, Session, SessionBuilder, Store};
use mainstem_spec::{AgentSpec, Skill};
use mainstem_subagent::Limits;
use mainstem_task::{ExecutorId, FileTaskStore, MemoryTaskStore, ScopedTaskStore, TaskSet, TaskStore};
use mainstem_tool::Tool;

pub(super) use self::{compose::Scope, servers::Servers};
use super::Harness;
use crate::BuildError;

/// Builds a [`Harness`].
///
/// ```
/// use mainstem::prelude::*;
///
/// let clock = tool_fn("clock", "Tells the time", |_cx, (): ()| async {
///     Ok::<_, ToolError>("12:00")
/// });
/// let harness = Harness::builder("main", ScriptedModel::new())
///     .with_system_prompt("You lead a team.")
///     .with_tool(clock)
///     .with_subagent(AgentSpec::new("researcher", "Looks things up").with_tools(["clock"]))
///     .with_max_depth(1)
///     .build()?;
/// # drop(harness);
/// # Ok::<(), mainstem::BuildError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct HarnessBuilder {
    name: Arc<str>,
    leader: Option<String>,
    model: Arc<dyn Model>,
    system_prompt: Option<Arc<str>>,
    tools: Vec<Arc<dyn Tool>>,
    tools_off: BTreeMap<String, String>,
    middleware: Vec<Arc<dyn Middleware>>,
    workspace: Option<PathBuf>,
    #[cfg(feature = "files")]
    files: files::Files,
    servers: servers::Declared,
    #[cfg(feature = "remote")]
    remotes: mainstem_remote::Remotes,
    foreign_agents: bool,
    specs: Vec<AgentSpec>,
    tenants: BTreeMap<String, Vec<AgentSpec>>,
    skills: Vec<Skill>,
    registry: ModelRegistry,
    options: ModelOptions,
    max_iterations: Option<u32>,
    repetition: RepetitionLimits,
    compaction: Compaction,
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
    /// Returns a builder of a harness whose root agent has this id and uses this model.
    ///
    /// If the workspace or the code declares an agent of this id, the root has its instructions,
    /// tools, iterations and sampling, but always this model.
    pub fn builder(name: impl Into<Arc<str>>, model: impl Model) -> HarnessBuilder {
        HarnessBuilder {
            name: name.into(),
            leader: None,
            model: Arc::new(model),
            system_prompt: None,
            tools: Vec::new(),
            tools_off: off::by_setters(),
            middleware: Vec::new(),
            workspace: None,
            #[cfg(feature = "files")]
            files: files::Files::default(),
            servers: servers::Declared::default(),
            #[cfg(feature = "remote")]
            remotes: mainstem_remote::Remotes::new(),
            foreign_agents: false,
            specs: Vec::new(),
            tenants: BTreeMap::new(),
            skills: Vec::new(),
            registry: ModelRegistry::new(),
            options: ModelOptions::default(),
            max_iterations: None,
            repetition: RepetitionLimits::default(),
            compaction: Compaction::default(),
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
    /// Builds the harness. Reads the workspace's agent files; blocks on the file system.
    ///
    /// # Errors
    /// The workspace is not a directory, tools clash, or an agent declared in code can't be built.
    /// Files that can't be read are left out and are among [`Harness::diagnostics`].
    pub fn build(self) -> Result<Harness, BuildError> {
        Harness::open(Arc::new(self), Store::new(), None)
    }

    /// Returns a builder of a session whose runs find their agents in `source`.
    pub(super) fn session(&self, source: Arc<dyn AgentSource>, tasks: TaskSet) -> SessionBuilder {
        Session::builder(source)
            .with_limits(self.limits)
            .with_tasks(tasks)
            .with_budget(self.budget)
            .with_prices(self.prices.clone())
            .with_on_task_finished(self.on_task_finished)
            .with_ids(self.ids.clone())
            .with_clock(self.clock.clone())
            .with_log(self.log.clone())
    }

    /// Returns the id of the chosen leader.
    pub(super) fn leader(&self) -> Option<&str> {
        self.leader.as_deref()
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns the journal that records the sessions of all tenants.
    pub(super) fn journal_of_all(&self) -> Option<&Arc<dyn Journal>> {
        self.journal.as_ref()
    }

    pub(super) fn task_set(&self, workspace: Option<&Path>, tenant: Option<&TenantName>) -> TaskSet {
        let store: Arc<dyn TaskStore> = match (&self.task_store, workspace, tenant) {
            (Some(whole), _, Some(tenant)) => Arc::new(ScopedTaskStore::new(whole.clone(), tenant.clone())),
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
