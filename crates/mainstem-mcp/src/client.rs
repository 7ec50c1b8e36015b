//! The connection to a server, shared by all callers of its tools.

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use async_trait::async_trait;
use mainstem_tool::{ToolError, ToolSet, ToolSource};
use rmcp::{
    RoleClient,
    model::CallToolRequestParams,
    service::{Peer, ServiceError},
};
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    Error, Server,
    call::{Call, Calls},
    driver::Driver,
    name,
    open::{chain, root},
};

/// How long after a failed start the server is not started again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// How long a model call waits for a list of tools that has changed.
const RELIST: Duration = Duration::from_secs(10);

/// A connection to a server, made when it is first needed. Cheap to clone; when the last clone is
/// dropped, the server is stopped.
///
/// ```no_run
/// # use std::sync::Arc;
/// use mainstem_mcp::{Client, Server};
/// use mainstem_tool::{ToolSet, ToolSource};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mainstem_mcp::Error> {
/// let server = Server::command("npx", ["-y", "@modelcontextprotocol/server-everything"]);
/// let client = Client::new("everything", server)?;
/// client.ready().await;
/// assert!(client.tools().get("mcp__everything__echo").is_some(), "{:?}", client.problems());
///
/// // Agents that have this set have one server, and see it change.
/// let mut tools = ToolSet::new();
/// tools.insert_source(Arc::new(client.clone()));
/// client.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) name: Arc<str>,
    pub(crate) server: Arc<Server>,
    prefix: String,
    present: Arc<watch::Sender<Present>>,
    stop: CancellationToken,
    _ends_with_this: DropGuard,
    this: Weak<Self>,
}

/// The state of a connection.
#[derive(Clone, Default)]
pub(crate) struct Present {
    pub(crate) phase: Phase,
    /// The tools that it listed last; they stay after its end, because a call starts it anew.
    pub(crate) tools: ToolSet,
    /// The errors of tools that were left out.
    pub(crate) problems: Arc<[String]>,
    /// How often the server said that its list has changed, and how many of these changes are
    /// applied.
    pub(crate) changes: u64,
    pub(crate) listed: u64,
}

#[derive(Clone, Default)]
pub(crate) enum Phase {
    #[default]
    Idle,
    Starting,
    Up(Peer<RoleClient>, Arc<Calls>),
    Down(Arc<Error>, Instant),
}

impl Client {
    /// Creates a connection to this server, under a name of at most 32 letters, digits, `-` and
    /// single `_`. The first use starts the server.
    ///
    /// # Errors
    /// If the name has another form.
    pub fn new(name: impl Into<Arc<str>>, server: Server) -> Result<Self, Error> {
        let name: Arc<str> = name.into();
        if !name::is_server(&name) {
            return Err(Error::Name { name: name.to_string() });
        }
        let stop = CancellationToken::new();
        Ok(Self(Arc::new_cyclic(|this| Shared {
            prefix: name::prefix(&name),
            name,
            server: Arc::new(server),
            present: Arc::default(),
            _ends_with_this: stop.clone().drop_guard(),
            stop,
            this: this.clone(),
        })))
    }

    /// Returns the server.
    pub fn server(&self) -> &Server {
        &self.0.server
    }

    /// Stops the server for good, and returns when it has ended: its stdin is closed, a second
    /// later comes `SIGTERM`, another second later `SIGKILL`. Waiting calls become errors.
    pub async fn shutdown(&self) {
        self.0.stop.cancel();
        let mut present = self.0.present.subscribe();
        // A sender exists as long as a client does, and a driver records its end in any case.
        let _ = present.wait_for(|present| matches!(present.phase, Phase::Idle | Phase::Down(..))).await;
    }
}

impl Shared {
    /// Starts the server, unless it runs or was shut down.
    fn start(&self) {
        let runtime = Handle::try_current();
        let begins = self.present.send_if_modified(|present| {
            if !matches!(present.phase, Phase::Idle | Phase::Down(..)) {
                return false;
            }
            present.phase = match &runtime {
                _ if self.stop.is_cancelled() => {
                    Phase::down(Error::ShutDown { server: self.name.to_string() })
                }
                Ok(_) => Phase::Starting,
                Err(error) => {
                    Phase::down(Error::Start { server: self.name.to_string(), why: error.to_string() })
                }
            };
            true
        });
        if let (true, Ok(runtime), Phase::Starting) = (begins, runtime, &self.present.borrow().phase) {
            let driver = Driver {
                name: self.name.clone(),
                server: self.server.clone(),
                shared: self.this.clone(),
                present: self.present.clone(),
                calls: Arc::default(),
                stop: self.stop.clone(),
            };
            driver.spawn(&runtime);
        }
    }

    /// Returns the running server; starts it if needed.
    async fn connected(&self) -> Result<(Peer<RoleClient>, Arc<Calls>), Arc<Error>> {
        if !matches!(self.present.borrow().phase, Phase::Up(..)) {
            self.start();
        }
        let mut present = self.present.subscribe();
        let settled =
            present.wait_for(|present| !matches!(present.phase, Phase::Idle | Phase::Starting)).await;
        match settled.map(|present| present.phase.clone()) {
            Ok(Phase::Up(peer, calls)) => Ok((peer, calls)),
            Ok(Phase::Down(error, _)) => Err(error),
            _ => Err(Arc::new(Error::ShutDown { server: self.name.to_string() })),
        }
    }

    /// Sends a call.
    pub(crate) async fn begin(&self, params: CallToolRequestParams) -> Result<Call, ToolError> {
        let (peer, calls) = self.connected().await.map_err(|error| ToolError::new(error.to_string()))?;
        match Call::send(peer, calls.clone(), params).await {
            Ok(call) => Ok(call),
            Err(error) => Err(self.failed(error, &calls).await),
        }
    }

    /// Returns the error of a call, for the model.
    pub(crate) async fn failed(&self, error: ServiceError, calls: &Calls) -> ToolError {
        let name = &self.name;
        let said = match error {
            ServiceError::McpError(said) => {
                format!("the MCP server {name:?} refused the call: {} ({})", said.message, said.code.0)
            }
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
                let why = end_reason(calls).await;
                let why =
                    why.map_or_else(|| "it closed the connection".to_owned(), |error| error.to_string());
                format!("the call got no answer: {why}; a new call starts it anew")
            }
            ServiceError::TransportSend(error) => {
                format!("the MCP server {name:?} can't be reached: {}", root(&*error.error))
            }
            other => format!("the MCP server {name:?} did not take the call: {}", chain(&other)),
        };
        ToolError::new(calls.redact(&said))
    }

    /// Starts the server if a start is due. Returns `true` if the caller should wait for it.
    fn wake(&self) -> bool {
        let present = self.present.borrow().clone();
        match &present.phase {
            Phase::Idle => self.start(),
            Phase::Down(_, since) if present.tools.specs().is_empty() => {
                if since.elapsed() >= RETRY_AFTER {
                    self.start();
                }
                return false;
            }
            Phase::Down(..) => return false,
            Phase::Starting | Phase::Up(..) => {}
        }
        true
    }
}

#[async_trait]
impl ToolSource for Client {
    fn name(&self) -> &str {
        &self.0.name
    }

    async fn ready(&self) {
        if !self.0.wake() {
            return;
        }
        let mut present = self.0.present.subscribe();
        // Bounded by the driver's own timeouts.
        let _ = present.wait_for(|present| !matches!(present.phase, Phase::Idle | Phase::Starting)).await;
        // Changes that are announced during this wait are left to the next model call.
        let changes = match &*present.borrow() {
            Present { phase: Phase::Up(..), changes, .. } => *changes,
            _ => return,
        };
        let _ = timeout(RELIST, present.wait_for(|present| present.has_listed(changes))).await;
    }

    fn tools(&self) -> ToolSet {
        self.0.present.borrow().tools.clone()
    }

    fn owns(&self, tool: &str) -> bool {
        tool.starts_with(&self.0.prefix)
    }

    fn problems(&self) -> Vec<String> {
        let present = self.0.present.borrow();
        let down = match &present.phase {
            Phase::Down(error, _) if !matches!(**error, Error::ShutDown { .. }) => Some(error.to_string()),
            _ => None,
        };
        down.into_iter().chain(present.problems.iter().cloned()).collect()
    }
}

impl Present {
    /// Returns `true` if these changes are applied, or no driver runs.
    fn has_listed(&self, changes: u64) -> bool {
        self.listed >= changes || !matches!(self.phase, Phase::Up(..))
    }
}

impl Phase {
    pub(crate) fn down(error: Error) -> Self {
        Self::Down(Arc::new(error), Instant::now())
    }
}

/// Returns why a connection that has just closed did so; its driver records that in a moment.
async fn end_reason(calls: &Calls) -> Option<Arc<Error>> {
    let mut end = calls.end_reason.subscribe();
    let known = timeout(Duration::from_secs(3), end.wait_for(Option::is_some)).await;
    known.ok()?.ok()?.clone()
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("name", &self.0.name)
            .field("server", &self.0.server)
            .finish_non_exhaustive()
    }
}
