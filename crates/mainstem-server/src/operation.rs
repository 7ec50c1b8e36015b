//! What can be asked, as a table: the routes and their description in OpenAPI come from the same rows.

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::{DefaultBodyLimit, Request},
    handler::Handler,
    http::StatusCode,
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::{self, MethodRouter},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{app::App, body::MAX_UNKNOWN, caller::TakesBody, problem::Problem};

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One thing that can be asked.
pub(crate) struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    handler: MethodRouter<Arc<App>>,
    query: Option<SchemaOf>,
    headers: Vec<(&'static str, &'static str, Value)>,
    body: Option<SchemaOf>,
    answers: Vec<Answer>,
    is_open: bool,
}

struct Answer {
    status: u16,
    says: &'static str,
    content: Vec<(&'static str, Option<SchemaOf>)>,
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The whole schema, for its properties.
fn root_of<T: JsonSchema>(_: &mut SchemaGenerator) -> Schema {
    SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<T>()
}

impl Operation {
    pub(crate) fn get<H: Handler<T, Arc<App>>, T: 'static>(
        path: &'static str,
        handler: H,
        summary: &'static str,
    ) -> Self {
        Self::new("get", path, routing::get(handler), summary)
    }

    pub(crate) fn post<H: Handler<T, Arc<App>>, T: 'static>(
        path: &'static str,
        handler: H,
        summary: &'static str,
    ) -> Self {
        Self::new("post", path, routing::post(handler), summary)
    }

    pub(crate) fn delete<H: Handler<T, Arc<App>>, T: 'static>(
        path: &'static str,
        handler: H,
        summary: &'static str,
    ) -> Self {
        Self::new("delete", path, routing::delete(handler), summary)
    }

    fn new(
        method: &'static str,
        path: &'static str,
        handler: MethodRouter<Arc<App>>,
        summary: &'static str,
    ) -> Self {
        let (query, headers, body, answers, is_open) = Default::default();
        Self { method, path, summary, handler, query, headers, body, answers, is_open }
    }

    /// It takes these parameters after the `?`.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(root_of::<T>);
        self
    }

    pub(crate) fn header(mut self, name: &'static str, says: &'static str, schema: Value) -> Self {
        self.headers.push((name, says, schema));
        self
    }

    /// It takes a body of JSON.
    pub(crate) fn body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(schema_of::<T>);
        self.handler = self.handler.layer(Extension(TakesBody));
        self
    }

    /// It may answer with JSON.
    pub(crate) fn json<T: JsonSchema>(self, status: u16, says: &'static str) -> Self {
        self.answer(status, says, vec![("application/json", Some(schema_of::<T>))])
    }

    /// It may answer with events.
    pub(crate) fn events(self, says: &'static str) -> Self {
        self.answer(200, says, vec![("text/event-stream", None), ("application/x-ndjson", None)])
    }

    /// It may answer with text of this media type.
    pub(crate) fn text(self, media_type: &'static str, says: &'static str) -> Self {
        self.answer(200, says, vec![(media_type, None)])
    }

    /// It may answer with nothing.
    pub(crate) fn empty(self, status: u16, says: &'static str) -> Self {
        self.answer(status, says, Vec::new())
    }

    fn answer(
        mut self,
        status: u16,
        says: &'static str,
        content: Vec<(&'static str, Option<SchemaOf>)>,
    ) -> Self {
        match self.answers.iter_mut().find(|answer| answer.status == status) {
            Some(answer) => answer.content.extend(content),
            None => self.answers.push(Answer { status, says, content }),
        }
        self
    }

    /// No token is needed for it, so its body is small.
    pub(crate) fn open(mut self) -> Self {
        self.is_open = true;
        self.handler = self.handler.layer(DefaultBodyLimit::max(MAX_UNKNOWN));
        self
    }

    /// As OpenAPI has it.
    fn describe(&self, generator: &mut SchemaGenerator) -> Value {
        let mut parameters: Vec<Value> = self.in_path().collect();
        parameters.extend(self.query.iter().flat_map(|schema| in_query(&schema(generator))));
        parameters.extend(self.headers.iter().map(|(name, says, schema)| {
            json!({ "name": name, "in": "header", "required": false, "description": says, "schema": schema })
        }));
        let mut answers = Map::new();
        for answer in &self.answers {
            answers.insert(answer.status.to_string(), answer.describe(generator));
        }
        let problem = json!({ "$ref": "#/components/responses/Problem" });
        answers.insert("default".to_owned(), problem);
        let mut operation = json!({
            "operationId": self.id(),
            "summary": self.summary,
            "parameters": parameters,
            "responses": answers,
        });
        if let Some(body) = self.body {
            let schema = body(generator);
            operation["requestBody"] =
                json!({ "required": true, "content": { "application/json": { "schema": schema } } });
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

    /// `get_sessions_id_events` and the like.
    fn id(&self) -> String {
        let path = self.path.trim_start_matches("/v1").replace(['{', '}'], "").replace(['/', '.'], "_");
        format!("{}{path}", self.method)
    }
}

impl Answer {
    fn describe(&self, generator: &mut SchemaGenerator) -> Value {
        let mut content = Map::new();
        for (media_type, schema) in &self.content {
            // Of a stream there is none: what its parts are is said by `/components/schemas/AgentEvent`.
            let media = schema.map_or_else(|| json!({}), |schema| json!({ "schema": schema(generator) }));
            content.insert((*media_type).to_owned(), media);
        }
        let mut answer = json!({ "description": self.says });
        if !content.is_empty() {
            answer["content"] = Value::Object(content);
        }
        answer
    }
}

/// A type's properties as parameters.
fn in_query(schema: &Schema) -> Vec<Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let parameter = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let says = schema.as_object_mut().and_then(|schema| schema.shift_remove("description"));
        json!({ "name": name, "in": "query", "required": false, "description": says, "schema": schema })
    };
    properties.into_iter().flatten().map(parameter).collect()
}

/// The routes of a table.
pub(crate) fn routes(operations: Vec<Operation>) -> Router<Arc<App>> {
    operations.into_iter().fold(Router::new(), |router, Operation { path, handler, query, .. }| {
        let handler = if query.is_none() { handler.layer(from_fn(without_query)) } else { handler };
        router.route(path, handler)
    })
}

/// Refuses query parameters that would be ignored: the caller would expect an effect.
async fn without_query(request: Request, next: Next) -> Response {
    if request.uri().query().is_some_and(|query| !query.is_empty()) {
        let detail = "this path takes no parameters after the `?`";
        return Problem::new(StatusCode::BAD_REQUEST, "bad_query", detail).into_response();
    }
    next.run(request).await
}

/// The table as an [OpenAPI 3.1](https://spec.openapis.org/oas/v3.1.0) document.
pub(crate) fn document(operations: &[Operation], prefix: &str) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<crate::problem::Described>();
    let mut paths = Map::new();
    for operation in operations {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = operation.describe(&mut generator);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Mainstem",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "An agent and its subagents over HTTP: runs, and what all of them do in one ordered stream.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": if prefix.is_empty() { "/" } else { prefix } }],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "responses": {
                "Problem": {
                    "description": "What is wrong (RFC 9457); `code` is stable.",
                    "content": { "application/problem+json": { "schema": problem } },
                },
            },
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "apiKey": { "type": "apiKey", "in": "header", "name": "x-api-key" },
                "cookie": { "type": "apiKey", "in": "cookie", "name": crate::caller::COOKIE },
            },
        },
        "security": [{ "bearer": [] }, { "apiKey": [] }, { "cookie": [] }],
    })
}
