//! The recorded agents and tools.

use std::sync::Arc;

use mainstem::{Harness, HarnessBuilder, policy::PLAN_TOOLS, prelude::*, subagent::AgentTool};
use serde_json::{Value, json};

use super::{
    Recording,
    answers::{Calls, RecordedTool, Results},
    schedule::Stage,
    script::{Declared, Script},
};
use crate::FakeClock;

/// Returns `true` for a tool of the harness itself that begins or reaches other agents. These run,
/// and are not played.
pub(super) fn is_of_harness(tool: &str) -> bool {
    PLAN_TOOLS.contains(&tool) && tool != "plan_exit"
}

/// More iterations than a model has recorded answers: an agent ends where its answers end.
const MANY: u32 = 1_000_000;

pub(super) fn harness(recording: &Recording) -> HarnessBuilder {
    let (script, stage) = (&*recording.script, &recording.stage);
    let results = Results::new(script);
    let mut builder = Harness::builder(script.root.clone(), recording.model())
        .with_ids(recording.ids())
        .with_clock(FakeClock::default())
        .with_max_iterations(script.max_iterations.unwrap_or(MANY))
        .with_permissions(script.rules.clone())
        .with_middleware(Calls { results: results.clone(), stage: stage.clone() });
    for tool in tools(script, stage, &results) {
        builder = builder.with_tool(tool);
    }
    for name in script.external.iter() {
        let tool = ExternalTool::new(&**name, "Is executed by the caller", json!({ "type": "object" }));
        builder = builder.with_tool(tool.with_read_only(!script.changing.contains(&**name)));
    }
    for id in &script.agent_tools {
        builder = builder.with_tool(agent_tool(recording, &results, id, &mut Vec::new()));
    }
    let spawned = script.agents.iter().filter(|(id, _)| !script.agent_tools.contains(*id));
    spawned.fold(builder, |builder, (id, declared)| builder.with_subagent(spec(id, declared)))
}

/// Returns the tools whose results are played.
fn tools(script: &Script, stage: &Stage, results: &Results) -> impl Iterator<Item = RecordedTool> {
    let names = script.tools.iter().filter(|name| {
        let others = [&script.external, &script.agent_tools];
        !is_of_harness(name) && others.iter().all(|others| !others.contains(*name))
    });
    names.map(|name| RecordedTool {
        name: name.clone(),
        is_read_only: !script.changing.contains(&**name),
        results: results.clone(),
        stage: stage.clone(),
    })
}

/// Returns an agent as a tool, with the agents that it has as tools itself.
fn agent_tool(
    recording: &Recording,
    results: &Results,
    id: &Arc<str>,
    above: &mut Vec<Arc<str>>,
) -> AgentTool {
    let (script, stage) = (&*recording.script, &recording.stage);
    above.push(id.clone());
    let mut agent = Agent::builder(id.clone(), recording.model());
    for tool in tools(script, stage, results) {
        agent = agent.with_tool(tool);
    }
    let called = script.agents.get(id).map(|declared| &declared.tools);
    for inner in called.into_iter().flatten().filter(|name| script.agent_tools.contains(*name)) {
        if !above.contains(inner) {
            agent = agent.with_tool(agent_tool(recording, results, inner, above));
        }
    }
    above.pop();
    #[expect(clippy::expect_used, reason = "the names of recorded tools are keys of sets")]
    let agent = agent.build().expect("the tools have different names");
    agent.into_tool("Does what it did in the recording")
}

/// Returns the declaration of an agent, without what reaches beyond the recording.
fn spec(id: &Arc<str>, declared: &Declared) -> AgentSpec {
    let recorded = declared.spec.as_ref().and_then(|spec| serde_json::from_value(Value::clone(spec)).ok());
    let has_declaration = recorded.is_some();
    let mut spec = recorded.unwrap_or_else(|| AgentSpec::new(&**id, "Does what it did in the recording"));
    (spec.model, spec.url, spec.protocol, spec.mcp_servers) = (None, None, None, None);
    spec.headers.clear();
    spec.permissions.clear();
    spec.disallowed_tools.clear();
    spec.skills = None;
    spec.workspace = Default::default();
    let called = declared.tools.iter().filter(|name| is_of_harness(name));
    spec.tools = Some(std::iter::once("*".to_owned()).chain(called.map(ToString::to_string)).collect());
    if !has_declaration {
        spec.steps = declared.max_iterations.unwrap_or(MANY);
        spec.persist_session = declared.persists;
    }
    spec
}
