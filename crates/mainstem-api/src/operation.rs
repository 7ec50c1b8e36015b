//! The description of an endpoint, from which its part of the OpenAPI document comes.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{StreamForm, TENANT_HEADER};

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What an endpoint takes and returns.
#[derive(Clone, Debug)]
pub struct Operation {
    method: Method,
    path: &'static str,
    summary: &'static str,
    query: Option<SchemaOf>,
    headers: Vec<(&'static str, &'static str, Value)>,
    body: Option<Content>,
    responses: Vec<Response>,
    is_open: bool,
}

/// An HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the methods of the API; a server matches them all")]
pub enum Method {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `DELETE`
    Delete,
}

/// The content of a body.
#[derive(Clone, Copy, Debug)]
enum Content {
    Json(SchemaOf),
    /// Any bytes.
    Bytes,
}

/// The media type of any bytes.
const BYTES: &str = "application/octet-stream";

#[derive(Clone, Debug)]
struct Response {
    status: u16,
    description: &'static str,
    content: Vec<(&'static str, Option<SchemaOf>)>,
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Returns the whole schema, for its properties.
fn root_of<T: JsonSchema>(_: &mut SchemaGenerator) -> Schema {
    SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<T>()
}

impl Operation {
    /// Returns the method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Returns the path, with the names of its parameters in braces.
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// Returns `true` if it takes parameters after the `?`.
    pub fn has_query(&self) -> bool {
        self.query.is_some()
    }

    /// Returns `true` if it takes a body.
    pub fn has_body(&self) -> bool {
        self.body.is_some()
    }

    /// Returns `true` if no token is required.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    pub(crate) fn get(path: &'static str, summary: &'static str) -> Self {
        Self::new(Method::Get, path, summary)
    }

    pub(crate) fn post(path: &'static str, summary: &'static str) -> Self {
        Self::new(Method::Post, path, summary)
    }

    pub(crate) fn delete(path: &'static str, summary: &'static str) -> Self {
        Self::new(Method::Delete, path, summary)
    }

    fn new(method: Method, path: &'static str, summary: &'static str) -> Self {
        let (query, headers, body, responses, is_open) = Default::default();
        Self { method, path, summary, query, headers, body, responses, is_open }
    }

    /// It takes these parameters after the `?`.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(root_of::<T>);
        self
    }

    /// It reads a header.
    pub(crate) fn header(mut self, name: &'static str, description: &'static str, schema: Value) -> Self {
        self.headers.push((name, description, schema));
        self
    }

    /// It takes a body of JSON.
    pub(crate) fn body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(Content::Json(schema_of::<T>));
        self
    }

    /// It takes any bytes as its body.
    pub(crate) fn body_of_bytes(mut self) -> Self {
        self.body = Some(Content::Bytes);
        self
    }

    /// It may return any bytes.
    pub(crate) fn bytes(self, description: &'static str) -> Self {
        self.text(BYTES, description)
    }

    /// It may return JSON.
    pub(crate) fn json<T: JsonSchema>(self, status: u16, description: &'static str) -> Self {
        self.response(status, description, vec![("application/json", Some(schema_of::<T>))])
    }

    /// It may return events.
    pub(crate) fn events(self, description: &'static str) -> Self {
        let forms = StreamForm::ALL.iter().map(|form| (form.media_type(), None));
        self.response(200, description, forms.collect())
    }

    /// It may return a stream of values of this type.
    pub(crate) fn stream<T: JsonSchema>(self, description: &'static str) -> Self {
        let schema = Some(schema_of::<T> as SchemaOf);
        let forms = StreamForm::ALL.iter().map(|form| (form.media_type(), schema));
        self.response(200, description, forms.collect())
    }

    /// It may return text of this media type.
    pub(crate) fn text(self, media_type: &'static str, description: &'static str) -> Self {
        self.response(200, description, vec![(media_type, None)])
    }

    /// It may return an empty response.
    pub(crate) fn empty(self, status: u16, description: &'static str) -> Self {
        self.response(status, description, Vec::new())
    }

    fn response(
        mut self,
        status: u16,
        description: &'static str,
        content: Vec<(&'static str, Option<SchemaOf>)>,
    ) -> Self {
        match self.responses.iter_mut().find(|response| response.status == status) {
            Some(response) => response.content.extend(content),
            None => self.responses.push(Response { status, description, content }),
        }
        self
    }

    /// It requires no token.
    pub(crate) fn open(mut self) -> Self {
        self.is_open = true;
        self
    }

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
