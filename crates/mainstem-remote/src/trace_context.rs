//! The trace that a turn is part of.

use std::{fmt, sync::Arc};

/// Returns the [`traceparent`](https://www.w3.org/TR/trace-context/#traceparent-header) of the
/// current `tracing` span, which a remote gets with each request of a turn, so that its spans are
/// below those of this process. A program that exports traces knows it.
#[derive(Clone, Default)]
pub struct TraceContext(Option<Arc<dyn Fn() -> Option<String> + Send + Sync>>);

impl TraceContext {
    /// Creates one that calls a function in the span of the child.
    pub fn new(trace_parent: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(trace_parent)))
    }

    pub(crate) fn trace_parent(&self) -> Option<String> {
        self.0.as_ref().and_then(|current| current())
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceContext").field("is_set", &self.0.is_some()).finish_non_exhaustive()
    }
}
