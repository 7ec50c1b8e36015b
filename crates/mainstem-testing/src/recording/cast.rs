//! The recorded agents and tools.

use std::sync::Arc;

use mainstem::{Harness, HarnessBuilder, policy::PLAN_TOOLS, prelude::*};
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

const DESCRIPTION: &str = "Does what it did in the recording";

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
    for (name, id) in &script.agent_tools {
        builder = builder.with_tool(AgentTool::new(&**id, DESCRIPTION).with_name(&**name));
    }
    let specs = script.agents.iter().map(|(id, declared)| spec(script, id, declared));
    specs.fold(builder, HarnessBuilder::with_subagent)
}

/// Returns the tools whose results are played.
fn tools(script: &Script, stage: &Stage, results: &Results) -> impl Iterator<Item = RecordedTool> {
    let names = script.tools.iter().filter(|name| {
        !is_of_harness(name) && !script.external.contains(*name) && !script.agent_tools.contains_key(*name)
    });
    names.map(|name| RecordedTool {
        name: name.clone(),
        is_read_only: !script.changing.contains(&**name),
        results: results.clone(),
        stage: stage.clone(),
    })
}

/// Returns the declaration of an agent, without what reaches beyond the recording.
fn spec(script: &Script, id: &Arc<str>, declared: &Declared) -> AgentSpec {
    let recorded = declared.spec.as_ref().and_then(|spec| serde_json::from_value(Value::clone(spec)).ok());
    let has_declaration = recorded.is_some();
    let mut spec = recorded.unwrap_or_else(|| AgentSpec::new(&**id, DESCRIPTION));
    (spec.model, spec.url, spec.protocol, spec.mcp_servers) = (None, None, None, None);
    spec.headers.clear();
    spec.permissions.clear();
    spec.disallowed_tools.clear();
    spec.skills = None;
    spec.workspace = Default::default();
    let is_listed = |name: &&Arc<str>| is_of_harness(name) || script.agent_tools.contains_key(*name);
    let called = declared.tools.iter().filter(is_listed);
    spec.tools = Some(std::iter::once("*".to_owned()).chain(called.map(ToString::to_string)).collect());
    if !has_declaration {
        spec.steps = declared.max_iterations.unwrap_or(MANY);
        spec.persist_session = declared.persists;
    }
    spec
}
