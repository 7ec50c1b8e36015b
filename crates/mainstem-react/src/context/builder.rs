//! Building the context of a root.

use std::{
    any::Any,
    fmt,
    sync::{Arc, Mutex, OnceLock, atomic::AtomicU64},
};

use mainstem_event::{EventSink, Ids, RandomIds, RunSettings, fold::Transcript};
use mainstem_message::ReplyId;
use mainstem_policy::Prices;
use mainstem_tool::Artifacts;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{Invocation, RunContext, Shared};
use crate::{Cancellation, Gate, Meter, OutputSchema, extensions::Extensions};

/// Makes the [`RunContext`] of a root's invocation.
#[must_use]
pub struct RunContextBuilder {
    agent: Arc<str>,
    sink: EventSink,
    cancel: Cancellation,
    extensions: Extensions,
    attachment: Option<Arc<dyn Any + Send + Sync>>,
    shared: Shared,
}

impl RunContextBuilder {
    pub(super) fn new(agent: Arc<str>, sink: EventSink) -> Self {
        let shared = Shared {
            ids: Arc::new(RandomIds),
            lifetime: CancellationToken::new(),
            prices: Arc::default(),
            priced: OnceLock::new(),
            gate: None,
            artifacts: None,
            settings: None,
            output: None,
            user: None,
            attributes: Map::new(),
        };
        Self {
            agent,
            sink,
            cancel: Cancellation::new(),
            extensions: Extensions::default(),
            attachment: None,
            shared,
        }
    }

    /// Where ids come from; random ones by default.
    pub fn ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.shared.ids = ids;
        self
    }

    /// What stops the run.
    pub fn cancel(mut self, cancel: impl Into<Cancellation>) -> Self {
        self.cancel = cancel.into();
        self
    }

    /// Sets the token that stops work that outlives the run when the harness shuts down; by default
    /// it is never cancelled.
    pub fn lifetime(mut self, token: CancellationToken) -> Self {
        self.shared.lifetime = token;
        self
    }

    /// What models cost; the built-in list by default.
    pub fn prices(mut self, prices: Arc<Prices>) -> Self {
        self.shared.prices = prices;
        self
    }

    /// What every tool call of the run has to pass, whichever agent makes it; by default all run.
    pub fn gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.shared.gate = Some(gate);
        self
    }

    /// Where results are kept that are too long for a conversation; without it they are cut.
    pub fn artifacts(mut self, artifacts: Option<Arc<dyn Artifacts>>) -> Self {
        self.shared.artifacts = artifacts;
        self
    }

    /// On whose behalf it works.
    pub fn user(mut self, user: Option<Arc<str>>) -> Self {
        self.shared.user = user;
        self
    }

    /// Anything else that tools should know about the run.
    pub fn attributes(mut self, attributes: Map<String, Value>) -> Self {
        self.shared.attributes = attributes;
        self
    }

    /// What the caller has set for the run: `AGENT_START` of its root records it.
    pub fn settings(mut self, settings: Arc<RunSettings>) -> Self {
        self.shared.settings = Some(settings);
        self
    }

    /// The form that the answer of the run's root shall have; see
    /// [`StructuredOutput`](crate::StructuredOutput).
    pub fn output(mut self, schema: Option<OutputSchema>) -> Self {
        self.shared.output = schema;
        self
    }

    /// The value for [`RunContext::attachment`].
    pub fn attachment<T: Any + Send + Sync>(mut self, attachment: Arc<T>) -> Self {
        self.attachment = Some(attachment);
        self
    }

    /// A value for [`RunContext::get`]; one of each type.
    pub fn extension<T: Any + Send + Sync>(mut self, value: Arc<T>) -> Self {
        self.extensions.insert(value);
        self
    }

    /// The context.
    pub fn build(self) -> RunContext {
        let reply_id = self.sink.origin().reply_id.clone();
        let reply_id = reply_id.unwrap_or_else(|| ReplyId::new(self.shared.ids.next("reply-")));
        let invocation = Invocation {
            agent: self.agent,
            transcript: Mutex::new(Transcript::new(reply_id)),
            sink: self.sink,
            cancel: self.cancel,
            latest: AtomicU64::new(0),
            latest_at: AtomicU64::new(0),
            meter: Meter::default(),
            above: None,
            declaration: None,
        };
        let shared = Arc::new(self.shared);
        let (invocation, extensions) = (Arc::new(invocation), self.extensions);
        let attachment = self.attachment;
        RunContext { shared, invocation, extensions, call: None, deadline: None, cause: None, attachment }
    }
}

impl fmt::Debug for RunContextBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContextBuilder").field("agent", &self.agent).finish_non_exhaustive()
    }
}
