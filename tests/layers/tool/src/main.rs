//! A program over `mainstem-tool` alone: a function as a tool, whose arguments are checked.

use std::sync::Arc;

use mainstem_tool::{ToolError, ToolSet, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// What to look for.
    query: String,
}

fn main() {
    let tools = tools();
    assert_eq!(tools.names().collect::<Vec<_>>(), ["search"]);

    // Arguments are checked against the schema of the type before the function is called.
    let refused = tools.resolve("search", json!({ "query": [1] }));
    assert!(refused.is_err_and(|error| error.to_string().contains("/query")));
    assert!(tools.resolve("search", json!({ "query": "Rome" })).is_ok());
}

fn tools() -> ToolSet {
    let search = tool_fn("search", "Searches the corpus", |_cx, search: Search| async move {
        Ok::<_, ToolError>(format!("nothing about {}", search.query))
    });
    let mut tools = ToolSet::new();
    tools.insert(Arc::new(search)).expect("the only tool");
    tools
}

#[cfg(test)]
mod tests {
    use mainstem_tool::message::ContentBlock;
    use serde_json::json;

    #[test]
    fn the_program_runs() {
        super::main();
    }

    /// The test kit has the context that an agent would give.
    #[tokio::test]
    async fn the_tool_is_called_without_an_agent() {
        let (tool, arguments) = super::tools().resolve("search", json!({ "query": "Rome" })).unwrap();
        let cx = mainstem_testing::context("session-1").build();
        let (content, _state) = tool.call(&cx, arguments).await.unwrap().into_parts();
        assert!(matches!(&content[..], [ContentBlock::Text { text, .. }] if text == "nothing about Rome"));
    }
}
