//! The builder of a root's context.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU32, AtomicU64, AtomicUsize},
    },
};

use mainstem_event::{CallPurpose, EventSink, Ids, RandomIds, RunSettings, fold::Transcript};
use mainstem_message::ReplyId;
use mainstem_policy::Prices;
use mainstem_tool::Artifacts;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{Invocation, RunContext, Shared};
use crate::{Cancellation, DataStore, Gate, Meter, OutputSchema, extensions::Extensions};

/// Builds the [`RunContext`] of a root's invocation.
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
            data: None,
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

    /// Sets the source of ids; random ones by default.
    pub fn with_ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.shared.ids = ids;
        self
    }

    /// Sets the cancellation of the run.
    pub fn with_cancel(mut self, cancel: impl Into<Cancellation>) -> Self {
        self.cancel = cancel.into();
        self
    }

    /// Sets the token that stops work that outlives the run, at the harness's shutdown; by default
    /// one that is never cancelled.
    pub fn with_lifetime(mut self, token: CancellationToken) -> Self {
        self.shared.lifetime = token;
        self
    }

    /// Sets the prices of models; the built-in list by default.
    pub fn with_prices(mut self, prices: Arc<Prices>) -> Self {
        self.shared.prices = prices;
        self
    }

    /// Sets the gate of every tool call of the run, whichever agent makes it; by default all calls
    /// run.
    pub fn with_gate(mut self, gate: Arc<dyn Gate>) -> Self {
        self.shared.gate = Some(gate);
        self
    }

    /// Sets the store of results that are too long for a conversation; without it they are cut.
    pub fn with_artifacts(mut self, artifacts: Option<Arc<dyn Artifacts>>) -> Self {
        self.shared.artifacts = artifacts;
        self
    }

    /// Sets the store of the data of messages; without it data stays in the messages.
    pub fn with_data_store(mut self, store: Option<Arc<dyn DataStore>>) -> Self {
        self.shared.data = store;
        self
    }

    /// Sets the user on whose behalf it runs.
    pub fn with_user(mut self, user: Option<Arc<str>>) -> Self {
        self.shared.user = user;
        self
    }

    /// Sets attributes of the run for tools.
    pub fn with_attributes(mut self, attributes: Map<String, Value>) -> Self {
        self.shared.attributes = attributes;
        self
    }

    /// Sets the settings of the run, which the `AGENT_START` of its root records. With
    /// [`compacts`](RunSettings::compacts) the agent only compacts its conversation.
    pub fn with_settings(mut self, settings: Arc<RunSettings>) -> Self {
        self.shared.settings = Some(settings);
        self
    }

    /// Sets the schema of the root's answer; see [`StructuredOutput`](crate::StructuredOutput).
    pub fn with_output(mut self, schema: Option<OutputSchema>) -> Self {
        self.shared.output = schema;
        self
    }

    /// Sets the value for [`RunContext::attachment`].
    pub fn with_attachment<T: Any + Send + Sync>(mut self, attachment: Arc<T>) -> Self {
        self.attachment = Some(attachment);
        self
    }

    /// Sets a value for [`RunContext::get`]; one of each type.
    pub fn with_extension<T: Any + Send + Sync>(mut self, value: Arc<T>) -> Self {
        self.extensions.insert(value);
        self
    }

    /// Builds the context.
    pub fn build(self) -> RunContext {
        let reply_id = self.sink.origin().reply_id.clone();
        let reply_id = reply_id.unwrap_or_else(|| ReplyId::from_lossy(self.shared.ids.next("reply-")));
        let invocation = Invocation {
            agent: self.agent,
            transcript: Mutex::new(Transcript::new(reply_id)),
            sink: self.sink,
            cancel: self.cancel,
            latest: AtomicU64::new(0),
            latest_at: AtomicU64::new(0),
            cuts: AtomicU32::new(0),
            answered: AtomicUsize::new(0),
            meter: Meter::default(),
            above: None,
            declaration: None,
        };
        let shared = Arc::new(self.shared);
        let (invocation, extensions) = (Arc::new(invocation), self.extensions);
        let attachment = self.attachment;
        let compacts = shared.settings.as_ref().is_some_and(|settings| settings.compacts);
        let purpose = compacts.then_some(CallPurpose::Compaction);
        let (call, deadline, cause, has_separate_usage) = (None, None, None, false);
        RunContext {
            shared,
            invocation,
            extensions,
            call,
            deadline,
            purpose,
            cause,
            has_separate_usage,
            attachment,
        }
    }
}

impl fmt::Debug for RunContextBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContextBuilder").field("agent", &self.agent).finish_non_exhaustive()
    }
}
