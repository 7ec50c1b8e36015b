//! The host of tool calls in tests.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::Arc,
};

use mainstem_event::{EventKind, EventSink, EventSource, Settle, Timestamp};
use mainstem_message::{RunId, SessionId, ToolCallId};
use mainstem_tool::ToolHost;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub(super) struct Host {
    pub(super) sink: EventSink,
    pub(super) user: Option<Arc<str>>,
    pub(super) values: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    pub(super) cancel: CancellationToken,
    pub(super) deadline: Option<Timestamp>,
    call: ToolCallId,
    attributes: Map<String, Value>,
}

impl Host {
    pub(super) fn new(sink: EventSink) -> Self {
        Self {
            sink,
            user: None,
            values: HashMap::new(),
            cancel: CancellationToken::new(),
            deadline: None,
            call: "call-1".into(),
            attributes: Map::new(),
        }
    }

    /// Returns the host of a child's calls in the same run.
    pub(super) fn child(&self, sink: EventSink) -> Self {
        let (user, values) = (self.user.clone(), self.values.clone());
        let (cancel, deadline) = (self.cancel.child_token(), self.deadline);
        Self { user, values, cancel, deadline, ..Self::new(sink) }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("call", &self.call).finish_non_exhaustive()
    }
}

impl ToolHost for Host {
    fn call_id(&self) -> &ToolCallId {
        &self.call
    }

    fn agent(&self) -> &str {
        let root_id = || self.sink.origin().root_id.as_deref().unwrap_or("main");
        self.source().map_or_else(root_id, |source| &source.agent_id)
    }

    fn source(&self) -> Option<&EventSource> {
        self.sink.origin().source.as_deref()
    }

    fn session_id(&self) -> &SessionId {
        self.source().map_or(&self.sink.origin().session_id, |source| &source.session_id)
    }

    fn run_id(&self) -> Option<&RunId> {
        self.sink.origin().run_id.as_ref()
    }

    fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    fn attributes(&self) -> &Map<String, Value> {
        &self.attributes
    }

    fn value(&self, of: TypeId) -> Option<Arc<dyn Any + Send + Sync>> {
        self.values.get(&of).cloned()
    }

    fn now(&self) -> Timestamp {
        self.sink.log().clock().now()
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    fn progress(&self, delta: String) -> Settle<'_> {
        self.sink.emit(EventKind::ToolResultTextDelta { tool_call_id: self.call.clone(), delta });
        self.sink.settle()
    }
}
