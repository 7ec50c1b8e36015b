#![doc = include_str!("../README.md")]
//!
//! [`OpenAi`] and [`OpenAiResponses`] are [`Endpoint`]s, which see: values with their settings in
//! them, cheap to clone.
//!
//! For models by name, such as `openai:gpt-4o-mini`:
//!
//! ```
//! # use std::sync::Arc;
//! # use mainstem_model::ModelRegistry;
//! # use mainstem_openai::OpenAi;
//! let registry = ModelRegistry::new().with_provider("openai", |model| Ok(Arc::new(OpenAi::from_env(model)?)));
//! ```
//!
//! # Which of the two
//! | | [`OpenAi`] | [`OpenAiResponses`] |
//! |---|---|---|
//! | servers | nearly all | OpenAI, Azure, and some that follow them |
//! | reasoning of OpenAI's models | is lost after each turn, and never seen | goes back encrypted with the next request; a summary is streamed when `reasoning_effort` is set |
//! | images and files that a tool returns | follow its result, as the user's | are in its result |
//! | sound | wav and mp3 | none |
//! | `stop`, `seed` | sent | do not exist there, and are left out |
//!
//! So: responses for OpenAI's reasoning models, above all with tools, which they call in the middle
//! of a thought; chat completions for everything else. A conversation may go from one to the other.
//!
//! # What is streamed
//! Each chunk or event becomes its deltas at once; `Usage` and `Stop` come last. A refusal is text,
//! and the reason to stop. An answer that breaks off is an error; so is an error that the server
//! reports in the middle of its stream.
//!
//! Chat completions: reasoning is read from `reasoning_content`, `reasoning` and Mistral's thinking
//! parts. Which call a fragment of a tool call belongs to is found even where `index` is missing or
//! always 0. An answer is over with `finish_reason` or `[DONE]`.
//!
//! Responses: each message is a block of text, each reasoning item a block of thinking, of its
//! summary or, at servers that show it, of the reasoning itself. What the vendor wants back is kept
//! under `openai` in what is opaque of the block: a reasoning item whole, of a message its phase.
//! An answer is over with `response.completed`, `response.incomplete` or `response.failed`. Items
//! of tools that run at the vendor (asked for in `extra`) are neither shown nor kept.
//!
//! # What a server does not know
//! A server that refuses a request for one of these is asked again without it, and its clones
//! remember:
//!
//! | refused | then |
//! |---|---|
//! | `stream` (a model or organization that may not) | the answer comes in one piece, after [`NotStreaming`](mainstem_model::ModelDelta::NotStreaming) |
//! | chat: `stream_options` | tokens may not be counted |
//! | chat: `max_tokens` | `max_completion_tokens` is sent |
//! | chat: a missing `reasoning_content` | the reasoning of earlier turns is sent along with their tool calls |
//! | responses: encrypted reasoning in `include` (a model that does not reason) | none is asked for |
//! | responses: `reasoning.summary` (an organization that may not) | nobody sees the model think |
//! | responses: reasoning that another account encrypted | that of earlier turns is left out, of this request only |

mod chat;
mod chunk;
mod decoder;
mod dialect;
mod request;
mod responses;
mod settings;

pub use chat::{ChatCompletions, OpenAi, azure};
pub use mainstem_http::{ConfigError, Endpoint};
pub use responses::{OpenAiResponses, Responses};
pub use settings::OpenAiExt;
