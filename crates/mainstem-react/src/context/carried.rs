//! Values that a context carries for the application, the crate above this one, and the loop.

use std::{any::Any, sync::Arc};

use mainstem_event::RunSettings;
use mainstem_tool::Artifacts;

use super::RunContext;
use crate::{DataStore, Declaration, Gate, OutputSchema, span::Unawaited};

impl RunContext {
    /// Sets a value for [`get`](Self::get), also for children begun with this context.
    #[must_use]
    pub fn with_extension<T: Any + Send + Sync>(mut self, value: Arc<T>) -> Self {
        self.extensions.insert(value);
        self
    }

    /// Returns a value of the embedding application, by its type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.extensions.get()
    }

    /// Sets the [`attachment`](Self::attachment), also for children begun with this context.
    #[must_use]
    pub fn with_attachment<T: Any + Send + Sync>(mut self, attachment: Arc<T>) -> Self {
        self.attachment = Some(attachment);
        self
    }

    /// Returns the value that a crate above this one attached to the run, if it is of this type:
    /// one value with all that crate knows about an invocation.
    pub fn attachment<T: Any>(&self) -> Option<&T> {
        self.attachment.as_deref()?.downcast_ref()
    }

    /// Marks the next invocation as not awaited: its span is linked to the current one.
    #[must_use]
    pub fn unawaited(mut self) -> Self {
        self.cause = Some(Unawaited::now());
        self
    }

    /// Leaves the usage of the children that are created with this context out of that of the
    /// invocation: none of its calls has begun them.
    #[must_use]
    pub fn with_separate_usage(mut self) -> Self {
        self.has_separate_usage = true;
        self
    }

    /// Returns the cause of the next invocation, if no caller awaits it.
    pub(crate) fn cause(&self) -> Option<&Unawaited> {
        self.cause.as_deref()
    }

    /// Returns the settings of the run.
    pub(crate) fn settings(&self) -> Option<&Arc<RunSettings>> {
        self.shared.settings.as_ref()
    }

    /// Returns the schema of the root's answer.
    pub(crate) fn output(&self) -> Option<&OutputSchema> {
        self.shared.output.as_ref()
    }

    /// Returns the declaration of the agent, if it is to be recorded.
    pub(crate) fn declaration(&self) -> Option<&Declaration> {
        self.invocation.declaration.as_deref()
    }

    /// Returns the gate of the run's tool calls.
    pub(crate) fn gate(&self) -> Option<&Arc<dyn Gate>> {
        self.shared.gate.as_ref()
    }

    /// Returns the store of results that are too long for the conversation.
    pub(crate) fn artifacts(&self) -> Option<&Arc<dyn Artifacts>> {
        self.shared.artifacts.as_ref()
    }

    /// Returns the store of the data of messages.
    pub(crate) fn data_store(&self) -> Option<&Arc<dyn DataStore>> {
        self.shared.data.as_ref()
    }
}
