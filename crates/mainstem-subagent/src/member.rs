//! What an agent's context carries about its fleet: one value, so that a part that is missing does
//! not compile.

use std::sync::Arc;

use mainstem_policy::Limits;
use mainstem_react::{RunContext, RunContextBuilder};

use crate::{
    budget::Account,
    catalog::generated::Drafted,
    crew::Crew,
    error::SpawnError,
    fleet::Fleet,
    options::SpawnOptions,
    spawn::{idle::Waits, lineage::Lineage, slots::RunPlaces},
};

/// One agent of a fleet in one run. The attachment of its [`RunContext`].
#[derive(Clone, Debug)]
pub(crate) struct Member {
    // The same for all agents of the run.
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) crew: Arc<Crew>,
    pub(crate) options: SpawnOptions,
    pub(crate) drafted: Arc<Drafted>,
    /// The run's own limit of children that execute at once.
    pub(crate) places: Option<Arc<RunPlaces>>,
    /// Where its calls are counted.
    pub(crate) account: Arc<Account>,
    /// What it and those above it were spawned as; `None` for the root.
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

    /// Creates the root of a run.
    pub(crate) fn root(fleet: Arc<Fleet>, crew: Arc<Crew>, options: SpawnOptions, budget: Limits) -> Self {
        Self {
            account: fleet.open_run(&crew, budget),
            fleet,
            crew,
            options,
            drafted: Arc::default(),
            places: options.max_children.map(|most| Arc::new(RunPlaces::new(most))),
            lineage: None,
            waits: Arc::default(),
            is_paid: false,
        }
    }

    /// Returns a child of this member whose calls are counted in `account`.
    pub(crate) fn child(&self, account: Arc<Account>, lineage: Option<Arc<Lineage>>) -> Arc<Self> {
        Arc::new(Self { account, lineage, waits: Arc::default(), is_paid: false, ..self.clone() })
    }

    /// Returns the same member in a model call that is paid for.
    pub(crate) fn paid(&self) -> Arc<Self> {
        Arc::new(Self { is_paid: true, ..self.clone() })
    }
}

impl Fleet {
    /// Puts the fleet into the context of a run: with this crew, under a budget, and as its gate.
    pub fn enter(
        self: &Arc<Self>,
        cx: RunContextBuilder,
        crew: Arc<Crew>,
        options: SpawnOptions,
        budget: Limits,
    ) -> RunContextBuilder {
        let cx = cx.artifacts(crew.artifacts.clone()).gate(self.clone());
        cx.attachment(Arc::new(Member::root(self.clone(), crew, options, budget)))
    }

    /// Returns the fleet that a context's agent is part of.
    pub fn of(cx: &RunContext) -> Option<&Arc<Self>> {
        cx.attachment::<Member>().map(|member| &member.fleet)
    }
}
