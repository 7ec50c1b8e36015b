//! The driver: a task for each running server. It owns the process and the connection, so that they
//! are served while the runs that use them are not polled.

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
    notifications::Listener,
    open::{Connection, Local, chain, open},
    process::Process,
    tool::RemoteTool,
};

/// How long listing tools may take.
const LISTING: Duration = Duration::from_secs(10);

/// The pause between two listings of tools: some servers announce a change whenever they are asked.
const PAUSE: Duration = Duration::from_millis(100);

/// How long to wait for a connection that should be closing.
const GRACE: Duration = Duration::from_secs(1);

/// The maximum number of tools of a server.
const MAX_TOOLS: usize = 1000;

/// The driver of a server.
pub(crate) struct Driver {
    pub(crate) name: Arc<str>,
    pub(crate) server: Arc<Server>,
    pub(crate) shared: Weak<Shared>,
    pub(crate) present: Arc<watch::Sender<Present>>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) stop: CancellationToken,
}

impl Driver {
    /// Starts the task. It ends with the server, when the last handle is dropped, or with the
    /// runtime, and records its end in any case.
    pub(crate) fn spawn(self, runtime: &Handle) {
        // Made here: a runtime that is shutting down drops the task before its first poll.
        let end = EndGuard {
            name: self.name.clone(),
            present: self.present.clone(),
            calls: self.calls.clone(),
            error: None,
        };
        // A run can't own what several runs share: a caller that pauses would delay the others. The
        // client owns the task, by its token.
        runtime.spawn(self.drive(end));
    }

    async fn drive(self, mut guard: EndGuard) {
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
        guard.error = Some(error);
    }

    /// Opens the connection and lists the tools, within the start timeout.
    async fn start(&self, local: &mut Local) -> Result<Connection, String> {
        let listener =
            Arc::new(NotificationListener { present: self.present.clone(), calls: self.calls.clone() });
        let start_timeout = self.server.start_timeout;
        let started = timeout(start_timeout, async {
            let connection = open(&self.name, &self.server, &self.calls, local, listener).await?;
            let peer = connection.service.peer().clone();
            let listed = self.list(&peer, local).await?;
            self.publish(listed, |present| present.phase = Phase::Up(peer, self.calls.clone())).await;
            Ok(connection)
        });
        let silent = || format!("it did not answer within {} s; does it speak MCP?", start_timeout.as_secs());
        started.await.unwrap_or_else(|_| Err(silent()))
    }

    /// Serves the connection until one of the two sides ends it.
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
            // A server that does not answer must not delay its own shutdown.
            unless(self.stop.cancelled(), self.relist(&peer, local)).await;
        };
        if let End::ShutDown = end {
            cancel.cancel();
        }
        // Its last messages are read, within the grace.
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
        listing.unwrap_or_else(|| Err("reading its stderr ended".to_owned()))
    }

    async fn publish(&self, listed: Vec<Listed>, also: impl FnOnce(&mut Present)) {
        let (tools, problems) = self.tools(listed).await;
        problems.iter().for_each(|problem| tracing::warn!("{problem}"));
        self.present.send_modify(|present| {
            (present.tools, present.problems) = (tools, problems.into());
            also(present);
        });
    }

    /// Returns the tools for agents, and the errors of those that are left out.
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

/// Returns all tools, page by page, up to a bound.
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

/// Waits until the server has announced a change of its tools.
async fn changed(present: &mut watch::Receiver<Present>) {
    if present.wait_for(|present| present.changes > present.listed).await.is_err() {
        pending().await
    }
}

/// Records how a driver ended when it is dropped, so that every waiting caller is woken.
struct EndGuard {
    name: Arc<str>,
    present: Arc<watch::Sender<Present>>,
    calls: Arc<Calls>,
    error: Option<Error>,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        let dropped =
            || Error::Ended { server: self.name.to_string(), why: "its runtime has ended".to_owned() };
        let error = Arc::new(self.error.take().unwrap_or_else(dropped));
        self.present.send_modify(|present| present.phase = Phase::Down(error.clone(), Instant::now()));
        self.calls.end_reason.send_replace(Some(error));
    }
}

/// Why a driver ended.
enum End {
    ShutDown,
    NotStarted(String),
    Closed,
}

/// Applies notifications.
struct NotificationListener {
    present: Arc<watch::Sender<Present>>,
    calls: Arc<Calls>,
}

impl Listener for NotificationListener {
    fn notified(&self, notification: &ServerNotification) {
        match notification {
            ServerNotification::ProgressNotification(progress) => self.calls.progress(&progress.params),
            ServerNotification::ToolListChangedNotification(_) => {
                self.present.send_modify(|present| present.changes += 1);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
