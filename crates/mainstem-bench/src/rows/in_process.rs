//! Row 5: what Mainstem itself takes, with models that answer at once.

use anyhow::{Result, ensure};
use mainstem::{
    event::Outcome,
    model::scripted::Turn,
    prelude::{Agent, ScriptedModel, ToolError, tool_fn},
};
use serde_json::{Map, Value, json};

use super::Bench;
use crate::{
    measure::{self, median},
    sample::{Sample, block_on},
    script::{Load, TEXT},
    table::Figure,
};

/// Turns of one run.
const TURNS: usize = 10;

pub(super) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let events: Result<Vec<_>> = [10, 100, 1000].iter().map(|children| event(bench, *children)).collect();
    let mut figures = events?;
    figures.push(turn(bench)?);
    Ok(figures)
}

/// A million events of so many children, to start which is a part of it.
fn event(bench: &Bench, children: u32) -> Result<Figure> {
    let load = Load::new(children, bench.scaled(1_000_000 / children));
    let times = 0..bench.scaled(10);
    let taken: Result<Vec<_>> = times.map(|_| Ok(Sample::in_process(&load)?.per_delta())).collect();
    Ok(Figure::new(format!("CPU per event in process, K = {children}"), median(taken?), " µs").at_most(0.5))
}

/// Runs whose turns say a word and call a tool that has nothing to do.
fn turn(bench: &Bench) -> Result<Figure> {
    let turn = || Turn::new().text(TEXT).call("nothing", json!({}));
    let turns = (1..TURNS).map(|_| turn()).chain([Turn::new().text(TEXT)]);
    let nothing =
        tool_fn("nothing", "Does nothing", |_, _: Map<String, Value>| async { Ok::<_, ToolError>("done") });
    let agent = Agent::builder("root", ScriptedModel::new().agent("root", turns)).tool(nothing).build()?;
    let times = 0..bench.scaled(100);
    let taken: Result<Vec<_>> = times.map(|_| block_on(runs(&agent, 100))).collect();
    Ok(Figure::new("CPU per scripted turn that calls a tool", median(taken?), " µs").at_most(5.0))
}

/// Microseconds for a turn.
async fn runs(agent: &Agent, times: usize) -> Result<f64> {
    let before = measure::cpu();
    for _ in 0..times {
        let end = agent.call("go").await;
        ensure!(end.outcome == Outcome::Success, "the run ended with {end:?}");
    }
    Ok((measure::cpu() - before).as_secs_f64() * 1e6 / (times * TURNS) as f64)
}
