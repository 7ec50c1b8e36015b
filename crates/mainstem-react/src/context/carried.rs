//! What a context carries for others: the application, the crate above this one, the loop.

use std::{any::Any, sync::Arc};

use mainstem_event::RunSettings;
use mainstem_tool::Artifacts;

use super::RunContext;
use crate::{Declaration, Gate, OutputSchema, span::Unawaited};

impl RunContext {
    /// The same invocation with one more value for [`get`](Self::get), also for children begun with
    /// this context.
    #[must_use]
    pub fn with_extension<T: Any + Send + Sync>(mut self, value: Arc<T>) -> Self {
        self.extensions.insert(value);
        self
    }

    /// A value of the embedding application, by its type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.extensions.get()
    }

    /// The same invocation with another [`attachment`](Self::attachment), also for children begun
    /// with it.
    #[must_use]
    pub fn with_attachment<T: Any + Send + Sync>(mut self, attachment: Arc<T>) -> Self {
        self.attachment = Some(attachment);
        self
    }

    /// Returns what a crate above this one attached to the run, if it is of this type: one value,
    /// in which that crate has all it knows about an invocation.
    pub fn attachment<T: Any>(&self) -> Option<&T> {
        self.attachment.as_deref()?.downcast_ref()
    }

    /// The same invocation for a child that nothing waits for: the span of the next invocation is
    /// linked to the current one.
    #[must_use]
    pub fn unawaited(mut self) -> Self {
        self.cause = Some(Unawaited::now());
        self
    }

    /// Why the next invocation begins, if nothing waits for it.
    pub(crate) fn cause(&self) -> Option<&Unawaited> {
        self.cause.as_deref()
    }

    /// What the caller has set for the run.
    pub(crate) fn settings(&self) -> Option<&Arc<RunSettings>> {
        self.shared.settings.as_ref()
    }

    /// The form that the answer of the run's root shall have.
    pub(crate) fn output(&self) -> Option<&OutputSchema> {
        self.shared.output.as_ref()
    }

    /// What the agent was spawned as, if that is to be recorded.
    pub(crate) fn declaration(&self) -> Option<&Declaration> {
        self.invocation.declaration.as_deref()
    }

    /// What every tool call has to pass, if there is anything.
    pub(crate) fn gate(&self) -> Option<&Arc<dyn Gate>> {
        self.shared.gate.as_ref()
    }

    /// Where results are kept that are too long for the conversation, if there is a place.
    pub(crate) fn artifacts(&self) -> Option<&Arc<dyn Artifacts>> {
        self.shared.artifacts.as_ref()
    }
}
