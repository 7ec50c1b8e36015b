//! A program over `mainstem-tool` alone: a function as a tool, called as an agent would call it.

use std::sync::Arc;

use mainstem_tool::{
    RunContext, ToolError, ToolSet,
    event::{EventSink, Origin, SessionLog},
    message::ContentBlock,
    tool_fn,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// What to look for.
    query: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let search = tool_fn("search", "Searches the corpus", |_cx, search: Search| async move {
        Ok::<_, ToolError>(format!("nothing about {}", search.query))
    });
    let mut tools = ToolSet::new();
    tools.insert(Arc::new(search)).expect("the only tool");

    // Arguments are checked against the schema of the type before the function is called.
    let refused = tools.resolve("search", json!({ "query": [1] }));
    assert!(refused.is_err_and(|error| error.to_string().contains("/query")));

    let (tool, arguments) = tools.resolve("search", json!({ "query": "Rome" })).expect("valid arguments");
    let log = SessionLog::new("session-1".into());
    let cx =
        RunContext::root("main", EventSink::root(log, Origin::session("session-1".into(), None))).build();
    let output = tool.call(&cx, arguments).await.expect("a result");
    let (content, _state) = output.into_parts();
    assert!(matches!(&content[..], [ContentBlock::Text { text, .. }] if text == "nothing about Rome"));
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_program_runs() {
        super::main();
    }
}
