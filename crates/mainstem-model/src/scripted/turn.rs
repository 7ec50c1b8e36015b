//! One answer of a script.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use mainstem_message::{Opaque, StopReason, Usage};
use serde_json::Value;

use crate::{ErrorKind, ModelDelta, ModelError};

/// One answer: steps in order, then usage and the reason to stop, unless the script says otherwise.
#[derive(Debug, Default)]
pub struct Turn {
    pub(super) steps: Vec<Step>,
    pub(super) usage: Option<Usage>,
    pub(super) stop: Option<StopReason>,
    pub(super) pace: Duration,
    failures: Option<Failures>,
}

#[derive(Debug)]
struct Failures {
    left: AtomicU32,
    error: ModelError,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Delta(ModelDelta),
    /// The same text again and again; kept as one step so that a long answer costs no memory.
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
    /// An answer that says nothing.
    pub fn new() -> Self {
        Self::default()
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// One delta of text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.delta(ModelDelta::Text(text.into()))
    }

    /// The text word by word, at the pace set by [`pace`](Self::pace).
    #[must_use]
    pub fn say(self, text: &str) -> Self {
        text.split_inclusive(' ').fold(self, |turn, word| turn.paced(ModelDelta::Text(word.to_owned())))
    }

    /// One delta of thinking.
    #[must_use]
    pub fn thinking(self, text: impl Into<String>) -> Self {
        self.delta(ModelDelta::Thinking(text.into()))
    }

    /// The thought word by word, at the pace set by [`pace`](Self::pace).
    #[must_use]
    pub fn think(self, text: &str) -> Self {
        text.split_inclusive(' ').fold(self, |turn, word| turn.paced(ModelDelta::Thinking(word.to_owned())))
    }

    /// The same text, `times` times.
    #[must_use]
    pub fn repeat(self, text: impl Into<String>, times: usize) -> Self {
        self.step(Step::Repeat { text: text.into(), times })
    }

    /// A tool call, its arguments in one piece, without an id of its own.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "callers write `json!` in place")]
    pub fn call(self, name: impl Into<String>, arguments: Value) -> Self {
        self.raw_call(name, arguments.to_string())
    }

    /// A tool call with the arguments as raw text, well formed or not.
    #[must_use]
    pub fn raw_call(self, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let slot =
            self.steps.iter().filter(|s| matches!(s, Step::Delta(ModelDelta::CallStart { .. }))).count();
        self.paced(ModelDelta::CallStart { slot, id: None, name: name.into() })
            .delta(ModelDelta::CallArguments { slot, delta: arguments.into() })
            .delta(ModelDelta::CallEnd { slot, opaque: Opaque::new() })
    }

    /// Any delta.
    #[must_use]
    pub fn delta(self, delta: ModelDelta) -> Self {
        self.step(Step::Delta(delta))
    }

    /// A pause, on tokio's clock.
    #[must_use]
    pub fn wait(self, time: Duration) -> Self {
        self.step(Step::Wait(time))
    }

    /// How long [`say`](Self::say), [`think`](Self::think) and calls that follow wait before each
    /// piece.
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

    /// What the call cost; else counted from the texts, a token for four bytes.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Why it stops; else `tool_calls` or `stop`.
    #[must_use]
    pub fn stop(mut self, reason: StopReason) -> Self {
        self.stop = Some(reason);
        self
    }

    /// The call fails here.
    #[must_use]
    pub fn fail(self, error: ModelError) -> Self {
        self.step(Step::Fail(error))
    }

    /// The connection is cut here.
    #[must_use]
    pub fn cut(self) -> Self {
        self.fail(ModelError::new(ErrorKind::Transport, "the connection was cut"))
    }

    /// Nothing comes any more.
    #[must_use]
    pub fn hang(self) -> Self {
        self.step(Step::Hang)
    }

    /// The model's code panics here.
    #[must_use]
    pub fn panic(self, message: impl Into<String>) -> Self {
        self.step(Step::Panic(message.into()))
    }

    /// The first `times` calls are refused as rate limited.
    #[must_use]
    pub fn rate_limited(self, times: u32) -> Self {
        self.fail_first(times, ModelError::from_status(429, "too many requests"))
    }

    /// The first `times` calls fail, before anything is delivered.
    #[must_use]
    pub fn fail_first(mut self, times: u32, error: ModelError) -> Self {
        self.failures = Some(Failures { left: AtomicU32::new(times), error });
        self
    }

    /// The failure that this call meets at its start, if any is left.
    pub(super) fn take_failure(&self) -> Option<ModelError> {
        let failures = self.failures.as_ref()?;
        let take = |left: u32| left.checked_sub(1);
        failures.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).ok()?;
        Some(failures.error.clone())
    }
}
