//! A compiled schema, and the check of a value.

use std::sync::Arc;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use crate::{SchemaLimit, coerce, graph::Graph, words};

/// The maximum number of problems in one error.
const SHOWN: usize = 5;

/// The number of steps that take about a millisecond.
const COSTLY: u64 = 20_000;

/// A compiled schema, with what a check of it can cost.
///
/// ```
/// use std::sync::Arc;
///
/// use mainstem_schema::Schema;
/// use serde_json::json;
///
/// let schema = Schema::compile(Arc::new(json!({ "type": "object", "required": ["query"] })))?;
/// assert!(schema.check(&json!({ "query": "rust" }), "the arguments").is_ok());
/// assert!(schema.check(&json!({}), "the arguments").is_err());
/// # Ok::<(), mainstem_schema::SchemaError>(())
/// ```
#[derive(Debug)]
pub struct Schema {
    source: Arc<Value>,
    validator: Validator,
    graph: Graph,
}

/// Why a schema is not used.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It is larger or more costly than is allowed.
    #[error("{found}, and at most {} is allowed ({})", limit.most(), limit.name())]
    #[non_exhaustive]
    Limit {
        /// Which limit.
        limit: SchemaLimit,
        /// What was found.
        found: String,
    },
    /// It is not a JSON Schema, or not one that can be checked in bounded time.
    #[error("{0}")]
    Invalid(String),
}

impl Schema {
    /// Compiles a schema. Takes time proportional to its size, which is limited: up to some
    /// milliseconds.
    ///
    /// # Errors
    /// If it is not a JSON Schema, or beyond a [limit](SchemaLimit).
    pub fn compile(source: Arc<Value>) -> Result<Self, SchemaError> {
        let graph = Graph::of(&source)?;
        // This engine matches in linear time, and stops to compile a pattern that grows too large.
        let size = SchemaLimit::CompiledPattern.value();
        let patterns = PatternOptions::regex().size_limit(size).dfa_size_limit(size);
        let options = jsonschema::options().with_pattern_options(patterns);
        let validator = options.build(&source).map_err(|error| invalid(&error.to_string()))?;
        Ok(Self { source, validator, graph })
    }

    /// Returns the schema as it was given.
    pub fn source(&self) -> &Arc<Value> {
        &self.source
    }

    /// Returns `true` if the check of a value can take milliseconds.
    pub fn is_costly(&self, value: &Value) -> bool {
        self.graph.work(value) > COSTLY
    }

    /// Checks a value; `whole` is the name of the value in messages.
    ///
    /// # Errors
    /// If the value is not valid, or can't be checked in bounded time. The text has a line for each
    /// of the first problems, each after a line break.
    pub fn check(&self, value: &Value, whole: &str) -> Result<(), String> {
        self.check_work(value, whole)?;
        let mut problems = self.validator.iter_errors(value);
        let line = |error: ValidationError<'_>| {
            let pointer = error.instance_path().to_string();
            let place = if pointer.is_empty() { whole.to_owned() } else { format!("at {pointer}") };
            format!("\n- {place}: {}", words::of(&self.source, &error))
        };
        let mut lines: String = problems.by_ref().take(SHOWN).map(line).collect();
        let more = problems.count();
        if more > 0 {
            lines.push_str(&format!("\n- and {more} more"));
        }
        if lines.is_empty() { Ok(()) } else { Err(lines) }
    }

    /// Checks a value, and returns it with strings converted to the numbers and booleans that the
    /// schema requires in their place.
    ///
    /// # Errors
    /// As [`check`](Self::check), for the converted value.
    pub fn fit(&self, value: Value, whole: &str) -> Result<Value, String> {
        self.check_work(&value, whole)?;
        if self.validator.is_valid(&value) {
            return Ok(value);
        }
        let value = coerce::strings(&self.source, &self.validator, value);
        self.check(&value, whole)?;
        Ok(value)
    }

    /// Fails if a value can't be checked in bounded time.
    fn check_work(&self, value: &Value, whole: &str) -> Result<(), String> {
        self.graph.check_work(value).map_err(|error| format!("\n- {whole}: can't be checked: {error}"))
    }
}

/// Returns the error of a refused schema. The validator's error is the same for an invalid pattern
/// and for one that grows too large.
fn invalid(why: &str) -> SchemaError {
    let limit = SchemaLimit::CompiledPattern;
    let or_large = match why.ends_with("is not a \"regex\"") {
        true => format!(", or one that compiles to more than {} ({})", limit.most(), limit.name()),
        false => String::new(),
    };
    SchemaError::Invalid(format!("{why}{or_large}"))
}

#[cfg(test)]
mod tests;
