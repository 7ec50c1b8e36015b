//! Row 16: processor time of a server for twenty readers of a session, compared with one reader.

use std::{fs, time::Duration};

use anyhow::{Context, Result, ensure};
use futures_util::{StreamExt, future::try_join_all};
use reqwest::Client;
use serde_json::{Value, json};

use super::Bench;
use crate::{
    sample::block_on,
    script::{Load, Script},
    server::Server,
    table::Figure,
};

/// The unit of `/proc/PID/stat`: `USER_HZ`, which is 100 on every Linux.
const TICK: Duration = Duration::from_millis(10);

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let load = Load::new(1, bench.scaled(4000)).paced(Duration::from_millis(1));
    let measure = |readers| cpu(bench, readers, &load);
    let pairs = bench.pairs(3, || measure(20), || measure(1))?;
    let (twenty, one) = (pairs.ours(), pairs.theirs());
    let label = format!("CPU of a server, 20 readers ÷ one, paced 1 ms: {twenty:.0} ÷ {one:.0} µs an event");
    Ok(vec![Figure::new(label, pairs.ratio(), "").at_most(1.5)])
}

/// Returns the microseconds of a server of agents for an event that so many readers get.
fn cpu(bench: &Bench, readers: usize, load: &Load) -> Result<f64> {
    let dir = tempfile::tempdir()?;
    let journal = dir.path().join("journal.db");
    let journal = journal.to_str().context("the folder has a plain name")?;
    let agents = Server::of_recorded_agents(bench.server.url(), journal)?;
    let url = format!("{}/v1/sessions/s", agents.url());
    let task = Script::Say(load.say).to_task();
    let before = spent(agents.id())?;
    block_on(async {
        crate::install_crypto();
        let client = Client::new();
        let begun = client.post(format!("{url}/runs")).json(&json!({ "input": task })).send().await?;
        let run: Value = begun.error_for_status()?.json().await?;
        let events = format!("{url}/events?run={}", run["id"].as_str().context("a run has an id")?);
        let read = || async {
            let mut body = client.get(&events).send().await?.error_for_status()?.bytes_stream();
            let mut deltas = 0;
            while let Some(piece) = body.next().await {
                deltas += piece?.windows(DELTA.len()).filter(|bytes| *bytes == DELTA).count();
            }
            ensure!(deltas as u64 * 10 > load.deltas() * 9, "{deltas} deltas arrived in one piece");
            Ok(())
        };
        try_join_all((0..readers).map(|_| read())).await
    })?;
    Ok((spent(agents.id())? - before).as_secs_f64() * 1e6 / load.deltas() as f64)
}

const DELTA: &[u8] = b"event: TEXT_BLOCK_DELTA";

/// Returns the processor time of a process so far.
fn spent(process: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).context("this row needs Linux")?;
    let (_, fields) = stat.rsplit_once(')').context("a process has a name")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u32>);
    Ok(TICK * ticks.sum::<Result<u32, _>>()?)
}
