//! Names, order, and the errors for unknown tools.

use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::{ToolError, tool_fn};

#[derive(Deserialize, schemars::JsonSchema)]
struct Query {
    /// What to look for.
    #[expect(dead_code, reason = "only its schema matters here")]
    query: String,
}

fn tool(name: &str) -> Arc<dyn Tool> {
    Arc::new(tool_fn(name, "", |_, _: Query| async { Ok::<_, ToolError>("") }))
}

#[test]
fn a_set_keeps_order_and_refuses_twins() {
    let mut set = ToolSet::new();
    set.insert(tool("search")).unwrap();
    set.insert(tool("fetch")).unwrap();
    assert_eq!(
        set.insert(tool("search")).unwrap_err().to_string(),
        r#"two tools are named "search"; rename one"#
    );
    assert_eq!(set.names().collect::<Vec<_>>(), ["search", "fetch"]);
    assert_eq!(set.filtered(|name| name == "fetch").specs().len(), 1);
    let error = set.resolve("serch", json!({})).err().unwrap();
    assert_eq!(error.to_string(), r#"unknown tool "serch"; known: search, fetch"#);
    let error = set.resolve("search", json!({ "query": 1 })).err().unwrap();
    assert_eq!(error.to_string(), "the arguments of search don't fit:\n- at /query: must be a string, got 1");
    assert!(set.resolve("search", json!({ "query": "rust" })).is_ok());
}

#[test]
fn the_schema_is_what_the_type_says() {
    let expected = json!({
        "type": "object",
        "properties": { "query": { "description": "What to look for.", "type": "string" } },
        "required": ["query"],
    });
    assert_eq!(*tool("search").spec().parameters, expected);
}
