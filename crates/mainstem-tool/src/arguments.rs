//! Whether arguments fit a schema, and where they do not.

use jsonschema::Validator;
use serde_json::Value;

use crate::ToolError;

/// Most problems told at once.
const SHOWN: usize = 5;

/// Checks arguments, and tells the model each problem with its JSON pointer (RFC 6901).
pub(crate) fn check(tool: &str, schema: &Validator, arguments: &Value) -> Result<(), ToolError> {
    let Some(problems) = problems(schema, arguments, "arguments") else { return Ok(()) };
    Err(ToolError::new(format!("the arguments of {tool} don't fit its schema:{problems}")))
}

/// What does not fit, a line for each, with its JSON pointer; `whole` is what the value is called.
pub(crate) fn problems(schema: &Validator, value: &Value, whole: &str) -> Option<String> {
    let problems: Vec<_> = schema
        .iter_errors(value)
        .map(|error| {
            let pointer = error.instance_path().to_string();
            let place = if pointer.is_empty() { whole.to_owned() } else { format!("at {pointer}") };
            format!("\n- {place}: {error}")
        })
        .collect();
    let mut lines: String = problems.iter().take(SHOWN).map(String::as_str).collect();
    if problems.len() > SHOWN {
        lines.push_str(&format!("\n- and {} more", problems.len() - SHOWN));
    }
    (!problems.is_empty()).then_some(lines)
}

#[cfg(test)]
mod tests;
