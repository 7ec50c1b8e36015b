//! One repetition of a load, and its cost.

use std::{future::Future, time::Duration};

use anyhow::{Result, ensure};
use tokio::runtime;

use crate::{
    client::{Client, ClientKind, Observation},
    fleet::Fleet,
    measure,
    script::Load,
};

/// The cost of a repetition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Processor time of all of it.
    pub(crate) cpu: Duration,
    /// From the start of the children to the first delta of any.
    pub(crate) first: Duration,
    /// Deltas of children.
    pub(crate) deltas: u64,
}

/// Runs to the end on a runtime of its own, so that nothing is left for the next repetition.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

impl Sample {
    /// Measures a load over HTTP, including its connections.
    pub(crate) fn over_http(kind: ClientKind, url: &str, load: &Load) -> Result<Self> {
        block_on(async { Self::of(&Client::connect(kind, url, load.wire).await?, load).await })
    }

    /// Measures a load over HTTP whose run is a task of a runtime with so many worker threads.
    pub(crate) fn on_threads(threads: usize, kind: ClientKind, url: &str, load: &Load) -> Result<Self> {
        let runtime = runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        let (url, load) = (url.to_owned(), *load);
        let run = async move { Self::of(&Client::connect(kind, &url, load.wire).await?, &load).await };
        runtime.block_on(runtime.spawn(run))?
    }

    /// Measures a load whose children run at a server of agents.
    pub(crate) fn remote(models: &str, agents: &str, load: &Load) -> Result<Self> {
        block_on(async {
            let client = Client::Fleet(Fleet::remote(models, agents)?);
            client.run(&Load::new(1, 1), &mut |_| {}).await?;
            Self::of(&client, load).await
        })
    }

    /// Measures a load of scripted models.
    pub(crate) fn in_process(load: &Load) -> Result<Self> {
        block_on(Self::of(&Client::Fleet(Fleet::scripted(load)?), load))
    }

    async fn of(client: &Client, load: &Load) -> Result<Self> {
        let (mut deltas, mut start, mut first) = (0, None, None);
        let before = measure::cpu();
        let mut seen = |seen: Observation<'_>| match seen {
            Observation::Start(time) => _ = start.get_or_insert(time),
            Observation::Delta(_) => {
                deltas += 1;
                first.get_or_insert_with(measure::now);
            }
        };
        client.run(load, &mut seen).await?;
        let cpu = measure::cpu() - before;
        ensure!(deltas == load.deltas(), "{deltas} of {} deltas arrived", load.deltas());
        let first = first.unwrap_or_default().saturating_sub(start.unwrap_or_default());
        Ok(Self { cpu, first, deltas })
    }

    /// Returns the microseconds of processor time for a delta.
    pub(crate) fn per_delta(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.deltas as f64
    }
}
