#![doc = include_str!("../README.md")]
//!
//! [`Gemini`] is an [`Endpoint`]: a value with its settings, cheap to clone.
//!
//! For models by name, such as `gemini:gemini-2.5-flash`:
//!
//! ```
//! # use std::sync::Arc;
//! # use mainstem_model::ModelRegistry;
//! # use mainstem_gemini::Gemini;
//! let registry = ModelRegistry::new()
//!     .with_provider("gemini", |model| Ok(Arc::new(Gemini::from_env(model)?)));
//! ```
//!
//! The formats are those of the [API reference](https://ai.google.dev/api/generate-content).
//!
//! # What is sent
//! * `system`, system messages: `systemInstruction`, wherever in the conversation they stood
//! * adjacent messages of one speaker, all results of one turn: one content each
//! * a tool result: a [`functionResponse`](https://ai.google.dev/api/caching#FunctionResponse) with
//!   `output` or `error`; its data inside it where Gemini 3 takes that, else after it
//! * a tool's schema, a response format's schema: `parametersJsonSchema`, `responseJsonSchema`,
//!   without what [the API does not
//!   know](https://ai.google.dev/api/generate-content#FIELDS.response_json_schema)
//! * `max_output_tokens`: `maxOutputTokens`
//! * `effort`: a `thinkingLevel`, or for Gemini 2 the budget that [Google takes it
//!   for](https://ai.google.dev/gemini-api/docs/openai#thinking); thoughts are asked for
//! * `thinking_budget`: `thinkingBudget`; with an effort for Gemini 2 only, as the API refuses both
//! * `seed`: its lower 31 bits, for the API has no more
//! * `parallel_tool_calls`, a response format's `name` and `strict`: nothing: the API has no such
//!   thing
//! * `extra`: fields of the request; an object, such as `generationConfig`, is merged into ours
//!
//! # Thought signatures
//! A [thought signature](https://ai.google.dev/gemini-api/docs/thought-signatures) is sent back on
//! the part that it came on; thoughts without one are left out. Gemini 3 refuses a call without a
//! signature, so the first call of a turn of another model gets the documented placeholder,
//! `skip_thought_signature_validator`.
//!
//! # What is streamed
//! Each chunk becomes its deltas at once; `Usage` and `Stop` come last. `Usage` comes with the
//! first chunk, too, and before an error: what an answer that is cut off has used counts. The form
//! without `alt=sse`, a JSON array, is read too, once it is complete. The service's own actions
//! (code that it runs, tools of its own) are discarded.
//!
//! * a filter's reason, such as `SAFETY`, or the prompt is blocked: `ContentFilter`, after a
//!   thought that says which reason it was
//! * `MALFORMED_FUNCTION_CALL`, `UNEXPECTED_TOOL_CALL`, `MALFORMED_RESPONSE`: if a call was made,
//!   `ToolCalls`; if there were only thoughts, `Other`, on which the loop asks again; else an
//!   error, retryable if the response was empty
//! * nothing: a transport error: it broke off

mod chunk;
mod decoder;
mod generate;
mod generation;
mod opaque;
mod request;

pub use generate::{Gemini, GenerateContent};
pub use mainstem_http::{ConfigError, Endpoint};
