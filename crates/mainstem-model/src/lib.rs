#![doc = include_str!("../README.md")]
//!
//! A provider implements one function, [`Model::stream`]. What every provider needs besides is a
//! decorator around a `Model`, itself a `Model`: [`Retry`], [`Fallback`], [`IdleTimeout`],
//! [`Breaker`], [`RateLimited`]. A decorator reports its actions in the stream
//! ([`ModelDelta::Retry`] …); one that repeats a call takes back what the failed one has said.
//!
//! [`ScriptedModel`] plays a script instead of calling a service: for tests, and for the demo.

mod breaker;
mod continuation;
mod delta;
mod error;
mod fallback;
mod idle_timeout;
mod model;
mod rate_limit;
mod registry;
mod request;
mod retry;
pub mod scripted;

pub use breaker::{Breaker, BreakerPolicy};
pub use continuation::Continuation;
pub use delta::ModelDelta;
pub use error::{ErrorKind, ModelError};
pub use fallback::Fallback;
pub use idle_timeout::IdleTimeout;
pub use mainstem_message::ToolSpec;
pub use model::{Model, ModelStream};
pub use rate_limit::{Account, RateLimited, RateLimiter, RateLimiters, RatePolicy};
pub use registry::{ModelRegistry, ResolveError};
pub use request::{
    ModelOptions, ModelRequest, OnCut, PromptCache, ResponseFormat, ToolChoice, size_of, size_of_tool,
};
pub use retry::{Retry, RetryPolicy};
#[doc(inline)]
pub use scripted::ScriptedModel;

// The layers in whose types this one speaks, so that it can be used alone.
pub use mainstem_message as message;
