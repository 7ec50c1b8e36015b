//! Encoders: events in, frames of a wire format out.
//!
//! An [`Encoder`] is a value with state: it [begins](Encoder::begin) a stream, encodes each [event](Encoder::event), and
//! [ends](Encoder::end) it. [`Sse`] writes server-sent events, [`Ndjson`] lines of JSON; other protocols are further implementations.
//! [`EncodeExt`] encodes any stream of events.
//!
//! ```
//! use mainstem_encode::{Encoder, Ndjson, Sse};
//!
//! let json = r#"{"type":"TEXT_BLOCK_DELTA","seq":7,"sessionId":"s","createdAt":"2026-11-21T10:00:00Z","blockId":"b","delta":"Hi"}"#;
//! let event = serde_json::from_str(json)?;
//! assert!(Sse::new().event(&event).starts_with(b"id: 7\nevent: TEXT_BLOCK_DELTA\ndata: {\"type\":\"TEXT_BLOCK_DELTA\""));
//! assert!(Ndjson::new().event(&event).ends_with(b"\"delta\":\"Hi\"}\n"));
//! # Ok::<(), serde_json::Error>(())
//! ```

mod encoder;
mod frames;
mod ndjson;
mod sse;

pub use encoder::{Encoder, WriteJson};
pub use frames::{EncodeExt, Frames};
pub use ndjson::Ndjson;
pub use sse::{RETRY, Sse};

#[cfg(test)]
mod tests;
