#![doc = include_str!("../README.md")]
//!
//! [`Anthropic`] is an [`Endpoint`]: a value with its settings, cheap to clone.
//!
//! For models by name, such as `anthropic:claude-sonnet-4-5`:
//!
//! ```
//! # use std::sync::Arc;
//! # use mainstem_model::ModelRegistry;
//! # use mainstem_anthropic::Anthropic;
//! let registry = ModelRegistry::new()
//!     .with_provider("anthropic", |model| Ok(Arc::new(Anthropic::from_env(model)?)));
//! ```
//!
//! # What is streamed
//! Each [event](https://platform.claude.com/docs/en/build-with-claude/streaming) becomes its deltas
//! at once; `Usage` and `Stop` come last. `Usage` comes first, too: the prompt is paid for even if
//! the answer is cut off. Thinking is stored with its signature, redacted thinking as an empty
//! block with its data, and both are sent back unchanged; thinking without a signature of this
//! vendor is not sent. Blocks of the vendor's own tools (web search …) are stored in empty thinking
//! blocks and sent back; the answer is the text around them. A response that is cut off, without
//! `stop_reason` and `message_stop`, is an error; so is an `error` event.
//!
//! | `stop_reason` | [`StopReason`](mainstem_message::StopReason) |
//! |---|---|
//! | `end_turn`, `stop_sequence` | `Stop`, or `ToolCalls` if there are any |
//! | `tool_use` | `ToolCalls` |
//! | `max_tokens`, `model_context_window_exceeded` | `Length` |
//! | `refusal` | `Refusal` |
//! | `pause_turn` | `Paused` |
//! | what is new | `Other`, with the vendor's word |
//!
//! Only tools that the vendor runs pause a turn (`ModelOptions::server_tools`). The loop calls the
//! model again with what it has said, their blocks included, and it goes on.
//!
//! # What is sent
//! * `max_output_tokens`: `max_tokens`; without it 32 000, which every model since Claude 4 can
//!   write, and the thinking budget on top
//! * `effort` (`low`, `medium`, `high`, `xhigh`, `max`): [adaptive thinking] and
//!   `output_config.effort`, for Claude 4.6 and later; left out once a model has refused it.
//!   `minimal`, which other vendors have, is `low`
//! * `thinking_budget`: [manual thinking] with this budget, for Claude 4.6 and earlier; a smaller
//!   one than 1 024 is 1 024; once a model has refused it, the effort instead, if there is one
//! * `effort: none`, `thinking_budget: 0`: `thinking: {"type": "disabled"}`
//! * `temperature`, `top_p`: themselves, but while thinking no `temperature` and a `top_p` only
//!   from 0.95, for others are refused
//! * `tool_choice`: `auto`, `none`, `any` or `tool`; the last two turn manual thinking off,
//!   because the API refuses the combination
//! * `parallel_tool_calls: false`: `disable_parallel_tool_use`
//! * `response_format`: a schema: `output_config.format`, which is always strict; what this does
//!   not know of JSON Schema becomes description
//! * `response_format`: any JSON object: nothing, for the API has no form for it; ask for it in
//!   words, or give a schema
//! * `seed`: nothing; the API has none
//!
//! Thinking is requested as a summary (`display: "summarized"`), because newer models show none
//! otherwise. Claude Opus 5.5, Sonnet 5.5, Fable 5.1 and Mythos 5.1 refuse a forced call while they
//! think, which they do by default: their refusal is the call's error. System messages at the
//! beginning of a conversation join the instructions; later ones become the user's text in
//! `<system-reminder>`, since most models refuse them elsewhere and a change of the instructions
//! would invalidate the cache and earlier thinking. Images (JPEG, PNG, GIF, WebP) and PDF files are
//! sent as base64 or URL, also in results of tools; those of a failed call follow its result,
//! because the API accepts only text there.
//!
//! Claude Opus 4.7 and later refuse any `temperature` or `top_p`. After such an error the request
//! is repeated without them, and clones remember.
//!
//! # Caching
//! The prompt of a conversation is cached for five minutes, unless
//! [`prompt_cache`](mainstem_model::ModelOptions::prompt_cache) is set otherwise: up to the end of
//! the tools, of the instructions, and of the last two turns of the user's. The end of the turn
//! before the last is where the previous request ended, so that its entry is found however many
//! blocks were added since; the vendor looks back over 20 blocks only.
//! A server that refuses `cache_control` gets none.
//!
//! # Version
//! `anthropic-version` is `2023-06-01`, which supports `temperature`. For this crate,
//! [`2026-10-21`] differs in that alone; [`with_header`](Endpoint::with_header) sets it, and
//! `anthropic-beta`, too.
//!
//! [adaptive thinking]: https://platform.claude.com/docs/en/build-with-claude/thinking
//! [manual thinking]: https://platform.claude.com/docs/en/build-with-claude/extended-thinking
//! [`2026-10-21`]: https://platform.claude.com/docs/en/api/versioning

mod caching;
mod decoder;
mod dialect;
mod event;
mod messages;
mod opaque;
mod request;
mod schema;

pub use mainstem_http::{ConfigError, Endpoint};
pub use messages::{Anthropic, Messages};
