//! What `AGENT_START` records besides the input: the settings of a run, and the declaration of a
//! child.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use mainstem_event::RunSettings;
use serde_json::Value;

use crate::RunContext;

/// A version of an agent's declaration. The first child that starts with it records the whole of
/// it, every other child the version.
#[derive(Debug)]
pub struct Declaration {
    version: Arc<str>,
    spec: Option<Arc<Value>>,
    is_recorded: AtomicBool,
}

impl Declaration {
    /// Creates a declaration as JSON, under a version that is unique in the session.
    pub fn new(version: impl Into<Arc<str>>, spec: Value) -> Self {
        let (version, spec) = (version.into(), Some(Arc::new(spec)));
        Self { version, spec, is_recorded: AtomicBool::new(false) }
    }

    /// Creates the declaration of an agent that only code can build: its version alone is recorded.
    pub fn of_code(version: impl Into<Arc<str>>) -> Self {
        Self { version: version.into(), spec: None, is_recorded: AtomicBool::new(false) }
    }

    /// Returns the declaration, for the first caller only.
    fn take(&self) -> Option<Arc<Value>> {
        self.spec.as_ref().filter(|_| !self.is_recorded.swap(true, Ordering::AcqRel)).cloned()
    }
}

/// Returns the settings that the root of a run records; `None` for other agents, and if all are
/// defaults.
pub(crate) fn settings(cx: &RunContext) -> Option<Arc<RunSettings>> {
    cx.settings().filter(|settings| cx.depth() == 0 && !settings.is_default()).cloned()
}

/// Returns the version that a child records in its first turn, with the declaration if it has to be
/// recorded.
pub(crate) fn spec(cx: &RunContext) -> (Option<Arc<str>>, Option<Arc<Value>>) {
    let Some(declaration) = cx.declaration() else { return (None, None) };
    (Some(declaration.version.clone()), declaration.take())
}
