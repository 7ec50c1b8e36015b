//! Schemas that the vendor enforces.

use serde_json::Value;

/// Returns `true` if [strict mode] accepts a schema: each object lists all of its properties as
/// required and allows no others. Other schemas are sent as not strict.
///
/// [strict mode]: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
pub(crate) fn fits_strict(schema: &Value) -> bool {
    let Value::Object(fields) = schema else {
        return schema.as_array().is_none_or(|schemas| schemas.iter().all(fits_strict));
    };
    let is_complete = match fields.get("properties") {
        Some(Value::Object(properties)) => {
            let required = fields.get("required").and_then(Value::as_array);
            let is_required = |name: &String| {
                required.is_some_and(|required| required.iter().any(|one| one.as_str() == Some(name)))
            };
            fields.get("additionalProperties") == Some(&Value::Bool(false))
                && properties.keys().all(is_required)
        }
        _ => fields.get("type").is_none_or(|form| form != "object"),
    };
    is_complete && fields.values().all(fits_strict)
}
