#![doc = include_str!("../README.md")]
//!
//! [`OpenAi`] and [`OpenAiResponses`] are [`Endpoint`]s: values with their settings, cheap to
//! clone.
//!
//! For models by name, such as `openai:gpt-4o-mini`:
//!
//! ```
//! # use std::sync::Arc;
//! # use mainstem_model::ModelRegistry;
//! # use mainstem_openai::OpenAi;
//! let registry = ModelRegistry::new()
//!     .with_provider("openai", |model| Ok(Arc::new(OpenAi::from_env(model)?)));
//! ```
//!
//! Other vendors that offer these APIs are [`service`]s:
//!
//! ```
//! # use mainstem_openai::{ConfigError, OpenAi, service::GROQ};
//! # fn main() -> Result<(), ConfigError> {
//! # let var = |name: &str| (name == "GROQ_API_KEY").then(|| "k".to_owned());
//! let groq = OpenAi::of_service(&GROQ, "openai/gpt-oss-120b", var)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Which of the two
//! * servers: [`OpenAi`]: nearly all; [`OpenAiResponses`]: OpenAI, Azure, and some that follow them
//! * reasoning of OpenAI's models: [`OpenAi`]: is lost after each turn, and never seen;
//!   [`OpenAiResponses`]: goes back encrypted with the next request; a summary is streamed when
//!   `effort` is set
//! * images and files that a tool returns: [`OpenAi`]: follow its result, as the user's;
//!   [`OpenAiResponses`]: are in its result
//! * sound: [`OpenAi`]: wav and mp3; [`OpenAiResponses`]: none
//! * `stop`, `seed`: [`OpenAi`]: sent; [`OpenAiResponses`]: do not exist there, and are left out
//! * `effort`: [`OpenAi`]: `reasoning_effort`; [`OpenAiResponses`]: `reasoning.effort`
//! * `thinking_budget`: [`OpenAi`]: `reasoning.max_tokens` at OpenRouter; elsewhere and in
//!   [`OpenAiResponses`] an error unless there is an effort
//!
//! So: responses for OpenAI's reasoning models, above all with tools, which they call while they
//! reason; chat completions for everything else. A conversation may switch between the two.
//!
//! # What is streamed
//! Each chunk or event becomes its deltas at once; `Usage` and `Stop` come last. A response that
//! has failed and says what it has used yields its `Usage` before the error. A refusal is text, and
//! the reason to stop. A response that is cut off is an error; so is an error that the server
//! reports in the middle of its stream.
//!
//! Chat completions: reasoning is read from `reasoning_content`, `reasoning` and Mistral's thinking
//! parts. Fragments of tool calls are assigned correctly even if `index` is missing or always 0.
//! `finish_reason` or `[DONE]` ends a response.
//!
//! Responses: each message is a block of text, each reasoning item a block of thinking, of its
//! summary or, at servers that show it, of the reasoning itself. What must be sent back is stored
//! under `openai` in the block's opaque fields: a whole reasoning item, or the phase of a message.
//! `response.completed`, `response.incomplete` or `response.failed` ends a response. Items of the
//! vendor's own tools (web search, code interpreter) are stored and sent back as they are; those of
//! its further tools, requested in `extra`, are discarded.
//!
//! OpenAI and Azure get two fields more, which other servers may refuse: `prompt_cache_key`, the
//! request's [`cache_key`](mainstem_model::ModelRequest::cache_key), and `stream_options` with
//! `include_obfuscation: false`, without which each chunk has random text.
//!
//! # What outlives a cut
//! With [`OnCut::Resume`](mainstem_model::OnCut::Resume), OpenAI and Azure write responses in the
//! [background], and store them (`store: true`). When the connection is cut, or silent for 30 s,
//! the rest is requested by the number of the last event; the vendor has that stream for minutes.
//! After that, the response is requested every 2 s until it is complete. A call is repeated after
//! ten requests in a row that brought nothing, after 15 minutes in progress without anything new,
//! or if the vendor does not have the response. A call that is dropped is cancelled, in a task of
//! its own (`mainstem_http::cancels_sent`); one that is dropped before its first event, or whose
//! process dies, is written to its end and paid for. Neither API has idempotency keys.
//!
//! [background]: https://platform.openai.com/docs/guides/background
//!
//! # What a server does not support
//! After an error about one of these, the request is repeated without it, and clones remember:
//!
//! * `stream` (a model or organization that may not): the answer comes in one piece, after
//!   [`NotStreaming`](mainstem_model::ModelDelta::NotStreaming)
//! * chat: `stream_options`: tokens may not be counted
//! * `prompt_cache_key`, `include_obfuscation`: neither is sent
//! * chat: `max_tokens`: `max_completion_tokens` is sent
//! * chat: a missing `reasoning_content`: the reasoning of earlier turns is sent along with their
//!   tool calls
//! * chat: `reasoning_effort`, responses: `reasoning.effort` (a model that does not reason): the
//!   vendor's default
//! * responses: encrypted reasoning in `include` (a model that does not reason): none is requested
//! * responses: `reasoning.summary` (an organization that may not): the thinking is not visible
//! * responses: `background`, `store` (an organization whose data is not retained): neither is
//!   requested, and a cut response is repeated
//! * responses: reasoning that another account encrypted: that of earlier turns is left out, of
//!   this request only

mod chat;
mod chunk;
mod decoder;
mod dialect;
mod models;
mod request;
mod responses;
pub mod service;
mod settings;

pub use chat::{ChatCompletions, OpenAi, azure};
pub use mainstem_http::{ConfigError, Endpoint};
pub use responses::{OpenAiResponses, Responses};
pub use settings::OpenAiExt;
