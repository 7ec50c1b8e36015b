//! Tool schemas in Ollama's dialect.
//!
//! Ollama parses a schema into [types of its own][types], which have `type`, `description`, `enum`,
//! `items`, `properties`, `required` and `anyOf`. It refuses a boolean schema, and drops unknown
//! keywords before the model sees them. So schemas are translated where possible:
//!
//! | standard | Ollama's |
//! |---|---|
//! | `true`, `false` | `{}` |
//! | `$ref` | what it refers to; within itself only its type and description |
//! | `allOf` | one schema |
//! | `oneOf` | `anyOf` |
//! | `const` | `enum` |
//! | parameters without type or properties, or of several types | an object |
//!
//! The rest is sent as it is.
//!
//! [types]: https://github.com/ollama/ollama/blob/main/api/types.go

use serde_json::{Map, Value};

/// The maximum number of references that are followed in one schema, because each may hold others.
const MOST_REFERENCES: usize = 200;

/// The maximum depth of a schema.
const DEEPEST: usize = 64;

/// Returns the parameters of a tool.
pub(super) fn parameters(schema: &Value) -> Value {
    let mut translation = Translation { root: schema, open: Vec::new(), left: MOST_REFERENCES, depth: 0 };
    let mut fields = translation.schema(schema);
    fields.insert("type".to_owned(), "object".into());
    fields.entry("properties").or_insert_with(|| Map::new().into());
    fields.into()
}

struct Translation<'a> {
    root: &'a Value,
    /// The references that are being followed.
    open: Vec<&'a str>,
    left: usize,
    depth: usize,
}

impl<'a> Translation<'a> {
    fn schema(&mut self, schema: &'a Value) -> Map<String, Value> {
        let Some(given) = schema.as_object().filter(|_| self.depth < DEEPEST) else { return Map::new() };
        self.depth += 1;
        let mut fields: Map<_, _> =
            given.iter().filter_map(|(name, value)| self.field(name, value)).collect();
        if let Some(Value::String(reference)) = given.get("$ref") {
            merge(&mut fields, self.referred(reference));
        }
        for part in given.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            merge(&mut fields, self.schema(part));
        }
        self.depth -= 1;
        fields
    }

    fn field(&mut self, name: &str, value: &'a Value) -> Option<(String, Value)> {
        let (name, value) = match (name, value) {
            ("$defs" | "definitions" | "$ref" | "allOf", _) => return None,
            ("const", only) => ("enum", Value::Array(vec![only.clone()])),
            ("oneOf" | "anyOf", Value::Array(parts)) => ("anyOf", self.schemas(parts)),
            ("items", Value::Array(items)) => (name, self.schemas(items)),
            ("items", item) => (name, self.schema(item).into()),
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter().map(|(name, of)| (name.clone(), self.schema(of).into()));
                (name, Value::Object(properties.collect()))
            }
            _ => (name, value.clone()),
        };
        Some((name.to_owned(), value))
    }

    fn schemas(&mut self, schemas: &'a [Value]) -> Value {
        schemas.iter().map(|schema| Value::Object(self.schema(schema))).collect()
    }

    fn referred(&mut self, reference: &'a str) -> Map<String, Value> {
        let Some(schema) = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) else {
            return Map::new();
        };
        if self.open.contains(&reference) || self.left == 0 {
            let brief =
                ["type", "description"].map(|name| Some((name.to_owned(), schema.get(name)?.clone())));
            return brief.into_iter().flatten().collect();
        }
        self.left -= 1;
        self.open.push(reference);
        let fields = self.schema(schema);
        self.open.pop();
        fields
    }
}

/// Adds the keywords of a part. Those of the schema itself stay.
fn merge(fields: &mut Map<String, Value>, part: Map<String, Value>) {
    for (name, value) in part {
        match (fields.get_mut(&name), value) {
            (None, value) => drop(fields.insert(name, value)),
            (Some(Value::Object(own)), Value::Object(more)) if name == "properties" => {
                for (name, value) in more {
                    own.entry(name).or_insert(value);
                }
            }
            (Some(Value::Array(own)), Value::Array(mut more)) if name == "required" => {
                more.retain(|name| !own.contains(name));
                own.append(&mut more);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
