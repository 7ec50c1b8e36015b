//! Any agent as a tool of another.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use mainstem_event::EventSource;
use mainstem_message::{ReplyId, ToolSpec};
use mainstem_policy::Amount;
use mainstem_react::Agent;
use mainstem_tool::{RunContext, Tool, ToolError, ToolOutput, schema_of};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Fleet, Limits, SpawnError,
    idle::{Waits, watched},
    launch::{new_source, run},
    report::Report,
    spending::Metered,
};

/// Turns an [`Agent`] into a tool.
pub trait IntoTool {
    /// A tool named like the agent, with one parameter `task`; the description is what the calling model decides by.
    ///
    /// Each call is a child with a conversation of its own, live in the caller's stream like any other.
    fn into_tool(self, description: impl Into<String>) -> AgentTool;
}

impl IntoTool for Agent {
    fn into_tool(self, description: impl Into<String>) -> AgentTool {
        AgentTool { agent: self.with_innermost(Metered), description: description.into() }
    }
}

/// What [`IntoTool`] makes.
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

    async fn call(&self, cx: &RunContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let Task { task } = serde_json::from_value(arguments)?;
        let fleet = cx.get::<Fleet>();
        let limits = fleet.as_ref().map_or_else(Limits::default, |fleet| fleet.limits());
        let (depth, max_depth) = (cx.depth(), limits.max_depth);
        if depth >= max_depth {
            return Err(SpawnError::TooDeep { depth, max_depth }.into());
        }
        if let Some(fleet) = &fleet {
            fleet.reserve_spawn(cx)?.settle(Some(Amount::spawn()));
        }
        let source = new_source(cx, self.agent.id());
        // Without a fleet nothing here needs a timer.
        let Some(fleet) = fleet else { return Ok(self.work(cx, source, Duration::MAX, task).await) };
        let lent = fleet.slots.lend(cx);
        let mut place = fleet.slots.enter(cx).await;
        place.belongs_to(&source.agent_key);
        let output = self.work(cx, source, limits.idle, task).await;
        drop(place);
        lent.take_back().await;
        Ok(output)
    }
}

impl AgentTool {
    async fn work(&self, cx: &RunContext, source: EventSource, idle: Duration, task: String) -> ToolOutput {
        let child = cx.child(source.clone(), ReplyId::new(cx.new_id("reply-")));
        let child = child.with_extension(Arc::<Waits>::default());
        let outcome = watched(&child, idle, run(&self.agent, &child, Vec::new(), task)).await;
        Report::new(&source, outcome).into()
    }
}
