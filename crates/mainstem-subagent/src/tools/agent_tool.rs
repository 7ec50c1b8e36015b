//! An agent as a tool of another: one that code has built, or one of the fleet by its id.

use std::{any::Any, sync::Arc};

use async_trait::async_trait;
use mainstem_message::ToolSpec;
use mainstem_policy::Rules;
use mainstem_react::{Agent, RunContext};
use mainstem_spec::AgentSpec;
use mainstem_tool::{Tool, ToolContext, ToolError, ToolOutput, ToolSet, schema_of};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    budget::metered::Metered,
    catalog::{Catalog, CatalogAgent, CatalogEntry, error::CatalogError},
    error::SpawnError,
    member::{Member, engine},
    middleware::Subagents,
    spawn::{
        launch::{Order, new_source},
        report::Report,
        unlisted,
    },
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
    /// Returns a tool with the agent's id as its name; the calling model decides by the
    /// description.
    fn into_tool(self, description: impl Into<String>) -> AgentTool;
}

impl IntoTool for Agent {
    fn into_tool(self, description: impl Into<String>) -> AgentTool {
        let mut spec = AgentSpec::new(&**self.id(), description);
        // Models call it by its tool, not by `agent_spawn`.
        spec.hidden = true;
        let agent = self.with_innermost(Arc::new(Subagents::only([]))).with_innermost(Arc::new(Metered));
        let (name, description) = (spec.id.clone(), spec.description.clone());
        let (spec, agent) = (Arc::new(spec), CatalogAgent::Code(agent));
        let entry = CatalogEntry { spec, agent, rules: Rules::new() };
        AgentTool { name, description, callee: Callee::Code(entry) }
    }
}

/// An agent as a tool, with the parameters `task`, `label` and `timeout_seconds` of `agent_spawn`.
///
/// A call is a spawn: the child is in the caller's stream and in its list of children, and counts
/// in the limits and budgets; if it has not answered in time, it goes on in the background;
/// `agent_send` continues its conversation. Like `agent_spawn`, the tool runs in plan mode, because
/// the child plans, too; and agents below the root have it only if their `tools` list it.
///
/// [`IntoTool`] makes one of an agent in code, around which a harness puts its middleware. It works
/// in an agent without a fleet, too; there a call waits until the child has ended. A later process
/// can continue the child if its harness has a tool of an agent with the same id and description,
/// and no second one.
#[derive(Clone, Debug)]
pub struct AgentTool {
    name: String,
    description: String,
    callee: Callee,
}

#[derive(Clone, Debug)]
enum Callee {
    /// An agent that code has built.
    Code(CatalogEntry),
    /// The agent of the fleet with this id.
    Declared(String),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Task {
    /// What it shall do, with everything it needs to know.
    task: String,
    /// A short name of your own for it, unique in this session.
    #[serde(default)]
    label: Option<String>,
    /// How many seconds to wait for the reply: 30 by default, 600 at most; then it goes on in the
    /// background. 0 does not wait at all.
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

impl AgentTool {
    /// Creates a tool of an agent that is declared: in code, in a file, or with a `url` at another
    /// machine. The tool has the agent's id as its name.
    ///
    /// The agent may be `hidden`: then models start it by this tool only. If the fleet has no such
    /// agent, the harness reports [`CatalogError::AgentTool`](crate::CatalogError::AgentTool).
    ///
    /// ```
    /// use mainstem_subagent::AgentTool;
    /// use mainstem_tool::Tool;
    ///
    /// let tool = AgentTool::new("researcher", "Looks things up").with_name("research");
    /// assert_eq!(tool.spec().name, "research");
    /// ```
    pub fn new(agent_id: impl Into<String>, description: impl Into<String>) -> Self {
        let id = agent_id.into();
        Self { name: id.clone(), description: description.into(), callee: Callee::Declared(id) }
    }

    /// Sets the tool's name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the agent, if code has built it.
    pub(crate) fn code(&self) -> Option<&CatalogEntry> {
        match &self.callee {
            Callee::Code(entry) => Some(entry),
            Callee::Declared(_) => None,
        }
    }

    /// Returns why it can't start its agent, if that is declared elsewhere.
    pub(crate) fn problem(&self, catalog: &Catalog) -> Option<CatalogError> {
        let Callee::Declared(id) = &self.callee else { return None };
        let (id, tool) = (id.clone(), self.name.clone());
        catalog.callable(&id).err().map(|source| CatalogError::AgentTool { id, tool, source: source.into() })
    }

    fn entry(&self, member: &Member) -> Result<CatalogEntry, SpawnError> {
        let catalog = &member.assembly.catalog;
        match &self.callee {
            // That of the catalog has the harness's middleware.
            Callee::Code(entry) => Ok(catalog.code_of(&entry.spec).unwrap_or(entry).clone()),
            Callee::Declared(id) => catalog.callable(id).cloned(),
        }
    }
}

/// Returns the tools of a set that are agents.
pub(crate) fn agent_tools(tools: &ToolSet) -> impl Iterator<Item = AgentTool> {
    let tools = tools.names().filter_map(|name| tools.get(&name));
    tools.filter_map(|tool| (&*tool as &dyn Any).downcast_ref::<AgentTool>().cloned())
}

#[async_trait]
impl Tool for AgentTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name.clone(), self.description.clone(), schema_of::<Task>())
    }

    /// It changes nothing itself, and the child has the rules and the plan mode of its caller.
    fn is_read_only(&self) -> bool {
        true
    }

    async fn call(&self, cx: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let Task { task, label, timeout_seconds } = serde_json::from_value(arguments)?;
        let cx = engine(cx)?;
        let report = match (Member::of(cx), self.code()) {
            (Ok(member), _) => {
                member.check_room(cx)?;
                let order = Box::new(Order { entry: self.entry(member)?, task, label });
                member.spawn(cx, order, timeout_seconds).await?
            }
            (Err(_), Some(CatalogEntry { agent: CatalogAgent::Code(agent), .. })) => {
                let has_no_effect = label.is_some() || timeout_seconds.is_some();
                call_alone(agent, cx, task).await?.noted(has_no_effect.then_some(ALONE))
            }
            (Err(error), _) => return Err(error.into()),
        };
        Ok(report.into())
    }
}

/// Runs a child of an agent without a fleet.
async fn call_alone(agent: &Agent, cx: &RunContext, task: String) -> Result<Report, SpawnError> {
    unlisted::admit(cx)?;
    let source = new_source(cx, agent.id(), Some(agent.name()), None, &task);
    let (outcome, said) = unlisted::run(agent, cx, &source, Vec::new(), task).await?;
    Ok(Report::new(&source, &outcome, &said).without_sending())
}

/// What an agent without a fleet is told of parameters that it can't use.
const ALONE: &str = "label and timeout_seconds have no effect here";
