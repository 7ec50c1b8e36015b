//! Tools that the caller runs.

use async_trait::async_trait;
use mainstem_message::{ToolCall, ToolSpec};
use mainstem_tool::{Tool, ToolContext, ToolError, ToolOutput};
use serde_json::Value;

use crate::{member::Member, tools::engine};

/// A tool that is declared here and run by whoever reads the stream: a call of it says
/// `REQUIRE_EXTERNAL_EXECUTION` and waits, at any depth, until its result is submitted; others go
/// on.
#[derive(Clone, Debug)]
pub struct ExternalTool {
    spec: ToolSpec,
    is_read_only: bool,
}

impl ExternalTool {
    /// A tool of this name, for models to decide by this description, with arguments of this JSON
    /// Schema.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self { spec: ToolSpec::new(name, description, parameters), is_read_only: false }
    }

    /// Says that it changes nothing.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.is_read_only = true;
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
        let cx = engine(cx)?;
        let fleet = &Member::of(cx)?.fleet;
        let output = fleet.have_done(cx, call).await;
        output.ok_or_else(|| ToolError::new("stopped before the caller had a result"))
    }
}
