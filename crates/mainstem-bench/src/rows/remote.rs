//! Row 13: processor time of the caller for an event of a child at another server, compared with
//! one of a child here.

use std::time::Duration;

use anyhow::Result;

use super::Bench;
use crate::{client::ClientKind, sample::Sample, script::Load, server::Server, table::Figure};

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let agents = Server::of_agents(bench.server.url())?;
    let paced = |children| Load::new(children, bench.scaled(1000)).paced(Duration::from_millis(1));
    let loads = [(30, Load::new(10, 1000)), (30, Load::new(100, 200)), (5, paced(10)), (5, paced(100))];
    loads.iter().map(|(times, load)| ratio(bench, &agents, *times, load)).collect()
}

fn ratio(bench: &Bench, agents: &Server, times: u32, load: &Load) -> Result<Figure> {
    let models = bench.server.url();
    let there = || Ok(Sample::remote(models, agents.url(), load)?.per_delta());
    let here = || Ok(Sample::over_http(ClientKind::Mainstem, models, load)?.per_delta());
    let pairs = bench.pairs(times, there, here)?;
    let (there, here) = (pairs.ours(), pairs.theirs());
    let pace = if load.say.pace > 0 { ", paced 1 ms" } else { "" };
    let label = format!(
        "CPU per event, remote ÷ local child, K = {}{pace}: {there:.2} ÷ {here:.2} µs",
        load.children
    );
    let figure = Figure::new(label, pairs.ratio(), "");
    // Without a pace the other server is the slower one: the caller wakes for each event, where a
    // model's bytes come in lumps.
    Ok(if load.say.pace > 0 { figure.at_most(1.5) } else { figure })
}
