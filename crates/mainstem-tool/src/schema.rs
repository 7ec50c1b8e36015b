//! JSON Schemas from callers, servers and files: compiled within limits, and checked within a bound of work.

mod graph;
mod limits;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use self::graph::Graph;
pub use self::limits::SchemaLimit;
use crate::arguments::words;

/// Most problems told at once.
const SHOWN: usize = 5;

/// So many steps take about a millisecond.
const COSTLY: u64 = 20_000;

/// A compiled schema, with what a check of it can cost.
#[derive(Debug)]
pub(crate) struct Schema {
    validator: Validator,
    graph: Graph,
}

/// Why a schema is not used.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It is larger or more costly than is allowed.
    #[error("{found}, and at most {} is allowed ({})", limit.most(), limit.name())]
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
    /// Compiles a schema. Takes time proportional to its size, which is limited.
    ///
    /// # Errors
    /// It is not a JSON Schema, or beyond a [limit](SchemaLimit).
    pub(crate) fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let graph = Graph::of(schema)?;
        // This engine matches in linear time, and stops to compile a pattern that grows too large.
        let size = SchemaLimit::CompiledPattern.value();
        let patterns = PatternOptions::regex().size_limit(size).dfa_size_limit(size);
        let options = jsonschema::options().with_pattern_options(patterns);
        let validator = options.build(schema).map_err(|error| invalid(&error.to_string()))?;
        Ok(Self { validator, graph })
    }

    /// Returns `true` if the check of a value can take milliseconds.
    pub(crate) fn is_costly(&self, value: &Value) -> bool {
        self.graph.work(value) > COSTLY
    }

    pub(crate) fn validator(&self) -> &Validator {
        &self.validator
    }

    /// Returns why a value can't be checked in bounded time, as a line of its errors.
    pub(crate) fn too_costly(&self, value: &Value, whole: &str) -> Option<String> {
        let error = self.graph.check_work(value).err()?;
        Some(format!("\n- {whole}: can't be checked: {error}"))
    }

    /// Returns the validation errors of a value, one per line, with JSON pointers (RFC 6901); `raw` is the schema itself, and `whole` is the
    /// name of the value.
    pub(crate) fn problems(&self, raw: &Value, value: &Value, whole: &str) -> Option<String> {
        if let Some(problem) = self.too_costly(value, whole) {
            return Some(problem);
        }
        let mut problems = self.validator.iter_errors(value);
        let line = |error: ValidationError<'_>| {
            let pointer = error.instance_path().to_string();
            let place = if pointer.is_empty() { whole.to_owned() } else { format!("at {pointer}") };
            format!("\n- {place}: {}", words::of(raw, &error))
        };
        let mut lines: String = problems.by_ref().take(SHOWN).map(line).collect();
        let more = problems.count();
        if more > 0 {
            lines.push_str(&format!("\n- and {more} more"));
        }
        (!lines.is_empty()).then_some(lines)
    }
}

/// The validator does not tell a pattern that is not one from a pattern that grows too large.
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
