//! The endpoints as an [OpenAPI 3.1](https://spec.openapis.org/oas/v3.1.0) document.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::{COOKIE, Endpoint, Problem};

/// Returns the document. `prefix` is the path under which the endpoints are nested; it may be
/// empty.
pub fn openapi(prefix: &str) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<Problem>();
    let mut paths = Map::new();
    for endpoint in Endpoint::ALL {
        let operation = endpoint.operation();
        let path = paths.entry(operation.path()).or_insert_with(|| json!({}));
        path[operation.method_key()] = operation.describe(&mut generator);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Mainstem",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "An agent and its subagents over HTTP: runs, and the events of all agents in one ordered stream.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": if prefix.is_empty() { "/" } else { prefix } }],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "responses": {
                "Problem": {
                    "description": "Why the request was refused (RFC 9457); `code` is stable.",
                    "content": { "application/problem+json": { "schema": problem } },
                },
            },
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "apiKey": { "type": "apiKey", "in": "header", "name": "x-api-key" },
                "cookie": { "type": "apiKey", "in": "cookie", "name": COOKIE },
            },
        },
        "security": [{ "bearer": [] }, { "apiKey": [] }, { "cookie": [] }],
    })
}
