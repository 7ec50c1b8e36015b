#![doc = include_str!("../README.md")]
//!
//! [`Ollama`] is an [`Endpoint`]: a value with its settings, cheap to clone.
//!
//! For models by name, such as `ollama:qwen3:8b`:
//!
//! ```
//! # use std::sync::Arc;
//! # use mainstem_model::ModelRegistry;
//! # use mainstem_ollama::Ollama;
//! let registry = ModelRegistry::new()
//!     .with_provider("ollama", |model| Ok(Arc::new(Ollama::from_env(model)?)));
//! ```
//!
//! # What is sent
//!
//! * `temperature`, `top_p`, `stop`, `seed`: in `options`, under the same names
//! * `max_output_tokens`: `options.num_predict`
//! * `effort`: `think`: `none` as `false`, `on` as `true`, any other word as a level that
//!   the [model knows](https://docs.ollama.com/capabilities/thinking)
//! * `thinking_budget`: 0 is `think: false`; another is an error unless there is an effort
//! * `response_format`: `format`: `"json"`, or the schema
//! * `tool_choice`: none: no tools
//! * `tool_choice`: one: that tool alone; Ollama cannot make a model call it
//! * `tool_choice`: required: nothing, for the same reason
//! * `parallel_tool_calls`: nothing: Ollama has no such setting
//! * `extra`: as it is, such as `keep_alive`; an object `options` in it is merged over the others
//!
//! Thinking is sent back with its turn, as Ollama
//! [asks](https://docs.ollama.com/capabilities/streaming). Images are sent as base64; other data
//! has no form and is refused, except in the results of tools, where a note replaces it.
//!
//! # A small context
//! By default, Ollama [reads 4096 tokens](https://docs.ollama.com/context-length) on most machines,
//! and [silently](https://github.com/ollama/ollama/issues/4967) drops the oldest messages of a
//! longer conversation. Requests have `truncate: false` and `shift: false`: since Ollama 0.12.6, a
//! prompt that does not fit fails with `ContextOverflow`, and an answer ends where the context
//! does. Ollama recommends 64 000 for agents: set them by [`OllamaExt::with_num_ctx`], or on the
//! server by `OLLAMA_CONTEXT_LENGTH`.
//!
//! Loading a model takes its time before the first delta.

mod chat;
mod chunk;
mod decoder;
mod host;
mod request;

pub use chat::{Chat, Ollama, OllamaExt};
pub use mainstem_http::{ConfigError, Endpoint};
