//! Any agent as a tool of another.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use mainstem_event::EventSource;
use mainstem_message::{Message, ReplyId, ToolSpec};
use mainstem_policy::Amount;
use mainstem_react::{Agent, RunContext, RunOutcome};
use mainstem_tool::{Tool, ToolContext, ToolError, ToolOutput, schema_of};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    budget::Metered,
    error::SpawnError,
    fleet::{Fleet, Limits},
    member::Member,
    spawn::{
        idle::watch,
        launch::{new_source, run},
        report::Report,
    },
    tools::engine,
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
        AgentTool { agent: self.with_innermost(Arc::new(Metered)), description: description.into() }
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

    async fn call(&self, cx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let Task { task } = serde_json::from_value(arguments)?;
        let cx = engine(cx)?;
        let limits = admit(cx)?;
        let source = new_source(cx, &self.agent, None);
        let (outcome, _) = turn(&self.agent, cx, limits, &source, Vec::new(), task).await?;
        Ok(Report::new(&source, &outcome).into())
    }
}

/// Whether the caller may have one more child, which counts as a spawn; and its limits.
pub(crate) fn admit(cx: &RunContext) -> Result<Limits, SpawnError> {
    let fleet = Fleet::of(cx);
    let limits = fleet.map_or_else(Limits::default, |fleet| fleet.limits());
    let max_depth = fleet.map_or(limits.max_depth, |fleet| fleet.max_depth(cx));
    let depth = cx.depth();
    if depth >= max_depth {
        return Err(SpawnError::TooDeep { depth, max_depth });
    }
    if let Some(fleet) = fleet {
        fleet.reserve_spawn(cx)?.settle(Some(Amount::spawn()));
    }
    Ok(limits)
}

/// A turn of a child that is in no roster and ends with the caller's tool call; and what was said in it.
pub(crate) async fn turn(
    agent: &Agent,
    cx: &RunContext,
    limits: Limits,
    source: &EventSource,
    history: Vec<Arc<Message>>,
    task: String,
) -> Result<(RunOutcome, Vec<Arc<Message>>), SpawnError> {
    let child = cx.child(source.clone(), ReplyId::new(cx.new_id("reply-")));
    let child = match Member::of(cx) {
        Ok(member) => child.with_attachment(member.child(member.account.clone(), member.lineage.clone())),
        Err(_) => child,
    };
    // Without a fleet nothing here needs a place or a timer.
    let fleet = Fleet::of(cx);
    let (watched, most) = (child.clone(), fleet.map_or(Duration::MAX, |_| limits.idle));
    let aside = async move { watch(&watched, most).await };
    let work = Box::pin(run(agent, &child, history, task, aside));
    let outcome = match fleet {
        None => work.await,
        Some(fleet) => {
            let lent = fleet.slots.lend(cx);
            let mut place = fleet.slots.enter(cx).await?;
            place.belongs_to(&source.agent_key);
            let outcome = work.await;
            drop(place);
            lent.take_back().await;
            outcome
        }
    };
    Ok((outcome, child.messages()))
}
