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
    spec: Arc<Value>,
    is_recorded: AtomicBool,
}

impl Declaration {
    /// Creates a declaration as JSON, under a version that is unique in the session.
    pub fn new(version: impl Into<Arc<str>>, spec: Value) -> Self {
        Self { version: version.into(), spec: Arc::new(spec), is_recorded: AtomicBool::new(false) }
    }

    /// Returns the declaration, for the first caller only.
    fn take(&self) -> Option<Arc<Value>> {
        (!self.is_recorded.swap(true, Ordering::AcqRel)).then(|| self.spec.clone())
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
