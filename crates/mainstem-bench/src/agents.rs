//! A server of agents, in a process of its own so that its time is not counted.

use std::{
    io::{self, Write},
    path::Path,
};

use anyhow::Result;
use mainstem::{journal::SqliteJournal, prelude::Harness};
use tokio::{net::TcpListener, runtime};

use crate::{script::WORKER, server, wire::Wire};

/// Prints its URL and serves until standard input ends.
pub(crate) fn serve(models: &str, journal: Option<&Path>) -> Result<()> {
    server::end_with_owner();
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let harness = Harness::builder(WORKER, Wire::default().model(models)?);
        let harness = match journal {
            Some(path) => harness.with_journal(SqliteJournal::open(path)?).build()?,
            None => harness.build()?,
        };
        let server =
            mainstem_server::Server::new(harness).with_max_runs(1_024).with_max_sessions(1 << 20).build()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        io::stdout().flush()?;
        server.serve(listener, Default::default()).await?;
        Ok(())
    })
}
