//! OpenAI chat completions, and the many servers that speak it: Azure, llama.cpp, vLLM, Ollama, LM Studio, OpenRouter, Groq,
//! DeepSeek, Mistral, Gemini's compatible endpoint …
//!
//! [`OpenAi`] is a [`Model`](mainstem_model::Model): a value with its settings in it, cheap to clone.
//!
//! ```
//! use mainstem_openai::OpenAi;
//!
//! # fn main() -> Result<(), mainstem_openai::ConfigError> {
//! let openai = OpenAi::new("gpt-4o-mini").with_api_key("sk-…");
//! let local = OpenAi::new("qwen3").with_base_url("http://localhost:8080/v1")?;
//! let azure = OpenAi::azure("https://res.openai.azure.com", "my-gpt-4o", "2024-10-21")?.with_api_key("…");
//! # Ok(())
//! # }
//! ```
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
//! # What is streamed
//! Each chunk becomes its deltas at once; `Usage` and `Stop` come last. Reasoning is read from `reasoning_content`, `reasoning`
//! and Mistral's thinking parts. A refusal is text, and the reason to stop. Which call a fragment of a tool call belongs to is
//! found even where `index` is missing or always 0. An answer that breaks off, with neither `finish_reason` nor `[DONE]`, is an
//! error; so is an error that the server reports in the middle of its stream.
//!
//! # What a server does not know
//! A server that refuses a request for one of these is asked again without it, and its clones remember:
//!
//! | refused | then |
//! |---|---|
//! | `stream` (a model or organization that may not) | the answer comes in one piece, after [`NotStreaming`](mainstem_model::ModelDelta::NotStreaming) |
//! | `stream_options` | tokens may not be counted |
//! | `max_tokens` | `max_completion_tokens` is sent |
//! | a missing `reasoning_content` | the reasoning of earlier turns is sent along with their tool calls |
//!
//! # What is not here
//! Waiting and asking again after a passing failure, time limits, other models to fall back to: these are decorators of
//! `mainstem-model`. Without one, only connecting has a limit (10 s).

mod chunk;
mod client;
mod decoder;
mod dialect;
mod open;
mod request;
mod responses;
mod server;
mod settings;

pub use client::OpenAi;
pub use mainstem_http::ConfigError;
pub use responses::OpenAiResponses;
