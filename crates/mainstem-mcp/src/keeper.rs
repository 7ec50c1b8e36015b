//! The driver: a task for each server that runs, which owns its process and its connection, whoever polls the runs that use it.

use std::{
    future::pending,
    sync::{Arc, Weak},
    time::Duration,
};

use mainstem_tool::{ToolSet, unless};
use rmcp::{
    RoleClient,
    model::{ServerNotification, Tool as Listed},
    service::{Peer, ServiceError},
};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Error, Server,
    call::Calls,
    client::{Phase, Present, Shared},
    open::{Connection, Local, chain, open},
    tap::Listener,
    tool::RemoteTool,
    vars::Vars,
};

/// How long listing tools may take.
const LISTING: Duration = Duration::from_secs(10);

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
    /// Begins, on the present runtime. The task ends with the server, or when the last handle is gone.
    pub(crate) fn spawn(self) {
        #[expect(
            clippy::disallowed_methods,
            reason = "no run may own what all share: a caller that pauses would hold up the others; the client owns it by its token"
        )]
        tokio::spawn(self.keep());
    }

    async fn keep(self) {
        let mut vars = Vars::default();
        let mut local = Local::default();
        let stopped = self.stop.clone();
        let end = match unless(stopped.cancelled(), self.start(&mut vars, &mut local)).await {
            Some(Ok(connection)) => self.serve(connection, &mut local).await,
            Some(Err(why)) => End::NotStarted(why),
            None => End::ShutDown,
        };
        let farewell = local.end(&self.name).await;
        let error = self.error(end, &farewell, &vars);
        if !matches!(error, Error::ShutDown { .. }) {
            tracing::warn!("{error}");
        }
        self.present.send_modify(|present| present.phase = Phase::Down(Arc::new(error), Instant::now()));
    }

    /// Opens the connection and lists the tools, in the time there is for that.
    async fn start(&self, vars: &mut Vars, local: &mut Local) -> Result<Connection, String> {
        let listener = Arc::new(Ear { present: self.present.clone(), calls: self.calls.clone() });
        let patience = self.server.start_timeout;
        let started = timeout(patience, async {
            let connection = open(&self.name, &self.server, vars, local, listener).await?;
            let peer = connection.service.peer().clone();
            let listed = self.list(&peer, local).await.map_err(|error| chain(&error))?;
            self.publish(listed, |present| present.phase = Phase::Up(peer));
            Ok(connection)
        });
        started.await.unwrap_or_else(|_| Err(format!("it did not answer within {} s", patience.as_secs())))
    }

    /// Keeps the connection until one of the two sides ends it.
    async fn serve(&self, connection: Connection, local: &mut Local) -> End {
        let Connection { service, subscription: _open } = connection;
        let (peer, cancel) = (service.peer().clone(), service.cancellation_token());
        let mut closed = std::pin::pin!(service.waiting());
        let mut present = self.present.subscribe();
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {
                    cancel.cancel();
                    let _ = closed.await;
                    return End::ShutDown;
                }
                _ = &mut closed => return End::Closed,
                () = changed(&mut present) => self.relist(&peer, local).await,
                never = local.stderr.drain(&self.name) => match never {},
            }
        }
    }

    /// Lists the tools anew. If that fails, they stay as they were.
    async fn relist(&self, peer: &Peer<RoleClient>, local: &mut Local) {
        let changes = self.present.borrow().changes;
        match timeout(LISTING, self.list(peer, local)).await {
            Ok(Ok(listed)) => self.publish(listed, |present| present.listed = changes),
            failed => {
                let why = match failed {
                    Ok(Err(error)) => chain(&error),
                    _ => format!("no answer within {} s", LISTING.as_secs()),
                };
                let problem = format!(
                    "the MCP server {:?} has other tools now, but does not list them: {why}",
                    self.name
                );
                tracing::warn!("{problem}");
                self.present.send_modify(|present| {
                    present.listed = changes;
                    present.problems = [problem].into();
                });
            }
        }
    }

    async fn list(&self, peer: &Peer<RoleClient>, local: &mut Local) -> Result<Vec<Listed>, ServiceError> {
        let listing = unless(local.stderr.drain(&self.name), peer.list_all_tools());
        listing.await.unwrap_or(Err(ServiceError::TransportClosed))
    }

    fn publish(&self, listed: Vec<Listed>, also: impl FnOnce(&mut Present)) {
        let (tools, problems) = self.tools(listed);
        problems.iter().for_each(|problem| tracing::warn!("{problem}"));
        self.present.send_modify(|present| {
            (present.tools, present.problems) = (tools, problems.into());
            also(present);
        });
    }

    /// The tools that agents get, and what is wrong with those that are left out.
    fn tools(&self, listed: Vec<Listed>) -> (ToolSet, Vec<String>) {
        let (mut tools, mut problems) = (ToolSet::new(), Vec::new());
        for tool in listed.into_iter().filter(|tool| self.server.offers(&tool.name)) {
            let tool = RemoteTool::new(&self.name, self.shared.clone(), tool, self.server.is_trusted);
            if let Err(error) = tools.insert(Arc::new(tool)) {
                problems.push(format!("a tool of the MCP server {:?} is left out: {error}", self.name));
            }
        }
        (tools, problems)
    }

    fn error(&self, end: End, farewell: &str, vars: &Vars) -> Error {
        let server = self.name.to_string();
        match end {
            End::ShutDown => Error::ShutDown { server },
            End::NotStarted(why) => Error::Start { server, why: vars.redact(&format!("{why}{farewell}")) },
            End::Closed => {
                Error::Ended { server, why: vars.redact(&format!("it closed the connection{farewell}")) }
            }
        }
    }
}

/// Waits until the server has said that its tools are others.
async fn changed(present: &mut watch::Receiver<Present>) {
    if present.wait_for(|present| present.changes > present.listed).await.is_err() {
        pending().await
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
