//! The items of a model's stream.

use std::{sync::Arc, time::Duration};

use mainstem_message::{Failure, Opaque, RateLimit, RateLimits, StopReason, ToolCallId, Usage};
use serde_json::Value;

/// One piece of a model's answer, in the order of arrival.
///
/// A text, thinking or data block ends where another kind of content begins, or at
/// [`BlockEnd`](Self::BlockEnd). Tool calls are told apart by `slot`, a number that the decoder
/// chooses; their fragments may interleave.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ModelDelta {
    /// Prose.
    Text(String),
    /// Reasoning.
    Thinking(String),
    /// A data block begins; its bytes follow.
    DataStart {
        /// The media type.
        media_type: String,
    },
    /// Bytes of the open data block, base64.
    Data(String),
    /// The open text, thinking or data block ends; without an open block, this is an empty thinking
    /// block with opaque data.
    BlockEnd {
        /// What the vendor wants back with the block.
        opaque: Opaque,
    },
    /// A tool call begins.
    CallStart {
        /// Which call later fragments belong to.
        slot: usize,
        /// The vendor's id, where it gives one.
        id: Option<ToolCallId>,
        /// The tool's name.
        name: String,
    },
    /// A fragment of a call's JSON arguments.
    CallArguments {
        /// The call.
        slot: usize,
        /// The fragment.
        delta: String,
    },
    /// A tool call is complete. Calls without it end with the stream.
    CallEnd {
        /// Which call.
        slot: usize,
        /// What the vendor wants back with the call.
        opaque: Opaque,
    },
    /// Tokens of this call so far; a later one replaces an earlier one.
    Usage(Usage),
    /// Why the model stopped.
    Stop(StopReason),
    /// A decorator repeats the call: what was delivered of the answer is taken back.
    Retry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How long it waits.
        wait: Duration,
        /// What happened.
        error: Failure,
    },
    /// A decorator calls another model: what was delivered of the answer is taken back.
    Fallback {
        /// The model that failed.
        from: Arc<str>,
        /// The model that is called now.
        to: Arc<str>,
        /// What happened.
        reason: Failure,
    },
    /// The call waits for a limit on the rate of calls before it is sent.
    RateLimitWait {
        /// The limit that holds back the first call in the queue.
        limit: RateLimit,
        /// How long that call waits, if it is known.
        wait: Option<Duration>,
        /// How many calls are before this one in the queue.
        ahead: usize,
        /// Why the service refused the call, if it has sent it before.
        refusal: Option<Failure>,
    },
    /// The call is sent after a [`RateLimitWait`](Self::RateLimitWait).
    RateLimitPassed {
        /// How long it has waited.
        waited: Duration,
    },
    /// What the service still allows, as the head of its response reports.
    RateLimits(Box<RateLimits>),
    /// The service runs one of its own tools for the model.
    ServerToolCall {
        /// The tool's name, as the service has it.
        name: String,
        /// What it is called with.
        input: Value,
    },
    /// The service works on the answer and has nothing new of it, as its state shows: the call is
    /// not silent.
    InProgress,
    /// A decorator calls the model again, which continues its answer: see
    /// [`Continuation`](crate::Continuation). The usage is that of several prompts from here on.
    Continued,
    /// The answer comes in one piece, and why.
    NotStreaming {
        /// Why the model or the server cannot stream.
        reason: String,
    },
}

impl ModelDelta {
    /// Returns `true` if this is part of the answer. Its [`Usage`](Self::Usage) is not: a service
    /// may report the tokens of a prompt before it fails.
    pub fn is_content(&self) -> bool {
        !matches!(
            self,
            Self::Retry { .. }
                | Self::Fallback { .. }
                | Self::RateLimitWait { .. }
                | Self::RateLimitPassed { .. }
                | Self::RateLimits(_)
                | Self::Usage(_)
                | Self::ServerToolCall { .. }
                | Self::InProgress
                | Self::Continued
                | Self::NotStreaming { .. }
        )
    }
}
