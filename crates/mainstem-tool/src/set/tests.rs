//! Names, order, and the errors for unknown tools.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::{ToolContext, ToolError, ToolOutput, async_trait, tool_fn};

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
fn a_set_is_in_order_and_refuses_twins() {
    let mut set = ToolSet::new();
    set.insert(tool("search")).unwrap();
    set.insert(tool("fetch")).unwrap();
    assert_eq!(
        set.insert(tool("search")).unwrap_err().to_string(),
        r#"two tools are named "search"; rename one"#
    );
    assert_eq!(set.names().collect::<Vec<_>>(), ["fetch", "search"]);
    assert_eq!(set.filtered(|name| name == "fetch").specs().len(), 1);
    let error = set.resolve("serch", json!({})).err().unwrap();
    assert_eq!(error.to_string(), r#"unknown tool "serch"; known: fetch, search"#);
    let error = set.resolve("search", json!({ "query": 1 })).err().unwrap();
    assert_eq!(error.to_string(), "the arguments of search don't fit:\n- at /query: must be a string, got 1");
    assert!(set.resolve("search", json!({ "query": "rust" })).is_ok());
}

/// Tools of a server.
struct Served(ToolSet);

#[async_trait::async_trait]
impl ToolSource for Served {
    fn name(&self) -> &str {
        "served"
    }

    async fn ready(&self) {}

    fn tools(&self) -> ToolSet {
        self.0.clone()
    }

    fn owns(&self, name: &str) -> bool {
        self.0.may_have(name)
    }
}

fn set_of(names: &[String]) -> ToolSet {
    let mut set = ToolSet::new();
    names.iter().for_each(|name| set.insert(tool(name)).unwrap());
    set
}

proptest! {
    #[test]
    fn the_order_of_tools_is_that_of_their_names(
        names in Just((0..9).map(|number| format!("t{number}")).collect::<Vec<_>>()).prop_shuffle(),
        (own, of_first) in (0..4_usize, 4..9_usize),
        withheld in 0..9_usize,
    ) {
        let mut set = set_of(&names[..own]);
        set.insert_source(Arc::new(Served(set_of(&names[own..of_first]))));
        set.insert_source(Arc::new(Served(set_of(&names[of_first..]))));
        let withheld = names[withheld].clone();
        let set = set.filtered(move |name| name != withheld);
        let specs = set.specs();
        prop_assert_eq!(specs.len(), 8);
        prop_assert!(specs.is_sorted_by_key(|spec| &spec.name), "{:?}", set);
        prop_assert!(specs.iter().all(|spec| set.get(&spec.name).is_some()));
    }
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

#[test]
fn what_vendors_refuse_is_refused_here() {
    let insert = |name: &str, parameters: Value| {
        let tool = tool_fn("x", "", |_, (): ()| async { Ok::<_, ToolError>("") });
        let spec = ToolSpec::new(name, "", parameters);
        ToolSet::new().insert(Arc::new(Named(spec, tool))).map_err(|error| error.to_string())
    };
    let object = || json!({ "type": "object" });
    let longest = "a".repeat(64);
    for name in ["a", "mcp__a-b__c_1", &longest, "9"] {
        assert_eq!(insert(name, object()), Ok(()), "{name}");
    }
    for name in ["", "has space", "ünï", "a.b", &format!("{longest}a")] {
        let refused =
            format!("a tool can't be named {name:?}; use 1 to 64 letters of a-z and A-Z, digits, _ and -");
        assert_eq!(insert(name, object()), Err(refused));
    }
    let refused = "the parameters of tool \"a\" are not an object, as vendors require; a function takes a struct, or () for none";
    assert_eq!(insert("a", json!({ "type": "string" })), Err(refused.to_owned()));
    assert_eq!(insert("a", json!({})), Ok(()));
}

/// A tool with another spec.
struct Named<T>(ToolSpec, T);

#[async_trait]
impl<T: Tool> Tool for Named<T> {
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }

    async fn call(&self, cx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        self.1.call(cx, arguments).await
    }
}
