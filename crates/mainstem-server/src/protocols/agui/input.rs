//! `RunAgentInput`, as AG-UI 1.0 and its clients before that write it.

use std::{mem, sync::Arc};

use mainstem::{policy::Tenant, prelude::ExternalTool, tool::ToolSet};
use mainstem_api::Code;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{app::App, problem::Problem, runs::compile_with};

/// The most tools of a frontend.
const MAX_TOOLS: usize = 128;

/// A request to run an agent. Fields that are not known are ignored, as the specification requires.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunAgentInput {
    pub(super) thread_id: String,
    pub(super) run_id: String,
    #[serde(default)]
    pub(super) parent_run_id: Option<String>,
    #[serde(default)]
    pub(super) protocol_version: Option<String>,
    #[serde(default)]
    pub(super) state: Value,
    #[serde(default)]
    pub(super) messages: Vec<Message>,
    #[serde(default)]
    pub(super) tools: Vec<Tool>,
    #[serde(default)]
    pub(super) context: Vec<Context>,
    #[serde(default)]
    pub(super) forwarded_props: Value,
    #[serde(default)]
    pub(super) resume: Vec<ResumeEntry>,
}

/// A message of any role.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) role: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(super) content: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// What is returned as it came.
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

/// A tool that the frontend runs.
#[derive(Debug, Deserialize)]
pub(super) struct Tool {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Value,
}

/// Something that the application tells the agent.
#[derive(Debug, Deserialize)]
pub(super) struct Context {
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) value: Value,
}

/// The answer to an interrupt.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResumeEntry {
    pub(super) interrupt_id: String,
    pub(super) status: ResumeStatus,
    #[serde(default)]
    pub(super) payload: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ResumeStatus {
    Resolved,
    Cancelled,
}

impl RunAgentInput {
    /// Returns `true` if the last message has this role.
    pub(super) fn ends_with(&self, role: &str) -> bool {
        self.messages.last().is_some_and(|last| last.role == role)
    }

    /// Returns the messages before the run that answers the last one of the user, and its reasoning
    /// without text: a client keeps the reasoning that it has if the messages have none.
    pub(super) fn before_run(&self) -> Vec<Value> {
        let last = self.messages.iter().rposition(|message| message.role == "user");
        let (before, after) = self.messages.split_at(last.map_or(0, |last| last + 1));
        let mut messages: Vec<_> = before.iter().map(|message| json!(message)).collect();
        for reasoning in after.iter().filter(|message| message.role == "reasoning") {
            messages.push(json!(Message { content: "".into(), ..reasoning.clone() }));
        }
        messages
    }

    /// Returns the ids of the calls whose results are among the messages.
    pub(super) fn result_ids(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().filter_map(|message| message.tool_call_id.as_deref())
    }

    /// Takes the frontend's tools.
    ///
    /// # Errors
    /// There are too many, two have the same name, or a schema is not valid.
    pub(super) async fn take_tools(&mut self, app: &App, tenant: &Tenant) -> Result<ToolSet, Problem> {
        if self.tools.len() > MAX_TOOLS {
            return Err(wrong("/tools", &format!("a request has at most {MAX_TOOLS} tools")));
        }
        let tools = Tools(mem::take(&mut self.tools));
        if tools.0.is_empty() {
            return Ok(ToolSet::new());
        }
        compile_with(app, tenant, move || tools.compile()).await?
    }
}

/// The tools of a frontend.
struct Tools(Vec<Tool>);

impl Tools {
    fn compile(self) -> Result<ToolSet, Problem> {
        let mut tools = ToolSet::new();
        for (place, tool) in self.0.iter().enumerate() {
            let parameters = match &tool.parameters {
                Value::Null => json!({ "type": "object" }),
                schema => schema.clone(),
            };
            let external = ExternalTool::new(&*tool.name, &*tool.description, parameters);
            tools
                .insert(Arc::new(external))
                .map_err(|error| wrong(&format!("/tools/{place}"), &error.to_string()))?;
        }
        Ok(tools)
    }
}

/// A body that is refused because of the value at a JSON pointer.
pub(super) fn wrong(pointer: &str, why: &str) -> Problem {
    let problem = Problem::new(Code::BadBody, format!("the body does not fit, at {pointer:?}: {why}"));
    problem.with("errors", json!([{ "pointer": pointer, "detail": why }]))
}
