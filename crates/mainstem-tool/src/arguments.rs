//! Whether arguments fit a schema, and where they do not.

use jsonschema::Validator;
use serde_json::Value;

use crate::ToolError;

/// Most problems told at once.
const SHOWN: usize = 5;

/// Checks arguments, and tells the model each problem with its JSON pointer (RFC 6901).
pub(crate) fn check(tool: &str, schema: &Validator, arguments: &Value) -> Result<(), ToolError> {
    let problems: Vec<_> = schema
        .iter_errors(arguments)
        .map(|error| {
            let pointer = error.instance_path().to_string();
            let place = if pointer.is_empty() { "arguments".to_owned() } else { format!("at {pointer}") };
            format!("\n- {place}: {error}")
        })
        .collect();
    if problems.is_empty() {
        return Ok(());
    }
    let mut message = format!("the arguments of {tool} don't fit its schema:");
    problems.iter().take(SHOWN).for_each(|problem| message.push_str(problem));
    if problems.len() > SHOWN {
        message.push_str(&format!("\n- and {} more", problems.len() - SHOWN));
    }
    Err(ToolError::new(message))
}

#[cfg(test)]
mod tests;
