//! The scripted model server: five vendors' APIs over plain HTTP/1.1, in a process of its own
//! so that its time is not counted.

mod answer;

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use anyhow::{Context, Result};
use tokio::{net::TcpListener, runtime, task::JoinSet};

use self::answer::Visit;

/// The server as another process. It ends when this is dropped, or when its owner ends.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    url: String,
}

impl Server {
    /// Starts this same program as a model server.
    pub(crate) fn start() -> Result<Self> {
        Self::spawn(&["serve"])
    }

    /// Starts this same program as a server of agents, whose models are at `models`.
    pub(crate) fn of_agents(models: &str) -> Result<Self> {
        Self::spawn(&["agents", models])
    }

    /// Starts it as a server of agents with a journal in this file, as `mainstem serve` has one.
    pub(crate) fn of_recorded_agents(models: &str, journal: &str) -> Result<Self> {
        Self::spawn(&["agents", models, journal])
    }

    fn spawn(args: &[&str]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().context("can't start the model server")?;
        let mut url = String::new();
        let stdout = process.stdout.as_mut().context("its output is piped")?;
        BufReader::new(stdout).read_line(&mut url)?;
        Ok(Self { process, url: url.trim().to_owned() })
    }

    /// Returns the id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns its URL, without a path.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // A failure can't be reported here.
        let _ = self.process.wait();
    }
}

/// Ends the process when standard input ends.
pub(crate) fn end_with_owner() {
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
}

/// Prints its URL and serves until standard input ends.
pub(crate) fn serve() -> Result<()> {
    end_with_owner();
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        io::stdout().flush()?;
        accept(listener).await
    })
}

/// Serves connections until the future is dropped.
pub(crate) async fn accept(listener: TcpListener) -> Result<()> {
    let (mut visits, visitors) = (JoinSet::new(), AtomicU32::new(0));
    loop {
        let (socket, _) = listener.accept().await.context("can't take a connection")?;
        let visit = Visit::new(socket, visitors.fetch_add(1, Ordering::Relaxed))?;
        visits.spawn(visit.serve());
        while visits.try_join_next().is_some() {}
    }
}
