//! Tools that the caller of the run executes.

use async_trait::async_trait;
use mainstem_message::{ToolCall, ToolSpec};
use mainstem_tool::{Tool, ToolContext, ToolError, ToolOutput};
use serde_json::Value;

use crate::member::Member;

/// A tool that is declared here and executed by the caller of the run: a call of it emits
/// `REQUIRE_EXTERNAL_EXECUTION` and waits, at any depth, until its result is submitted. Other calls
/// go on.
///
/// ```
/// use mainstem_subagent::ExternalTool;
/// use serde_json::json;
///
/// let question = json!({ "type": "string" });
/// let parameters = json!({ "type": "object", "properties": { "question": question } });
/// let ask = ExternalTool::new("ask_user", "Asks the person at the screen", parameters);
/// # let _ = ask.with_read_only(true);
/// ```
#[derive(Clone, Debug)]
pub struct ExternalTool {
    spec: ToolSpec,
    is_read_only: bool,
}

impl ExternalTool {
    /// Creates a tool with this name, a description by which models decide, and a JSON Schema of
    /// its arguments.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self { spec: ToolSpec::new(name, description, parameters), is_read_only: false }
    }

    /// Sets whether the tool changes nothing; `false` by default.
    #[must_use]
    pub fn with_read_only(mut self, is_read_only: bool) -> Self {
        self.is_read_only = is_read_only;
        self
    }
}

#[async_trait]
impl Tool for ExternalTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    async fn call(&self, cx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let call = ToolCall::new(cx.call_id().clone(), &*self.spec.name, arguments.to_string());
        let (cx, member) = Member::of_call(cx)?;
        let output = member.run_externally(cx, call, std::future::pending()).await;
        output.ok_or_else(|| ToolError::new("stopped before the caller had a result"))
    }
}
