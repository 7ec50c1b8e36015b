//! What an agent's context carries about its fleet: one value, so that a part that is missing does
//! not compile.

use std::sync::Arc;

use mainstem_policy::Budget;
use mainstem_react::{RunContext, RunContextBuilder};
use mainstem_spec::Skill;
use mainstem_tool::ToolContext;

use crate::{
    assembly::Assembly,
    budget::account::Account,
    catalog::generated::GeneratedAgents,
    error::SpawnError,
    fleet::Fleet,
    options::SpawnOptions,
    spawn::{
        child_limit::{Caller, RunChildLimit},
        idle::Waits,
        lineage::Lineage,
    },
};

/// One agent of a fleet in one run. The attachment of its [`RunContext`].
#[derive(Clone, Debug)]
pub(crate) struct Member {
    // The same for all agents of the run.
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) assembly: Arc<Assembly>,
    pub(crate) options: SpawnOptions,
    pub(crate) generated: Arc<GeneratedAgents>,
    /// The run's own limit of children that execute at once.
    child_limit: Option<Arc<RunChildLimit>>,
    /// Where its calls are counted.
    pub(crate) account: Arc<Account>,
    /// What it and its ancestors were spawned as; `None` for the root.
    pub(crate) lineage: Option<Arc<Lineage>>,
    /// How many of its calls wait.
    pub(crate) waits: Arc<Waits>,
    /// Whether its model call is paid for.
    pub(crate) is_paid: bool,
}

impl Member {
    /// Returns the member that a context is about.
    ///
    /// # Errors
    /// The agent is part of no fleet.
    pub(crate) fn of(cx: &RunContext) -> Result<&Self, SpawnError> {
        cx.attachment().ok_or(SpawnError::NoFleet)
    }

    /// Returns the member that calls a tool, and the engine's context of the call.
    ///
    /// # Errors
    /// The agent is part of no fleet.
    pub(crate) fn of_call(cx: &ToolContext) -> Result<(&RunContext, &Self), SpawnError> {
        let cx = engine(cx)?;
        Ok((cx, Self::of(cx)?))
    }

    /// Creates the root of a run.
    pub(crate) fn root(
        fleet: Arc<Fleet>,
        assembly: Arc<Assembly>,
        options: SpawnOptions,
        budget: Budget,
    ) -> Self {
        let spec = assembly.catalog.get(assembly.root.id()).map(|entry| &*entry.spec);
        Self {
            account: fleet.spending.open_run(spec, budget),
            fleet,
            assembly,
            generated: Arc::default(),
            child_limit: options.max_children.map(|most| Arc::new(RunChildLimit::new(most))),
            options,
            lineage: None,
            waits: Arc::default(),
            is_paid: false,
        }
    }

    /// Returns a child of this member whose calls are counted in `account`.
    pub(crate) fn child(&self, account: Arc<Account>, lineage: Option<Arc<Lineage>>) -> Arc<Self> {
        Arc::new(Self { account, lineage, waits: Arc::default(), is_paid: false, ..self.clone() })
    }

    /// Returns the same member, which treats its children otherwise.
    pub(crate) fn with_options(&self, options: SpawnOptions) -> Self {
        Self { options, ..self.clone() }
    }

    /// Returns the same member in a model call that is paid for.
    pub(crate) fn paid(&self) -> Arc<Self> {
        Arc::new(Self { is_paid: true, ..self.clone() })
    }

    /// Returns the member as the child limit of its fleet sees it.
    pub(crate) fn caller<'a>(&'a self, cx: &'a RunContext) -> Caller<'a> {
        Caller { cx, run: self.child_limit.as_deref(), waits: &self.waits }
    }

    /// Returns what it and its ancestors were spawned as; nothing for the root.
    pub(crate) fn lineage(&self) -> impl Iterator<Item = &Lineage> {
        self.lineage.iter().flat_map(|lineage| lineage.up())
    }

    /// Returns `true` if it has a tool of this name.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        let agent = match &self.lineage {
            Some(lineage) => lineage.entry.agent.local(),
            None => Some(&self.assembly.root),
        };
        agent.is_some_and(|agent| agent.tools().may_have(name))
    }

    /// Returns the skills that it can load: those that neither its spec nor an ancestor's leaves
    /// out.
    pub(crate) fn skills(&self) -> impl Iterator<Item = &Skill> {
        let lists: Vec<_> = self.lineage().filter_map(|agent| agent.entry.spec.skills.as_ref()).collect();
        let skills = self.assembly.skills.iter();
        skills.filter(move |skill| lists.iter().all(|list| list.contains(&skill.name)))
    }
}

/// Returns the engine's context of a tool call.
///
/// # Errors
/// The tool is called by something else than the engine.
pub(crate) fn engine(cx: &ToolContext) -> Result<&RunContext, SpawnError> {
    RunContext::of(cx).ok_or(SpawnError::NoFleet)
}

impl Fleet {
    /// Puts the fleet into the context of a run, with its assembly and budget, and as its gate.
    pub fn enter(
        self: &Arc<Self>,
        cx: RunContextBuilder,
        assembly: Arc<Assembly>,
        options: SpawnOptions,
        budget: Budget,
    ) -> RunContextBuilder {
        let cx = cx.with_artifacts(assembly.artifacts.clone()).with_gate(self.clone());
        cx.with_attachment(Arc::new(Member::root(self.clone(), assembly, options, budget)))
    }

    /// Returns the fleet that a context's agent is part of.
    pub fn of(cx: &RunContext) -> Option<&Arc<Self>> {
        cx.attachment::<Member>().map(|member| &member.fleet)
    }
}
