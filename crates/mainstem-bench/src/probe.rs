//! Measurements that need a process of their own: memory freed by earlier ones would hide theirs.

use std::{
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Subcommand, ValueEnum};
use futures_util::StreamExt;
use mainstem::event::EventKind;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::{
    client::{Client, ClientKind, Observation},
    fleet::{Fleet, is_leaf},
    measure::{self, resident},
    sample::block_on,
    script::Load,
};

/// What to measure; the URL is the model server's.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Probe {
    /// Memory that children take which wait for their models
    Waiting { kind: ClientKind, children: u32, url: String },
    /// The time to the first delta of a process, with all that is built for it
    First { kind: ClientKind, url: String },
    /// What happens while the caller does not read
    Stall { seconds: u64, children: u32, deltas: u32, url: String },
}

/// What a caller finds after it has not read for a while.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Stalled {
    /// The number of deltas that never arrived, and of gaps.
    pub(crate) lost: u64,
    /// The growth of memory meanwhile, in bytes.
    pub(crate) growth: i64,
}

/// Returns the number of bytes that so many waiting children take.
pub(crate) fn waiting(kind: ClientKind, children: u32, url: &str) -> Result<i64> {
    let kind = kind.to_possible_value().context("a kind has a name")?;
    ask(&["waiting", kind.get_name(), &children.to_string(), url])
}

/// Returns the microseconds to the first delta of a process.
pub(crate) fn first(kind: ClientKind, url: &str) -> Result<f64> {
    let kind = kind.to_possible_value().context("a kind has a name")?;
    ask(&["first", kind.get_name(), url])
}

/// Stops reading in the middle of a load, then continues.
pub(crate) fn stall(seconds: u64, load: &Load, url: &str) -> Result<Stalled> {
    ask(&["stall", &seconds.to_string(), &load.children.to_string(), &load.say.deltas.to_string(), url])
}

fn ask<T: for<'de> Deserialize<'de>>(arguments: &[&str]) -> Result<T> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.arg("probe").args(arguments).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "the probe {arguments:?} failed");
    Ok(serde_json::from_slice(&output.stdout)?)
}

impl Probe {
    /// Measures, and writes the figures as JSON.
    pub(crate) fn run(self) -> Result<()> {
        let figures = match self {
            Self::Waiting { kind, children, url } => {
                serde_json::to_string(&block_on(wait(kind, &Load::new(children, 1).hanging(), &url))?)?
            }
            Self::First { kind, url } => {
                let begun = measure::now();
                let seen = block_on(first_delta(kind, &url))?;
                serde_json::to_string(&((seen - begun).as_secs_f64() * 1e6))?
            }
            Self::Stall { seconds, children, deltas, url } => {
                let pause = Duration::from_secs(seconds);
                serde_json::to_string(&block_on(pause_reading(pause, &Load::new(children, deltas), &url))?)?
            }
        };
        println!("{figures}");
        Ok(())
    }
}

async fn wait(kind: ClientKind, load: &Load, url: &str) -> Result<i64> {
    let client = Client::connect(kind, url, load.wire).await?;
    let (before, deltas) = (resident()?, AtomicU64::new(0));
    let mut seen = |seen: Observation<'_>| {
        if let Observation::Delta(_) = seen {
            deltas.fetch_add(1, Ordering::Relaxed);
        }
    };
    let all_wait = async {
        while deltas.load(Ordering::Relaxed) < load.deltas() {
            sleep(Duration::from_millis(50)).await;
        }
        sleep(Duration::from_millis(200)).await;
    };
    tokio::select! {
        ended = client.run(load, &mut seen) => bail!("the children did not wait: {ended:?}"),
        () = all_wait => Ok(resident()?.cast_signed() - before.cast_signed()),
    }
}

/// Returns the time of the first delta of a run of one agent.
async fn first_delta(kind: ClientKind, url: &str) -> Result<Duration> {
    let load = Load::new(1, 1);
    let mut first = None;
    let mut seen = |seen: Observation<'_>| {
        if let Observation::Delta(_) = seen {
            first.get_or_insert_with(measure::now);
        }
    };
    match kind {
        ClientKind::Mainstem => Fleet::over_http(url, load.wire)?.say(&load, &mut seen).await?,
        _ => Client::new(kind, url, load.wire)?.run(&load, &mut seen).await?,
    }
    first.context("a delta arrives")
}

async fn pause_reading(pause: Duration, load: &Load, url: &str) -> Result<Stalled> {
    let mut run = Fleet::over_http(url, load.wire)?.start(load);
    let (mut deltas, mut gaps, mut growth) = (0, 0, 0);
    while let Some(event) = run.next().await {
        match &event.kind {
            EventKind::TextBlockDelta { .. } if is_leaf(&event) => deltas += 1,
            EventKind::Gap { missed, .. } => gaps += missed,
            _ => continue,
        }
        if deltas == load.deltas() / 10 {
            let before = resident()?.cast_signed();
            sleep(pause).await;
            growth = resident()?.cast_signed() - before;
        }
    }
    Ok(Stalled { lost: load.deltas() - deltas + gaps, growth })
}
