//! One answer of a script.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use mainstem_message::{Opaque, StopReason, Usage};
use serde_json::Value;

use crate::{ErrorKind, ModelDelta, ModelError};

/// One answer: steps in order, then usage and the reason to stop, unless the script says otherwise.
///
/// ```
/// use std::time::Duration;
///
/// use mainstem_model::scripted::Turn;
/// use serde_json::json;
///
/// let call = Turn::new().text("Let me see.").call("search", json!({ "query": "rust" }));
/// let slow = Turn::new().wait(Duration::from_secs(1)).text("Found.");
/// # let _ = (call, slow);
/// ```
#[derive(Debug, Default)]
pub struct Turn {
    pub(super) steps: Vec<Step>,
    pub(super) usage: Option<Usage>,
    pub(super) stop: Option<StopReason>,
    pub(super) pace: Duration,
    failures: Option<Failures>,
    cuts: Option<Failures>,
}

#[derive(Debug)]
struct Failures {
    left: AtomicU32,
    error: ModelError,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Delta(ModelDelta),
    /// A repeated text; one step, so that a long answer takes no memory.
    Repeat {
        text: String,
        times: usize,
    },
    Wait(Duration),
    Fail(ModelError),
    Hang,
    Panic(String),
}

impl Turn {
    /// Creates an empty answer.
    pub fn new() -> Self {
        Self::default()
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Adds one delta of text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.delta(ModelDelta::Text(text.into()))
    }

    /// Adds text word by word, at the pace set by [`pace`](Self::pace).
    #[must_use]
    pub fn say(self, text: &str) -> Self {
        text.split_inclusive(' ').fold(self, |turn, word| turn.paced(ModelDelta::Text(word.to_owned())))
    }

    /// Adds one delta of thinking.
    #[must_use]
    pub fn thinking(self, text: impl Into<String>) -> Self {
        self.delta(ModelDelta::Thinking(text.into()))
    }

    /// Adds thinking word by word, at the pace set by [`pace`](Self::pace).
    #[must_use]
    pub fn think(self, text: &str) -> Self {
        text.split_inclusive(' ').fold(self, |turn, word| turn.paced(ModelDelta::Thinking(word.to_owned())))
    }

    /// Adds a text `times` times.
    #[must_use]
    pub fn repeat(self, text: impl Into<String>, times: usize) -> Self {
        self.step(Step::Repeat { text: text.into(), times })
    }

    /// Adds a tool call without an id, its arguments in one piece.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "callers write `json!` in place")]
    pub fn call(self, name: impl Into<String>, arguments: Value) -> Self {
        self.raw_call(name, arguments.to_string())
    }

    /// Adds a tool call whose arguments are raw text, well formed or not.
    #[must_use]
    pub fn raw_call(self, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let slot =
            self.steps.iter().filter(|s| matches!(s, Step::Delta(ModelDelta::CallStart { .. }))).count();
        self.paced(ModelDelta::CallStart { slot, id: None, name: name.into() })
            .delta(ModelDelta::CallArguments { slot, delta: arguments.into() })
            .delta(ModelDelta::CallEnd { slot, opaque: Opaque::new() })
    }

    /// Adds any delta.
    #[must_use]
    pub fn delta(self, delta: ModelDelta) -> Self {
        self.step(Step::Delta(delta))
    }

    /// Adds a pause, on tokio's clock.
    #[must_use]
    pub fn wait(self, time: Duration) -> Self {
        self.step(Step::Wait(time))
    }

    /// Sets the pause before each piece of later [`say`](Self::say), [`think`](Self::think) and
    /// calls.
    #[must_use]
    pub fn pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    fn paced(self, delta: ModelDelta) -> Self {
        let pace = self.pace;
        let turn = if pace.is_zero() { self } else { self.wait(pace) };
        turn.delta(delta)
    }

    /// Sets the usage; by default it is estimated from the texts, a token for four bytes.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Sets why it stops; by default `tool_calls` or `stop`.
    #[must_use]
    pub fn stop(mut self, reason: StopReason) -> Self {
        self.stop = Some(reason);
        self
    }

    /// Fails the call here.
    #[must_use]
    pub fn fail(self, error: ModelError) -> Self {
        self.step(Step::Fail(error))
    }

    /// Cuts the connection here.
    #[must_use]
    pub fn cut(self) -> Self {
        self.fail(ModelError::new(ErrorKind::Transport, "the connection was cut"))
    }

    /// Leaves the stream pending from here on.
    #[must_use]
    pub fn hang(self) -> Self {
        self.step(Step::Hang)
    }

    /// Panics here.
    #[must_use]
    pub fn panic(self, message: impl Into<String>) -> Self {
        self.step(Step::Panic(message.into()))
    }

    /// Refuses the first `times` calls as rate limited.
    #[must_use]
    pub fn rate_limited(self, times: u32) -> Self {
        self.fail_first(times, ModelError::from_status(429, "too many requests"))
    }

    /// Fails the first `times` calls before anything is delivered.
    #[must_use]
    pub fn fail_first(mut self, times: u32, error: ModelError) -> Self {
        self.failures = Some(Failures { left: AtomicU32::new(times), error });
        self
    }

    /// Cuts the connection in the first `times` calls where the content ends, before the usage and
    /// the reason to stop.
    #[must_use]
    pub fn cut_first(mut self, times: u32) -> Self {
        let error = ModelError::new(ErrorKind::Transport, "the connection was cut");
        self.cuts = Some(Failures { left: AtomicU32::new(times), error });
        self
    }

    /// Takes the next failure at the start of a call, if any is left.
    pub(super) fn take_failure(&self) -> Option<ModelError> {
        self.failures.as_ref()?.take()
    }

    /// Takes the next failure where the content ends, if any is left.
    pub(super) fn take_cut_if(&self, is_at_end: bool) -> Option<ModelError> {
        self.cuts.as_ref().filter(|_| is_at_end)?.take()
    }
}

impl Failures {
    fn take(&self) -> Option<ModelError> {
        let take = |left: u32| left.checked_sub(1);
        self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).ok()?;
        Some(self.error.clone())
    }
}
