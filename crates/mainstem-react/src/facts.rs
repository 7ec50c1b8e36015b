//! What `AGENT_START` records besides the input: what a run was given, and what a child was spawned as.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use mainstem_event::RunSettings;
use mainstem_message::AgentKey;
use serde_json::Value;

use crate::RunContext;

/// What the caller has set for a run, recorded when its root starts. An extension of the run's context.
#[derive(Clone, Debug)]
pub struct RunFacts(pub Arc<RunSettings>);

/// What a child was spawned as, recorded when its first turn starts. An extension of the child's context.
#[derive(Clone, Debug)]
pub struct SpawnFacts {
    agent: AgentKey,
    declaration: Arc<Declaration>,
}

/// A version of an agent's declaration. The first child that starts with it records the whole of it, every other child the version.
#[derive(Debug)]
pub struct Declaration {
    version: Arc<str>,
    spec: Arc<Value>,
    is_recorded: AtomicBool,
}

impl SpawnFacts {
    /// What the child of this key was spawned as.
    pub fn new(agent: AgentKey, declaration: Arc<Declaration>) -> Self {
        Self { agent, declaration }
    }
}

impl Declaration {
    /// A declaration as JSON, under a version that no other declaration of the session has.
    pub fn new(version: impl Into<Arc<str>>, spec: Value) -> Self {
        Self { version: version.into(), spec: Arc::new(spec), is_recorded: AtomicBool::new(false) }
    }

    /// The declaration, for the first caller only.
    fn take(&self) -> Option<Arc<Value>> {
        (!self.is_recorded.swap(true, Ordering::AcqRel)).then(|| self.spec.clone())
    }
}

/// Returns the settings that the root of a run records; `None` for other agents, and if all are defaults.
pub(crate) fn settings(cx: &RunContext) -> Option<Arc<RunSettings>> {
    let facts = cx.get::<RunFacts>().filter(|_| cx.depth() == 0)?;
    (!facts.0.is_default()).then(|| facts.0.clone())
}

/// The version that a child records in its first turn, with the declaration if it has to be recorded. An agent below the child that is
/// run as a tool has the child's extensions, but another key.
pub(crate) fn spec(cx: &RunContext) -> (Option<Arc<str>>, Option<Arc<Value>>) {
    let is_first = |facts: &Arc<SpawnFacts>| {
        cx.source().is_some_and(|source| source.turn == 1 && source.agent_key == facts.agent)
    };
    let Some(facts) = cx.get::<SpawnFacts>().filter(is_first) else { return (None, None) };
    (Some(facts.declaration.version.clone()), facts.declaration.take())
}
