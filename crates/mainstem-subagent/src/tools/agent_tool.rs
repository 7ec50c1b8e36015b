//! Any agent as a tool of another.

use std::sync::Arc;

use async_trait::async_trait;
use mainstem_message::ToolSpec;
use mainstem_react::Agent;
use mainstem_tool::{Tool, ToolContext, ToolError, ToolOutput, schema_of};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    budget::metered::Metered,
    member::engine,
    spawn::{launch::new_source, report::Report, unlisted},
};

/// Turns an [`Agent`] into a tool.
///
/// ```
/// use mainstem_model::{ScriptedModel, scripted::Turn};
/// use mainstem_react::Agent;
/// use mainstem_subagent::IntoTool;
/// use mainstem_tool::Tool;
///
/// let model = ScriptedModel::new().agent("translator", [Turn::new().text("Hallo.")]);
/// let translator = Agent::builder("translator", model).build()?;
/// let tool = translator.into_tool("Translates a text to German");
/// assert_eq!(tool.spec().name, "translator");
/// # Ok::<(), mainstem_tool::ToolSetError>(())
/// ```
pub trait IntoTool {
    /// Returns a tool with the agent's name and one parameter `task`; the calling model decides by
    /// the description.
    ///
    /// Each call is a child with a conversation of its own, whose events are in the caller's stream
    /// like those of any other child.
    fn into_tool(self, description: impl Into<String>) -> AgentTool;
}

impl IntoTool for Agent {
    fn into_tool(self, description: impl Into<String>) -> AgentTool {
        AgentTool { agent: self.with_innermost(Arc::new(Metered)), description: description.into() }
    }
}

/// The tool that [`IntoTool`] creates.
#[derive(Clone, Debug)]
pub struct AgentTool {
    agent: Agent,
    description: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Task {
    /// What it shall do, with everything it needs to know.
    task: String,
}

#[async_trait]
impl Tool for AgentTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(&**self.agent.id(), self.description.clone(), schema_of::<Task>())
    }

    async fn call(&self, cx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let Task { task } = serde_json::from_value(arguments)?;
        let cx = engine(cx)?;
        unlisted::admit(cx)?;
        let source = new_source(cx, self.agent.id(), Some(self.agent.name()), None);
        let (outcome, said) = unlisted::run(&self.agent, cx, &source, Vec::new(), task).await?;
        Ok(Report::new(&source, &outcome, &said).without_sending().into())
    }
}
