//! Validates arguments against a schema, reports errors by place, and reads numbers and booleans that were sent as text.

mod meant;
pub(crate) mod words;

use serde_json::Value;

use crate::{ToolError, schema::Schema};

/// Returns the arguments if they are valid, with texts converted to the numbers and booleans that the schema requires. Otherwise the error
/// tells the model each problem with its JSON pointer (RFC 6901). `raw` is the source of `schema`.
pub(crate) fn fit(tool: &str, raw: &Value, schema: &Schema, arguments: Value) -> Result<Value, ToolError> {
    let refused = |problems| ToolError::new(format!("the arguments of {tool} don't fit:{problems}"));
    if let Some(problem) = schema.too_costly(&arguments, "arguments") {
        return Err(refused(problem));
    }
    if schema.validator().is_valid(&arguments) {
        return Ok(arguments);
    }
    let arguments = meant::read(raw, schema.validator(), arguments);
    match schema.problems(raw, &arguments, "arguments") {
        None => Ok(arguments),
        Some(problems) => Err(refused(problems)),
    }
}

#[cfg(test)]
mod tests;
