//! The part of an operation in the OpenAPI document.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{BYTES, Content, Method, Operation, Response};
use crate::TENANT_HEADER;

/// Adds a schema, or returns it.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

pub(super) fn schema_of<T: JsonSchema>() -> SchemaOf {
    |generator| generator.subschema_for::<T>()
}

/// Returns the whole schema, for its properties.
pub(super) fn root_of<T: JsonSchema>() -> SchemaOf {
    |_| {
        SchemaSettings::draft2020_12()
            .with(|settings| settings.inline_subschemas = true)
            .into_generator()
            .into_root_schema_for::<T>()
    }
}

impl Operation {
    /// Returns the name of the method in the document.
    pub(crate) fn method_key(&self) -> &'static str {
        match self.method {
            Method::Get => "get",
            Method::Post => "post",
            Method::Delete => "delete",
        }
    }

    /// Returns its part of the document.
    pub(crate) fn describe(&self, generator: &mut SchemaGenerator) -> Value {
        let mut parameters: Vec<Value> = self.in_path().collect();
        parameters.extend(self.query.iter().flat_map(|schema| in_query(&schema(generator))));
        parameters.extend(self.headers.iter().map(|(name, description, schema)| {
            json!({ "name": name, "in": "header", "required": false, "description": description, "schema": schema })
        }));
        parameters.extend((!self.is_open).then(of_tenant));
        let mut responses = Map::new();
        for response in &self.responses {
            responses.insert(response.status.to_string(), response.describe(generator));
        }
        responses.insert("default".to_owned(), json!({ "$ref": "#/components/responses/Problem" }));
        let mut operation = json!({
            "operationId": self.id(),
            "summary": self.summary,
            "parameters": parameters,
            "responses": responses,
        });
        if let Some(body) = self.body {
            let content = match body {
                Content::Json(schema) => json!({ "application/json": { "schema": schema(generator) } }),
                Content::Bytes => json!({ BYTES: {} }),
            };
            operation["requestBody"] = json!({ "required": true, "content": content });
        }
        if self.is_open {
            operation["security"] = json!([]);
        }
        operation
    }

    fn in_path(&self) -> impl Iterator<Item = Value> {
        let names = self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        names.map(|name| {
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 } })
        })
    }

    /// `get_sessions_session_events` and the like.
    fn id(&self) -> String {
        let path = self.path.trim_start_matches("/v1").replace(['{', '}'], "").replace(['/', '.'], "_");
        format!("{}{path}", self.method_key())
    }
}

/// Describes the header that each request with a token can have.
fn of_tenant() -> Value {
    let description = "The tenant whose request it is; for a token that is of no tenant, the operator's.";
    json!({ "name": TENANT_HEADER, "in": "header", "required": false, "description": description, "schema": { "type": "string" } })
}

impl Response {
    fn describe(&self, generator: &mut SchemaGenerator) -> Value {
        let mut content = Map::new();
        for (media_type, schema) in &self.content {
            // A stream has no schema: `/components/schemas/AgentEvent` is that of its parts.
            let media = schema.map_or_else(|| json!({}), |schema| json!({ "schema": schema(generator) }));
            content.insert((*media_type).to_owned(), media);
        }
        let mut response = json!({ "description": self.description });
        if !content.is_empty() {
            response["content"] = Value::Object(content);
        }
        response
    }
}

/// Returns a type's properties as parameters.
fn in_query(schema: &Schema) -> Vec<Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let parameter = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let description = schema.as_object_mut().and_then(|schema| schema.shift_remove("description"));
        json!({ "name": name, "in": "query", "required": false, "description": description, "schema": schema })
    };
    properties.into_iter().flatten().map(parameter).collect()
}
