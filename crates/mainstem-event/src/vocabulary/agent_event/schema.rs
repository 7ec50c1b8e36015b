//! The JSON Schema of the envelope, and the table of kinds for `docs/events.md`, from the same
//! table as the enum.

use std::{borrow::Cow, fmt::Write as _};

use mainstem_message::{ReplyId, RunId, SessionId};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::AgentEvent;
use crate::{EventKind, EventSource, Timestamp, vocabulary::kind::Row};

impl JsonSchema for AgentEvent {
    fn schema_name() -> Cow<'static, str> {
        "AgentEvent".into()
    }

    /// Returns an alternative for each kind, and one for kinds of a later version.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut kinds: Vec<Value> = EventKind::table(generator).iter().map(of_kind).collect();
        kinds.push(json!({
            "title": "Unknown",
            "description": "A kind of a later version.",
            "properties": { "type": { "type": "string", "not": { "enum": EventKind::NAMES } } },
        }));
        let mut schema = json_schema!({
            "type": "object",
            "description": "Something that happened in a session.",
            "required": ["type", "seq", "sessionId", "createdAt"],
            "oneOf": kinds,
        });
        schema.insert("properties".to_owned(), Value::Object(envelope(generator)));
        schema
    }
}

fn envelope(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut add = |name: &str, schema: Value| properties.insert(name.to_owned(), schema);
    add("type", json!({ "type": "string" }));
    let gapless = "1, 2, 3 … without a gap within the session";
    add("seq", json!({ "type": "integer", "minimum": 1, "description": gapless }));
    add("id", json!({ "type": "string", "description": "<sessionId>.<seq>" }));
    add("sessionId", generator.subschema_for::<SessionId>().into());
    add("runId", generator.subschema_for::<RunId>().into());
    add("createdAt", generator.subschema_for::<Timestamp>().into());
    add("source", generator.subschema_for::<EventSource>().into());
    let root_id = "The id of the root, on its own events, unless it is `main`.";
    add("rootId", json!({ "type": "string", "description": root_id }));
    add("replyId", generator.subschema_for::<ReplyId>().into());
    add("metadata", json!({ "type": "object" }));
    properties
}

fn of_kind(row: &Row) -> Value {
    let mut properties = Map::from_iter([("type".to_owned(), json!({ "const": row.tag }))]);
    for field in &row.fields {
        properties.insert(field.name.to_owned(), field.schema.clone().into());
    }
    let required: Vec<_> = row.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    json!({ "title": row.tag, "description": joined(row.doc), "properties": properties, "required": required })
}

/// Returns the table of kinds as Markdown, for `docs/events.md`.
pub fn markdown_table() -> String {
    let mut generator = SchemaGenerator::default();
    let mut text = String::from("| `type` | meaning | fields beside the envelope |\n|---|---|---|\n");
    for row in EventKind::table(&mut generator) {
        let fields: Vec<_> = row
            .fields
            .iter()
            .map(|field| {
                let mark = if field.required { "" } else { "?" };
                format!("`{}{mark}`: {}", field.name, joined(field.doc).trim_end_matches('.'))
            })
            .collect();
        let _ = writeln!(text, "| `{}` | {} | {} |", row.tag, joined(row.doc), fields.join("<br>"));
    }
    text
}

/// Joins the lines of a doc comment, which is wrapped in the source.
fn joined(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
