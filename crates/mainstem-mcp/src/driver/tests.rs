//! Tools that a server lists.

use async_trait::async_trait;
use mainstem_tool::{ToolContext, ToolError, ToolOutput, ToolSpec};
use serde_json::Value;

use super::*;

/// A tool that panics.
struct Broken;

#[async_trait]
impl Tool for Broken {
    fn spec(&self) -> ToolSpec {
        panic!("no schema")
    }

    async fn call(&self, _: &ToolContext, _: Value) -> Result<ToolOutput, ToolError> {
        Err(ToolError::new("never called"))
    }
}

#[tokio::test]
async fn a_panic_over_schemas_is_told() {
    let (set, problems) = compiled("x", vec![Arc::new(Broken)]).await;
    assert_eq!(set.specs().len(), 0);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("all tools of the MCP server \"x\" are left out: "), "{problems:?}");
}
