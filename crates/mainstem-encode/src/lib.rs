#![doc = include_str!("../README.md")]
//!
//! An [`Encoder`] is a value with state: it [begins](Encoder::begin) a stream, encodes each
//! [event](Encoder::event), and [ends](Encoder::end) it. [`Sse`] writes server-sent events,
//! [`Ndjson`] lines of JSON; other protocols are further implementations. [`EncodeExt`] encodes any
//! stream of events.

pub mod agent_protocol;
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
