#![doc = include_str!("../README.md")]
//!
//! Limits are listed in [`SchemaLimit`]. Errors describe the value and not the schema, one per line
//! with a JSON pointer (RFC 6901), so that a model can correct what it sent.

mod coerce;
mod graph;
mod limits;
mod misread;
mod schema;
mod words;

pub use limits::SchemaLimit;
pub use misread::misread;
pub use schema::{Schema, SchemaError};
