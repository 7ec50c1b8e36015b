#![doc = include_str!("../README.md")]
//!
//! Model providers and remote agents send [server-sent events]. This crate has the format alone: no
//! sockets, no JSON, no reconnecting.
//!
//! | item | does |
//! |---|---|
//! | [`Decoder`] | bytes of one connection in, [`SseEvent`]s out; for a hand-driven loop |
//! | [`SseStream`] | the same over any `Stream` of byte chunks, such as an HTTP body |
//! | [`Frame`] | one frame to bytes, for a server |
//!
//! [server-sent events]: https://html.spec.whatwg.org/multipage/server-sent-events.html

mod decoder;
mod encode;
mod error;
mod stream;

pub use decoder::{DEFAULT_LIMIT, Decoder, SseEvent};
pub use encode::Frame;
pub use error::{SseError, TooLarge};
pub use stream::SseStream;
