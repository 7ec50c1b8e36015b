//! The schema of an agent's answer.

use std::{fmt, sync::Arc};

use mainstem_schema::{Schema, SchemaError, SchemaLimit};
use mainstem_tool::schema_of;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

/// A JSON schema for an agent's answer. Cheap to clone.
///
/// Models answer with objects. A schema of another type is requested as the field `value` of an
/// object, and unwrapped.
///
/// ```
/// use mainstem_react::{OutputSchema, serde_json::json};
///
/// #[derive(schemars::JsonSchema)]
/// struct Verdict {
///     /// Whether the change can be merged.
///     merge: bool,
/// }
///
/// let schema = OutputSchema::of::<Verdict>()?;
/// assert!(schema.check(json!({ "merge": true })).is_ok());
/// assert!(schema.check(json!({ "merge": "perhaps" })).is_err());
/// # Ok::<(), mainstem_react::OutputSchemaError>(())
/// ```
#[derive(Clone)]
pub struct OutputSchema(Arc<Parts>);

struct Parts {
    /// The schema of the object that the model gives.
    asked: Schema,
    own: Value,
    is_wrapped: bool,
}

/// Why a schema is not valid for an answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the output schema is not valid: {0}")]
pub struct OutputSchemaError(#[from] SchemaError);

impl OutputSchemaError {
    /// Returns the limit that the schema exceeds, if that is the reason.
    pub fn limit(&self) -> Option<SchemaLimit> {
        match self.0 {
            SchemaError::Limit { limit, .. } => Some(limit),
            _ => None,
        }
    }
}

impl OutputSchema {
    /// Compiles an output schema.
    ///
    /// This takes time proportional to the schema's size, up to some milliseconds: a server does it
    /// off its async threads.
    ///
    /// # Errors
    /// If it is not a JSON Schema, or beyond a [limit](SchemaLimit).
    pub fn new(schema: Value) -> Result<Self, OutputSchemaError> {
        let is_wrapped = schema.get("type").is_some_and(|form| form != "object");
        let asked = if is_wrapped { wrapped(schema.clone()) } else { schema.clone() };
        let asked = Schema::compile(asked.into())?;
        Ok(Self(Arc::new(Parts { asked, own: schema, is_wrapped })))
    }

    /// Returns the output schema of a type; models read its doc comments.
    ///
    /// # Errors
    /// If a custom implementation of `JsonSchema` returns an invalid schema.
    pub fn of<T: JsonSchema>() -> Result<Self, OutputSchemaError> {
        Self::new(schema_of::<T>())
    }

    /// Returns the schema as it was given.
    pub fn schema(&self) -> &Value {
        &self.0.own
    }

    /// Returns the schema of the object that the model gives.
    pub fn asked(&self) -> &Arc<Value> {
        self.0.asked.source()
    }

    /// Returns `true` if the check of this value can take milliseconds, so that it belongs off the
    /// async threads.
    pub fn is_costly(&self, given: &Value) -> bool {
        self.0.asked.is_costly(given)
    }

    /// Returns the answer in a model's output.
    ///
    /// # Errors
    /// The problems, for the model: a line each, with its JSON pointer.
    pub fn check(&self, mut given: Value) -> Result<Value, String> {
        self.0.asked.check(&given, "the answer")?;
        Ok(if self.0.is_wrapped { given["value"].take() } else { given })
    }
}

/// Wraps a schema into an object of one field. Definitions stay at the root, where references
/// expect them.
fn wrapped(mut schema: Value) -> Value {
    let definitions = schema.as_object_mut().and_then(|schema| schema.remove("$defs"));
    let mut object = Map::new();
    object.insert("type".into(), json!("object"));
    object.insert("properties".into(), json!({ "value": schema }));
    object.insert("required".into(), json!(["value"]));
    object.insert("additionalProperties".into(), json!(false));
    object.extend(definitions.map(|definitions| ("$defs".to_owned(), definitions)));
    object.into()
}

impl fmt::Debug for OutputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OutputSchema").field(self.schema()).finish()
    }
}

#[cfg(test)]
mod tests;
