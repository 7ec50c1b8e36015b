//! JSON Schemas from callers, servers and files: compiled within [limits](SchemaLimit), and checked
//! within a bound of work.
//!
//! Errors describe the value and not the schema, one per line with a JSON pointer (RFC 6901), so
//! that a model can correct what it sent.
//!
//! ```
//! use mainstem_schema::Schema;
//! use serde_json::json;
//!
//! let limit = json!({ "type": "integer", "minimum": 1 });
//! let schema = Schema::compile(json!({ "properties": { "limit": limit } }).into())?;
//! assert_eq!(schema.fit(json!({ "limit": "5" }), "arguments"), Ok(json!({ "limit": 5 })));
//! let error = schema.check(&json!({ "limit": 0 }), "arguments").unwrap_err();
//! assert_eq!(error, "\n- at /limit: must be at least 1, got 0");
//! # Ok::<(), mainstem_schema::SchemaError>(())
//! ```

mod coerce;
mod graph;
mod limits;
mod schema;
mod words;

pub use limits::SchemaLimit;
pub use schema::{Schema, SchemaError};
