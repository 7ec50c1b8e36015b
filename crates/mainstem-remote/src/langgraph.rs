//! LangGraph's API: a graph of a LangGraph server.

mod control;
mod cursor;
mod driver;
mod graph;
mod interrupts;
mod namespace;
mod remote_id;
mod server;
mod speaker;
mod wire;

use async_trait::async_trait;
use mainstem_event::fold::RecordedTurn;
use mainstem_outbound::Reach;
use mainstem_spec::Protocol;
use serde_json::Value;

use self::{driver::Driver, server::Server};
use crate::{
    BegunTurn, RemoteAgent, RemoteError, RemoteTurn,
    declaration::{About, Declaration, Declared},
    http::Connection,
};

/// The path below which a server has its assistants.
const ASSISTANTS: &str = "/assistants/";

/// A graph of a LangGraph server, whose state has `messages`. Its thread has an id that is derived
/// from that of the child's session.
///
/// Nodes that are graphs, and graphs that tools run, are agents below it. The stream reconnects
/// behind the last event after a lost connection. The API has no idempotency key, so a request
/// whose response was lost is not repeated: the run is looked up by the turn's id in its metadata,
/// also by a process that continues the turn of another one. An interrupt asks for approval, and
/// its answer resumes the graph.
#[derive(Clone, Debug)]
pub struct LangGraphAgent {
    connection: Connection,
    assistant: Option<String>,
}

impl LangGraphAgent {
    /// Creates the agent at a URL: `https://host/assistants/<id>`, with the id of an assistant or
    /// the name of a graph, or the server's address if it has one assistant.
    ///
    /// # Errors
    /// The URL is not valid, or out of reach.
    pub fn at(url: &str, reach: &Reach) -> Result<Self, RemoteError> {
        let (address, assistant) = match url.trim_end_matches('/').rsplit_once(ASSISTANTS) {
            Some((address, assistant)) => (address, Some(assistant.to_owned())),
            None => (url, None),
        };
        Ok(Self { connection: Connection::at(address, reach)?, assistant })
    }

    /// Adds a header to every request, as `x-api-key`. Messages do not show its value.
    ///
    /// # Errors
    /// The name or the value is not valid in a header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, RemoteError> {
        self.connection = self.connection.with_header(name, value)?;
        Ok(self)
    }
}

impl Declared for LangGraphAgent {
    const PROTOCOL: Protocol = Protocol::LangGraph;

    fn declared(declaration: &Declaration) -> Result<Self, RemoteError> {
        let Self { connection, assistant } = Self::at(&declaration.url, &declaration.reach)?;
        Ok(Self { connection: connection.with_headers(&declaration.headers)?, assistant })
    }

    async fn describe(&self) -> Result<Option<About>, RemoteError> {
        let info: Value = self.connection.get(self.connection.url(&["info"])).await?;
        let is_spoken = info["flags"]["assistants"] == true || info.get("langgraph_py_version").is_some();
        let version = info["version"].as_str().unwrap_or("of an unknown version");
        let assistant = self.assistant.as_deref().unwrap_or("its only assistant");
        Ok(is_spoken.then(|| Ok(format!("{assistant}, at a LangGraph server {version}"))))
    }
}

#[async_trait]
impl RemoteAgent for LangGraphAgent {
    async fn begin(&self, turn: RemoteTurn) -> Result<BegunTurn, RemoteError> {
        turn.check_plan_mode("LangGraph's API")?;
        Driver::begin(self.server(&turn).await?, turn).await
    }

    fn can_find(&self) -> bool {
        true
    }

    async fn find(&self, turn: RemoteTurn, recorded: &RecordedTurn) -> Result<BegunTurn, RemoteError> {
        let server = self.server(&turn).await?;
        match server.search(&turn.id, recorded).await? {
            Some(run) => Ok(Driver::found(server, turn, recorded, run)),
            None => self.begin(turn).await,
        }
    }
}

impl LangGraphAgent {
    /// Returns the server, for the thread of a turn's session.
    async fn server(&self, turn: &RemoteTurn) -> Result<Server, RemoteError> {
        let connection = self.connection.of_trace(turn.trace_parent.as_deref());
        Server::new(connection, self.assistant.as_deref(), &turn.session).await
    }
}
