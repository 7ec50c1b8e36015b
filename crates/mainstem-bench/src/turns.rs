//! One agent with turn after turn, a scripted model and a tool that does nothing.

use anyhow::{Result, ensure};
use mainstem::{
    event::Outcome,
    model::scripted::Turn,
    prelude::{Agent, ScriptedModel, ToolError, tool_fn},
};
use serde_json::{Map, Value, json};

use crate::{measure, sample::block_on, script::TEXT};

/// Model calls of one run.
const CALLS: usize = 10;

/// Returns the processor time of a model call in microseconds, with a text and a tool call in all
/// but the last of a run.
pub(crate) fn turn(runs: u32) -> Result<f64> {
    let reply = || Turn::new().text(TEXT);
    let turns = (1..CALLS).map(|_| reply().call("nothing", json!({}))).chain([reply()]);
    let nothing =
        tool_fn("nothing", "Does nothing", |_, _: Map<String, Value>| async { Ok::<_, ToolError>("done") });
    let agent =
        Agent::builder("root", ScriptedModel::new().agent("root", turns)).with_tool(nothing).build()?;
    block_on(async {
        let before = measure::cpu();
        for _ in 0..runs {
            let end = agent.call("go").await;
            ensure!(end.outcome == Outcome::Success, "the run ended with {end:?}");
        }
        Ok((measure::cpu() - before).as_secs_f64() * 1e6 / (runs as usize * CALLS) as f64)
    })
}
