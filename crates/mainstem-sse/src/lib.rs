//! Bytes to server-sent events and back, with no I/O.
//!
//! Everything a model provider or a remote agent says arrives as [server-sent events]. This crate
//! knows the format and nothing else: no sockets, no JSON, no reconnecting.
//!
//! | item | does |
//! |---|---|
//! | [`Decoder`] | bytes of one connection in, [`SseEvent`]s out; for a hand-driven loop |
//! | [`SseStream`] | the same over any `Stream` of byte chunks, such as an HTTP body |
//! | [`Frame`] | one frame to bytes, for a server |
//!
//! ```
//! use mainstem_sse::{Decoder, Frame};
//!
//! let mut bytes = Frame::data("{\"text\":\"hi\"}").with_event("delta").with_id("7").encode();
//! assert_eq!(bytes, "id: 7\nevent: delta\ndata: {\"text\":\"hi\"}\n\n");
//!
//! let mut decoder = Decoder::new();
//! let event = decoder.decode(&mut bytes)?.expect("the frame is complete");
//! assert_eq!(event.event, "delta");
//! assert_eq!(event.data, "{\"text\":\"hi\"}");
//! assert_eq!(event.id.as_deref(), Some("7"));
//! # Ok::<(), mainstem_sse::TooLarge>(())
//! ```
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
