#![doc = include_str!("../README.md")]
//!
//! An [`Encoder`] is a value with state: it [begins](Encoder::begin) a stream, encodes each
//! [event](Encoder::event), and [ends](Encoder::end) it. [`Sse`] writes server-sent events,
//! [`Ndjson`] lines of JSON, [`Fleet`] the streams of Arbiter; [`agui`] and other modules have the
//! protocols of others. [`EncodeExt`] encodes any stream of events. A [`TestFile`] is a recorded
//! session as a test in Rust.

pub mod agent_protocol;
pub mod agui;
mod encoder;
mod fleet;
mod foreign;
mod frames;
mod langgraph;
mod ndjson;
mod sse;
mod test_file;

pub use encoder::{Encoder, WriteJson};
pub use fleet::Fleet;
pub use frames::{EncodeExt, Frames};
pub use langgraph::{
    FrameId, LangGraph, LangGraphOptions, LangGraphOutcome, LangGraphThread, StreamMode,
    interrupt as langgraph_interrupt,
};
pub use mainstem_sse::Frame;
pub use ndjson::Ndjson;
pub use sse::{RETRY, Sse};
pub use test_file::TestFile;

#[cfg(test)]
mod tests;
