//! The types that a reader starts from: the documentation of each has an example, or that of one of
//! its own methods. A type with a JSON schema has it there: its own text is a part of the schema.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::problem::Problem;

/// Items to start from that are not in the facade's prelude: by their crates.
const FURTHER: &[(&str, &[&str])] = &[
    ("mainstem", &["model_from_env", "registry_from_env", "Provider"]),
    ("mainstem_client", &["Server"]),
    ("mainstem_encode", &["Ndjson", "Sse"]),
    ("mainstem_event", &["Conversation", "EventFilter", "SessionLog"]),
    ("mainstem_journal", &["MemoryJournal", "SqliteJournal"]),
    ("mainstem_postgres", &["PostgresJournal"]),
    ("mainstem_mcp", &["AgentServer", "Server"]),
    ("mainstem_message", &["ContentBlock", "ToolCall", "ToolSpec", "Usage"]),
    (
        "mainstem_model",
        &[
            "Breaker",
            "Continuation",
            "Fallback",
            "IdleTimeout",
            "ModelError",
            "ModelOptions",
            "RateLimited",
            "RateLimiter",
            "Retry",
        ],
    ),
    ("mainstem_react", &["RunStream", "StructuredOutput"]),
    ("mainstem_schema", &["Schema"]),
    ("mainstem_server", &["Server", "Tokens"]),
    ("mainstem_sse", &["SseStream"]),
    ("mainstem_task", &["FileTaskStore", "MemoryTaskStore", "TaskSet"]),
    ("mainstem_testing", &["ModelServer", "laws", "timeline"]),
    ("mainstem_tool", &["ToolSet", "schema_of"]),
    ("mainstem_workspace", &["Workspace"]),
];

/// The facade, whose prelude has most of them.
const FACADE: &str = "mainstem";

/// The kinds of items that are started from. An enum is matched, and its variants have docs.
const KINDS: [&str; 4] = ["function", "struct", "trait", "type_alias"];

/// Names each item without an example; `docs` has rustdoc's descriptions as JSON.
///
/// # Errors
/// A description can't be read.
pub(super) fn check(docs: &Path) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let mut crates = BTreeMap::new();
    let mut wanted: Vec<_> =
        FURTHER.iter().flat_map(|(of, names)| names.iter().map(|name| path(of, name))).collect();
    wanted.extend(prelude(&read(docs, FACADE)?));
    for path in wanted {
        let Some((of, name)) = path.rsplit_once("::") else { continue };
        let of = of.split("::").next().unwrap_or_default();
        let of = if of == "crate" { FACADE } else { of };
        if !of.starts_with(FACADE) {
            continue;
        }
        if !crates.contains_key(of) {
            crates.insert(of.to_owned(), read(docs, of)?);
        }
        if !has_example(&crates[of], name) {
            let listing = super::listing(&of.replace('_', "-"));
            problems
                .push(Problem::file(listing, format!("{of}::{name} has no example; readers start from it")));
        }
    }
    Ok(problems)
}

fn path(of: &str, name: &str) -> String {
    format!("{of}::{name}")
}

fn read(docs: &Path, of: &str) -> Result<Value> {
    let file = docs.join(of).with_extension("json");
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    serde_json::from_str(&text).with_context(|| file.display().to_string())
}

/// Returns the paths that the prelude exports.
fn prelude(facade: &Value) -> Vec<String> {
    let items = facade["index"].as_object().into_iter().flatten().map(|(_, item)| item);
    let prelude = items.filter(|item| item["name"] == "prelude" && item["inner"]["module"].is_object());
    let ids = prelude.flat_map(|item| item["inner"]["module"]["items"].as_array().into_iter().flatten());
    let exported = ids.filter_map(|id| facade["index"][id.to_string()]["inner"]["use"]["source"].as_str());
    exported.map(str::to_owned).collect()
}

/// Returns `true` if an item of this name has an example, or is of a kind that needs none.
fn has_example(of: &Value, name: &str) -> bool {
    let items = of["index"].as_object().into_iter().flatten().map(|(_, item)| item);
    let is_meant = |item: &&Value| {
        let is_kind = KINDS.iter().any(|kind| item["inner"][*kind].is_object());
        item["name"] == name && item["visibility"] == "public" && is_kind && item["crate_id"] == 0
    };
    let mut meant = items.filter(is_meant).peekable();
    meant.peek().is_none() || meant.any(|item| shows(item) || methods(of, item).any(shows))
}

fn shows(item: &Value) -> bool {
    item["docs"].as_str().is_some_and(|docs| docs.contains("```"))
}

/// Returns the methods of a struct that are not of a trait.
fn methods<'a>(of: &'a Value, item: &'a Value) -> impl Iterator<Item = &'a Value> {
    let get = |id: &Value| &of["index"][id.to_string()];
    let impls = item["inner"]["struct"]["impls"].as_array().into_iter().flatten().map(get);
    let own = impls.map(|found| &found["inner"]["impl"]).filter(|found| found["trait"].is_null());
    own.flat_map(|found| found["items"].as_array().into_iter().flatten()).map(get)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_item_that_is_started_from_needs_an_example() {
        let item = |name: &str, kind: &str, docs: &str| json!({ "name": name, "visibility": "public", "crate_id": 0, "docs": docs, "inner": { kind: {} } });
        let of = json!({ "index": {
            "1": item("Agent", "struct", "An agent.\n\n```\nlet a = 1;\n```"),
            "2": item("Model", "trait", "A model."),
            "3": item("Role", "enum", "Who speaks."),
            "4": json!({
                "name": "Usage", "visibility": "public", "crate_id": 0, "docs": "Tokens.",
                "inner": { "struct": { "impls": [5] } },
            }),
            "5": json!({ "inner": { "impl": { "trait": null, "items": [6] } } }),
            "6": item("new", "function", "Creates it.\n\n```\nlet a = 1;\n```"),
        }});
        let check = |name: &str, expected: bool| assert_eq!(has_example(&of, name), expected, "{name}");
        check("Agent", true);
        check("Model", false);
        check("Role", true);
        check("Usage", true);
        check("Elsewhere", true);
    }

    #[test]
    fn the_prelude_names_its_items() {
        let facade = json!({ "index": {
            "1": { "name": "prelude", "inner": { "module": { "items": [2, 3] } } },
            "2": { "name": null, "inner": { "use": { "source": "mainstem_react::Agent" } } },
            "3": { "name": null, "inner": { "use": { "source": "crate::Harness" } } },
        }});
        assert_eq!(prelude(&facade), ["mainstem_react::Agent", "crate::Harness"]);
    }
}
