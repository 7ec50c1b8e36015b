//! Whether arguments fit a schema, where they do not, and what was meant by a number that was sent as text.

mod meant;
mod words;

use jsonschema::Validator;
use serde_json::Value;

use crate::ToolError;

/// Most problems told at once.
const SHOWN: usize = 5;

/// Returns the arguments if they fit, with numbers and booleans that were sent as text read as what the schema asks for; else tells the
/// model each problem with its JSON pointer (RFC 6901).
pub(crate) fn fit(
    tool: &str,
    schema: &Value,
    validator: &Validator,
    arguments: Value,
) -> Result<Value, ToolError> {
    if validator.is_valid(&arguments) {
        return Ok(arguments);
    }
    let arguments = meant::read(schema, validator, arguments);
    match problems(schema, validator, &arguments, "arguments") {
        None => Ok(arguments),
        Some(problems) => Err(ToolError::new(format!("the arguments of {tool} don't fit:{problems}"))),
    }
}

/// What does not fit, a line for each, with its JSON pointer; `whole` is what the value is called.
pub(crate) fn problems(schema: &Value, validator: &Validator, value: &Value, whole: &str) -> Option<String> {
    let problems: Vec<_> = validator
        .iter_errors(value)
        .map(|error| {
            let pointer = error.instance_path().to_string();
            let place = if pointer.is_empty() { whole.to_owned() } else { format!("at {pointer}") };
            format!("\n- {place}: {}", words::of(schema, &error))
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
