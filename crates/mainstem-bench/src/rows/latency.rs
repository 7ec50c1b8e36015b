//! Row 6: the delay of an event compared with the bare client, at low load.

use std::time::Duration;

use anyhow::{Context, Result};

use super::Bench;
use crate::{
    client::{Client, ClientKind, Observation},
    measure::{now, quantile},
    sample::block_on,
    script::Load,
    table::Figure,
};

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let load = Load::new(10, bench.scaled(100)).paced(Duration::from_millis(10));
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..bench.scaled(10) {
        bare.extend(delays(bench, ClientKind::Bare, &load)?);
        ours.extend(delays(bench, ClientKind::Mainstem, &load)?);
    }
    let at = |share| (quantile(bare.iter().copied(), share), quantile(ours.iter().copied(), share));
    let ((bare50, ours50), (bare99, ours99)) = (at(0.5), at(0.99));
    let p50 = format!("added latency over bare, p50: {ours50:.0} − {bare50:.0} µs");
    let p99 = format!("latency ÷ bare, p99: {ours99:.0} ÷ {bare99:.0} µs");
    Ok(vec![
        Figure::new(p50, ours50 - bare50, " µs").at_most(20.0),
        Figure::new(p99, ours99 / bare99, "").at_most(1.5),
    ])
}

/// Returns the microseconds from the server's write to the client.
fn delays(bench: &Bench, kind: ClientKind, load: &Load) -> Result<Vec<f64>> {
    block_on(async {
        let client = Client::connect(kind, bench.server.url(), load.wire).await?;
        let mut delays = Vec::new();
        let mut seen = |seen: Observation<'_>| {
            if let Observation::Delta(text) = seen {
                delays.push(delay(text));
            }
        };
        client.run(load, &mut seen).await?;
        delays.into_iter().collect::<Option<_>>().context("a delta is a time stamp")
    })
}

fn delay(text: &str) -> Option<f64> {
    let sent = Duration::from_nanos(text.trim().parse().ok()?);
    Some(now().saturating_sub(sent).as_secs_f64() * 1e6)
}
