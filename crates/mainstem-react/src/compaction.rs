//! Compaction: a conversation that becomes too long for its model is shortened.
//!
//! `estimate`, `plan` and `text` decide, without waiting; `compactor` makes the calls for the
//! summary.

mod compactor;
mod estimate;
mod plan;
mod text;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use mainstem_model::{Model, ModelError, ModelOptions};
use mainstem_policy::ContextWindows;

pub(crate) use self::{
    compactor::Compactor,
    estimate::{Cause, Size},
};

/// When and how an agent's conversation is compacted.
///
/// Before a model call whose prompt would exceed the [threshold](Self::with_threshold), results of
/// earlier tool calls are shortened. If that is not enough, the model summarizes the older messages
/// in a call of its own; the summary, the request in progress and the latest messages stay. The
/// instructions and the tools are separate from the conversation, and stay as they are. A
/// `STATE_CHECKPOINT` has the new conversation.
///
/// The context window is that of [`ContextWindows`], or what the vendor names when it refuses a
/// prompt as too long; such a prompt is compacted and sent once more. Of a model whose window is
/// unknown, only a refused prompt is compacted. If a service refuses the bytes of a request, the
/// older half of the data (images, documents, audio) leaves the conversation, as often as needed;
/// that of the request in progress stays. Data of earlier messages that the model can't read is
/// left out of its requests, and stays in the conversation.
#[derive(Clone)]
pub struct Compaction {
    is_on: bool,
    threshold: f64,
    keep: f64,
    model: Option<Arc<dyn Model>>,
    windows: Arc<ContextWindows>,
    /// The models so far, which are few. Clones share them.
    known: Arc<Mutex<Vec<Known>>>,
}

/// What is known of a model.
struct Known {
    provider: Option<Box<str>>,
    name: Box<str>,
    /// The context window: what its vendor has named, or the table's.
    window: Option<u64>,
    /// The bytes of a token, as its vendor last counted.
    token: Option<f64>,
}

/// The share of the window that a prompt may have, by default.
const THRESHOLD: f64 = 0.8;

/// The share of the window that the latest messages may have after a compaction, by default.
const KEEP: f64 = 0.25;

/// The smallest window that a refusal may name; less is not one of a model.
const LEAST: u64 = 512;

impl Compaction {
    /// Sets whether conversations are compacted at all; `true` by default.
    #[must_use]
    pub fn with_enabled(mut self, enabled: bool) -> Self {
        self.is_on = enabled;
        self
    }

    /// Sets the share of the context window above which a prompt is compacted, from 0.1 to 1; 0.8
    /// by default. Values out of range become the nearest valid one.
    #[must_use]
    pub fn with_threshold(mut self, share: f64) -> Self {
        self.threshold = share.clamp(0.1, 1.0);
        self
    }

    /// Sets the share of the context window that the latest messages keep, from 0.05 to 0.5; 0.25
    /// by default. Values out of range become the nearest valid one.
    #[must_use]
    pub fn with_keep(mut self, share: f64) -> Self {
        self.keep = share.clamp(0.05, 0.5);
        self
    }

    /// Sets the model that summarizes, such as a cheap one; the agent's own by default. It gets as
    /// much at once as the agent's own model could read, and less once it refuses that as too long.
    #[must_use]
    pub fn with_model(mut self, model: impl Model) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// Sets the context windows of models; the built-in list by default.
    #[must_use]
    pub fn with_windows(mut self, windows: ContextWindows) -> Self {
        (self.windows, self.known) = (Arc::new(windows), Arc::default());
        self
    }

    /// Reads or changes what is known of a model. Takes a lock, and allocates nothing for a model
    /// that was seen before: each call of a model needs it.
    fn of_model<T>(&self, model: &dyn Model, of: impl FnOnce(&mut Known) -> T) -> T {
        let (provider, name) = (model.provider(), model.name());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |one: &Known| *one.name == *name && one.provider.as_deref() == provider;
        let index = known.iter().position(is_it).unwrap_or_else(|| {
            let window = self.windows.window(name).filter(|window| *window > 0);
            known.push(Known { provider: provider.map(Into::into), name: name.into(), window, token: None });
            known.len() - 1
        });
        of(&mut known[index])
    }

    /// Returns the context window of a model in tokens, if it is known.
    pub(crate) fn window(&self, model: &dyn Model) -> Option<u64> {
        self.of_model(model, |known| known.window)
    }

    /// Remembers the context window in a refusal, if it has one.
    pub(crate) fn learn(&self, model: &dyn Model, refusal: &ModelError) {
        if let Some(window) = refusal.context_window().filter(|window| *window >= LEAST) {
            self.of_model(model, |known| known.window = Some(window));
        }
    }

    /// Returns the tokens above which a prompt is compacted.
    fn limit(&self, window: u64, options: &ModelOptions) -> u64 {
        share(window, self.threshold).min(most(window, options))
    }
}

impl Default for Compaction {
    fn default() -> Self {
        let (is_on, threshold, keep) = (true, THRESHOLD, KEEP);
        Self { is_on, threshold, keep, model: None, windows: Arc::default(), known: Arc::default() }
    }
}

impl fmt::Debug for Compaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compaction")
            .field("is_on", &self.is_on)
            .field("threshold", &self.threshold)
            .field("keep", &self.keep)
            .field("model", &self.model.as_ref().map(|model| model.name()))
            .finish_non_exhaustive()
    }
}

/// Returns the most tokens that a prompt may have, beside its answer.
fn most(window: u64, options: &ModelOptions) -> u64 {
    window - options.output_estimate().min(window / 4)
}

/// Returns a share of a number of tokens.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an estimate; the share is from 0 to 1"
)]
fn share(tokens: u64, share: f64) -> u64 {
    (tokens as f64 * share) as u64
}
