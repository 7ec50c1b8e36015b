//! The driver: a task for each server that runs, which owns its process and its connection, whoever
//! polls the runs that use it.

use std::{
    future::pending,
    sync::{Arc, Weak},
    time::Duration,
};

use mainstem_tool::{Tool, ToolSet, unless};
use rmcp::{
    RoleClient,
    model::{PaginatedRequestParams, ServerNotification, Tool as Listed},
    service::Peer,
};
use tokio::{
    runtime::Handle,
    sync::watch,
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Error, Server,
    call::Calls,
    client::{Phase, Present, Shared},
    open::{Connection, Local, chain, open},
    process::Process,
    tap::Listener,
    tool::RemoteTool,
};

/// How long listing tools may take.
const LISTING: Duration = Duration::from_secs(10);

/// How long the tools are left alone after they were listed: some servers say that they have others
/// whenever they are asked.
const PAUSE: Duration = Duration::from_millis(100);

/// How long one waits for what should be at its end.
const GRACE: Duration = Duration::from_secs(1);

/// More tools than any model could read.
const MAX_TOOLS: usize = 1000;

/// All that it takes to keep a server.
pub(crate) struct Keeper {
    pub(crate) name: Arc<str>,
    pub(crate) server: Arc<Server>,
    pub(crate) shared: Weak<Shared>,
    pub(crate) present: Arc<watch::Sender<Present>>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) stop: CancellationToken,
}

impl Keeper {
    /// Begins. The task ends with the server, when the last handle is gone, or with the runtime;
    /// however it ends, it says so.
    pub(crate) fn spawn(self, runtime: &Handle) {
        // Made here: a runtime that is at its end drops the task before it has begun.
        let end = Said {
            name: self.name.clone(),
            present: self.present.clone(),
            calls: self.calls.clone(),
            error: None,
        };
        // No run may own what all share: a caller that pauses would hold up the others. The client
        // owns it, by its token.
        runtime.spawn(self.keep(end));
    }

    async fn keep(self, mut said: Said) {
        let mut local = Local::default();
        let stopped = self.stop.clone();
        let end = match unless(stopped.cancelled(), self.start(&mut local)).await {
            Some(Ok(connection)) => self.serve(connection, &mut local).await,
            Some(Err(why)) => End::NotStarted(why),
            None => End::ShutDown,
        };
        let farewell = local.end(&self.name, &self.calls).await;
        let error = self.error(end, &farewell);
        if !matches!(error, Error::ShutDown { .. }) {
            tracing::warn!("{error}");
        }
        said.error = Some(error);
    }

    /// Opens the connection and lists the tools, in the time there is for that.
    async fn start(&self, local: &mut Local) -> Result<Connection, String> {
        let listener = Arc::new(Ear { present: self.present.clone(), calls: self.calls.clone() });
        let patience = self.server.start_timeout;
        let started = timeout(patience, async {
            let connection = open(&self.name, &self.server, &self.calls, local, listener).await?;
            let peer = connection.service.peer().clone();
            let listed = self.list(&peer, local).await?;
            self.publish(listed, |present| present.phase = Phase::Up(peer, self.calls.clone())).await;
            Ok(connection)
        });
        let silent = || format!("it did not answer within {} s; does it speak MCP?", patience.as_secs());
        started.await.unwrap_or_else(|_| Err(silent()))
    }

    /// Keeps the connection until one of the two sides ends it.
    async fn serve(&self, connection: Connection, local: &mut Local) -> End {
        let Connection { service, subscription: _open } = connection;
        let (peer, cancel) = (service.peer().clone(), service.cancellation_token());
        let mut closed = std::pin::pin!(service.waiting());
        let mut present = self.present.subscribe();
        let end = loop {
            let Local { process, stderr } = local;
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break End::ShutDown,
                _ = &mut closed => return End::Closed,
                () = exited(process) => break End::Closed,
                () = changed(&mut present) => {}
                never = stderr.drain(&self.name, &self.calls) => match never {},
            }
            // A server that does not answer this must not hold up its own end.
            unless(self.stop.cancelled(), self.relist(&peer, local)).await;
        };
        if let End::ShutDown = end {
            cancel.cancel();
        }
        // What it said last is read; what it does not read any more is not waited for.
        let _ = timeout(GRACE, closed).await;
        end
    }

    /// Lists the tools anew. If that fails, they stay as they were.
    async fn relist(&self, peer: &Peer<RoleClient>, local: &mut Local) {
        let changes = self.present.borrow().changes;
        match timeout(LISTING, self.list(peer, local)).await {
            Ok(Ok(listed)) => self.publish(listed, |present| present.listed = changes).await,
            failed => {
                let silent = || format!("no answer within {} s", LISTING.as_secs());
                let why = failed.map_or_else(|_| silent(), |listed| listed.err().unwrap_or_default());
                let name = &self.name;
                let problem =
                    format!("the MCP server {name:?} has other tools now, but does not list them: {why}");
                let problem = self.calls.redact(&problem);
                tracing::warn!("{problem}");
                self.present.send_modify(|present| {
                    present.listed = changes;
                    present.problems = [problem].into();
                });
            }
        }
        sleep(PAUSE).await;
    }

    async fn list(&self, peer: &Peer<RoleClient>, local: &mut Local) -> Result<Vec<Listed>, String> {
        let listing = unless(local.stderr.drain(&self.name, &self.calls), pages(peer)).await;
        listing.unwrap_or_else(|| Err("its stderr was read to an end that does not exist".to_owned()))
    }

    async fn publish(&self, listed: Vec<Listed>, also: impl FnOnce(&mut Present)) {
        let (tools, problems) = self.tools(listed).await;
        problems.iter().for_each(|problem| tracing::warn!("{problem}"));
        self.present.send_modify(|present| {
            (present.tools, present.problems) = (tools, problems.into());
            also(present);
        });
    }

    /// The tools that agents get, and what is wrong with those that are left out.
    async fn tools(&self, listed: Vec<Listed>) -> (ToolSet, Vec<String>) {
        let offered = listed.into_iter().filter(|tool| self.server.offers(&tool.name));
        let tools = offered.map(|tool| {
            let tool = RemoteTool::new(&self.name, self.shared.clone(), tool, self.server.is_trusted);
            Arc::new(tool) as Arc<dyn Tool>
        });
        compiled(&self.name, tools.collect()).await
    }

    fn error(&self, end: End, farewell: &str) -> Error {
        let server = self.name.to_string();
        match end {
            End::ShutDown => Error::ShutDown { server },
            End::NotStarted(why) => {
                Error::Start { server, why: self.calls.redact(&format!("{why}{farewell}")) }
            }
            End::Closed => {
                let why = format!("it closed the connection{farewell}");
                Error::Ended { server, why: self.calls.redact(&why) }
            }
        }
    }
}

/// Returns a server's tools, and the errors of those that are left out. Compiling their schemas is
/// CPU-bound, and the server decides how many there are: it runs on a thread for blocking work.
async fn compiled(server: &str, tools: Vec<Arc<dyn Tool>>) -> (ToolSet, Vec<String>) {
    let compiled = spawn_blocking(move || {
        let mut set = ToolSet::new();
        let errors = set.insert_all(tools);
        (set, errors)
    });
    match compiled.await {
        Ok((set, errors)) => {
            let told = |error| format!("a tool of the MCP server {server:?} is left out: {error}");
            (set, errors.into_iter().map(told).collect())
        }
        Err(error) => {
            let problem = format!(
                "all tools of the MCP server {server:?} are left out: their schemas can't be read: {error}"
            );
            (ToolSet::new(), vec![problem])
        }
    }
}

/// All tools, page by page, up to a bound.
async fn pages(peer: &Peer<RoleClient>) -> Result<Vec<Listed>, String> {
    let (mut tools, mut cursor) = (Vec::new(), None);
    loop {
        let asked = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let page = peer.list_tools(asked).await.map_err(|error| chain(&error))?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tools);
        }
        if tools.len() > MAX_TOOLS {
            return Err(format!("it lists more than {MAX_TOOLS} tools"));
        }
    }
}

/// Waits for the end of a process, if there is one.
async fn exited(process: &mut Option<Process>) {
    match process {
        Some(process) => process.exited().await,
        None => pending().await,
    }
}

/// Waits until the server has said that its tools are others.
async fn changed(present: &mut watch::Receiver<Present>) {
    if present.wait_for(|present| present.changes > present.listed).await.is_err() {
        pending().await
    }
}

/// Says how a keeper ended, when it is dropped: whoever waits must not wait for ever.
struct Said {
    name: Arc<str>,
    present: Arc<watch::Sender<Present>>,
    calls: Arc<Calls>,
    error: Option<Error>,
}

impl Drop for Said {
    fn drop(&mut self) {
        let gone = || Error::Ended { server: self.name.to_string(), why: "its runtime has ended".to_owned() };
        let error = Arc::new(self.error.take().unwrap_or_else(gone));
        self.present.send_modify(|present| present.phase = Phase::Down(error.clone(), Instant::now()));
        self.calls.fate.send_replace(Some(error));
    }
}

/// How a server's time came to its end.
enum End {
    ShutDown,
    NotStarted(String),
    Closed,
}

/// What is done with notifications.
struct Ear {
    present: Arc<watch::Sender<Present>>,
    calls: Arc<Calls>,
}

impl Listener for Ear {
    fn hear(&self, notification: &ServerNotification) {
        match notification {
            ServerNotification::ProgressNotification(said) => self.calls.progress(&said.params),
            ServerNotification::ToolListChangedNotification(_) => {
                self.present.send_modify(|present| present.changes += 1);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
