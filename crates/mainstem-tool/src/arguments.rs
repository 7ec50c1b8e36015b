//! Whether arguments fit a schema, and where they do not.

use serde_json::Value;

use crate::{ToolError, schema::Schema};

/// Checks arguments, and tells the model each problem with its JSON pointer (RFC 6901).
pub(crate) fn check(tool: &str, schema: &Schema, arguments: &Value) -> Result<(), ToolError> {
    let Some(problems) = schema.problems(arguments, "arguments") else { return Ok(()) };
    Err(ToolError::new(format!("the arguments of {tool} don't fit its schema:{problems}")))
}

#[cfg(test)]
mod tests;
