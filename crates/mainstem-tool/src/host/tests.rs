//! A host without an engine, for the tests of this crate.

use std::sync::Arc;

use mainstem_event::{Clock, EventKind, EventSink, Origin, SessionLog, SystemClock};
use serde_json::json;

use super::*;
use crate::ToolContext;

pub(crate) struct Bare {
    call: ToolCallId,
    session: SessionId,
    attributes: Map<String, Value>,
    value: Arc<u8>,
    sink: EventSink,
    pub(crate) cancel: CancellationToken,
}

/// Returns the call `call-1` of the agent `main` in the session `s`.
pub(crate) fn context() -> ToolContext {
    let sink =
        EventSink::root(SessionLog::new("s".parse().unwrap()), Origin::session("s".parse().unwrap(), None));
    ToolContext::new(Arc::new(Bare {
        call: "call-1".into(),
        session: "s".parse().unwrap(),
        attributes: Map::from_iter([("tenant".to_owned(), json!("acme"))]),
        value: Arc::new(7),
        sink,
        cancel: CancellationToken::new(),
    }))
}

/// Returns what was streamed.
pub(crate) fn streamed(cx: &ToolContext) -> Vec<String> {
    let mut cursor = cx.host::<Bare>().unwrap().sink.log().subscribe_from(1);
    std::iter::from_fn(|| cursor.try_next()).map(|event| event.kind.to_string()).collect()
}

impl ToolHost for Bare {
    fn call_id(&self) -> &ToolCallId {
        &self.call
    }

    fn agent(&self) -> &str {
        "main"
    }

    fn source(&self) -> Option<&EventSource> {
        None
    }

    fn session_id(&self) -> &SessionId {
        &self.session
    }

    fn run_id(&self) -> Option<&RunId> {
        None
    }

    fn user(&self) -> Option<&str> {
        Some("ann")
    }

    fn attributes(&self) -> &Map<String, Value> {
        &self.attributes
    }

    fn value(&self, of: TypeId) -> Option<Arc<dyn Any + Send + Sync>> {
        (of == TypeId::of::<u8>()).then(|| self.value.clone() as _)
    }

    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn deadline(&self) -> Option<Timestamp> {
        Some(Timestamp::from_micros(u64::MAX))
    }

    fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    fn progress(&self, delta: String) -> Settle<'_> {
        self.sink.emit(EventKind::ToolResultTextDelta { tool_call_id: self.call.clone(), delta });
        self.sink.settle()
    }
}
