//! The other direction: agents as the tools of an MCP server, for clients such as editors.

mod approval;
mod call;
mod http;
mod progress;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use mainstem_api::{AnySession, Begun, Error, NewRun};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use self::call::AgentCall;
pub use self::http::Body;

/// What an MCP server of agents is about, for the model that has its tools.
const INSTRUCTIONS: &str = "Each tool is an agent, which works on its task alone or with agents of its own. \
                            A result names its session: a further call with it continues the conversation.";

/// Runs the agents that an [`AgentServer`] offers.
#[async_trait]
pub trait AgentHost: Send + Sync + 'static {
    /// Returns the agents that are offered now.
    fn agents(&self) -> Vec<OfferedAgent>;

    /// Begins a run, in the session of this id or in a new one.
    ///
    /// # Errors
    /// The run is refused: another one of the session is active, or the session can't be opened.
    async fn begin(&self, session: Option<&str>, run: NewRun) -> Result<(Arc<dyn AnySession>, Begun), Error>;
}

/// An agent, as a model chooses it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfferedAgent {
    /// Its id, which is the name of the tool.
    pub id: String,
    /// What it is for.
    pub description: String,
}

impl OfferedAgent {
    /// Creates one.
    pub fn new(id: impl Into<String>, description: impl Into<String>) -> Self {
        Self { id: id.into(), description: description.into() }
    }
}

/// An MCP server whose tools are agents ([MCP](https://modelcontextprotocol.io), 2024-11-05 to
/// 2026-07-28).
///
/// A call runs the agent. What its fleet does meanwhile arrives as progress notifications, if the
/// client asks for them; requests for approval are put to the client's user by elicitation, and
/// denied if the client has none. A call that the client cancels cancels the run.
///
/// ```no_run
/// use mainstem_mcp::{AgentHost, AgentServer};
/// use tokio_util::sync::CancellationToken;
///
/// # async fn serve(host: impl AgentHost) -> Result<(), Box<dyn std::error::Error>> {
/// let server = AgentServer::new(host).with_name("my-agents");
/// server.serve(tokio::io::stdin(), tokio::io::stdout(), CancellationToken::new()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AgentServer {
    host: Arc<dyn AgentHost>,
    name: Arc<str>,
}

impl AgentServer {
    /// Creates a server of these agents.
    pub fn new(host: impl AgentHost) -> Self {
        Self { host: Arc::new(host), name: "mainstem".into() }
    }

    /// Sets the name by which it introduces itself; `mainstem` by default.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Serves one client over a pair of streams, such as stdin and stdout, until the client closes
    /// its stream or the token is cancelled. Then the runs that are active are dropped, which
    /// cancels them.
    ///
    /// # Errors
    /// The streams fail before the client has initialized the connection, or the client does not
    /// speak MCP.
    pub async fn serve(
        &self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        let handler = Handler { server: self.clone() };
        let service = handler.serve_with_ct((input, output), stop).await;
        let service = service.map_err(|error| ServeError { message: error.to_string() })?;
        service.waiting().await.map(drop).map_err(|error| ServeError { message: error.to_string() })
    }
}

/// A client could not be served.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the MCP client could not be served: {message}")]
#[non_exhaustive]
pub struct ServeError {
    /// What happened.
    pub message: String,
}

impl fmt::Debug for AgentServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentServer").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The server as the SDK sees it.
#[derive(Clone)]
struct Handler {
    server: AgentServer,
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new(&*self.server.name, env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.server.host.agents().iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let agents = self.server.host.agents();
        if !agents.iter().any(|agent| agent.id == call.name) {
            let known: Vec<_> = agents.iter().map(|agent| agent.id.as_str()).collect();
            let message = format!("there is no agent {:?}; known: {}", call.name, known.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        }
        let arguments = serde_json::from_value(Value::Object(call.arguments.unwrap_or_default()));
        let arguments = arguments.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        AgentCall { host: &*self.server.host, agent: &call.name, arguments, cx: &cx }
            .run()
            .await
            .map(Into::into)
    }
}

fn tool(agent: &OfferedAgent) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "task": {
                "type": "string",
                "description": "What the agent is to do, with all that it needs to know: it does not see this conversation.",
            },
            "session": {
                "type": "string",
                "description": "The session of an earlier result, to continue that conversation.",
            },
        },
        "required": ["task"],
        "additionalProperties": false,
    });
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new(agent.id.clone(), agent.description.clone(), schema)
}
