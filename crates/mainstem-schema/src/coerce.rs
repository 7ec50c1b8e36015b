//! Numbers and booleans that a model sends as text.

use jsonschema::Validator;
use serde_json::{Number, Value};

use crate::words;

/// Converts strings to the number or boolean that the schema requires, where it does not accept a
/// string.
pub(crate) fn strings(schema: &Value, validator: &Validator, mut value: Value) -> Value {
    let found: Vec<_> = validator
        .iter_errors(&value)
        .filter_map(|error| {
            let text = error.instance().as_str()?;
            let read =
                words::types(schema, &error).into_iter().find_map(|wanted| parse(wanted, text.trim()))?;
            Some((error.instance_path().to_string(), read))
        })
        .collect();
    for (place, read) in found {
        if let Some(at) = value.pointer_mut(&place) {
            *at = read;
        }
    }
    value
}

fn parse(wanted: &str, text: &str) -> Option<Value> {
    match wanted {
        "integer" => {
            text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<u64>().map(Value::from)).ok()
        }
        "number" => text.parse().ok().and_then(Number::from_f64).map(Value::Number),
        "boolean" => text.to_ascii_lowercase().parse::<bool>().map(Value::Bool).ok(),
        _ => None,
    }
}
