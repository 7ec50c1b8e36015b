//! A server and its sessions.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use mainstem_api::{
    Agents, AnySession, Endpoint, Error, Host, Items, JobQuery, JobView, ModelView, NewJob, Page,
    SessionQuery, SessionView, TENANT_HEADER, TaskQuery, WaitQuery,
};
use mainstem_message::{IdError, JobId, SessionId, TaskId, ToolSpec};
use mainstem_outbound::Reach;
use mainstem_task::TaskRecord;

use crate::{
    RemoteSession,
    connection::{Connection, Request, Retry},
};

/// A server (`mainstem serve`, or an application with its routes). Cheap to clone; no request is
/// sent before it is needed.
///
/// Responses are bounded; a redirect is an error, because the token is for this server alone.
///
/// ```no_run
/// use mainstem_api::{AnySession, EventQuery, NewRun};
/// use futures_util::TryStreamExt;
/// use mainstem_client::Server;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mainstem_api::Error> {
/// let server = Server::at("http://127.0.0.1:7878")?.with_token("the token");
/// let session = server.open("my-session")?;
/// let begun = session.run(NewRun::new("What is in this folder?")).await?;
/// let mut events = session.events(EventQuery::stored().with_run(begun.run.id()));
/// while let Some(event) = events.try_next().await? {
///     println!("{event}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Server(pub(crate) Connection);

impl Server {
    /// Creates a server at this address, such as `http://127.0.0.1:7878`.
    ///
    /// # Errors
    /// If the address is not an `http` or `https` URL.
    pub fn at(address: &str) -> Result<Self, Error> {
        Connection::new(address, None).map(Self)
    }

    /// Creates a server at an address that comes from a file, a model or another server: requests
    /// stay within a reach.
    ///
    /// # Errors
    /// As [`at`](Self::at), or the address is out of reach. A name whose address is out of reach
    /// fails each request.
    pub fn within(address: &str, reach: &Reach) -> Result<Self, Error> {
        Connection::new(address, Some(reach)).map(Self)
    }

    /// Adds a header to every request, such as one that a proxy requires. Its value is not shown.
    ///
    /// # Errors
    /// If the name or the value is not valid in a header.
    pub fn with_header(self, name: &str, value: &str) -> Result<Self, Error> {
        self.0.with_header(name, value).map(Self)
    }

    /// Sets the bearer token.
    #[must_use]
    pub fn with_token(self, token: &str) -> Self {
        Self(self.0.with_token(token))
    }

    /// Sends requests as this tenant, with a token that is of none, the operator's.
    ///
    /// # Errors
    /// If the name is not valid in a header.
    pub fn with_tenant(self, tenant: &str) -> Result<Self, Error> {
        self.with_header(TENANT_HEADER, tenant)
    }

    /// Sets the bound of a response, in bytes; 256 MiB by default. Lines of event streams are
    /// bounded to 4 MiB.
    #[must_use]
    pub fn with_max_response(mut self, bytes: usize) -> Self {
        self.0.max_response = bytes;
        self
    }

    /// Returns the address without user, password and query.
    pub fn address(&self) -> &str {
        &self.0.shown
    }

    /// Returns a session of the server; the first run creates it. No request is sent.
    ///
    /// # Errors
    /// If the text is not an id, with [`Code::BadId`](mainstem_api::Code::BadId).
    pub fn open(&self, id: impl TryInto<SessionId, Error: Into<IdError>>) -> Result<RemoteSession, Error> {
        let id = id.try_into().map_err(Into::into)?;
        Ok(RemoteSession::new(self.clone(), id))
    }

    /// Returns once the server has said that runs can begin, without a token.
    ///
    /// # Errors
    /// The server can't be reached, is another program, or can't begin runs at present; the error
    /// has its reason.
    pub async fn ready(&self) -> Result<(), Error> {
        let request = self.0.request(&Request { endpoint: Endpoint::Ready, path: &[] });
        let said = self.0.fetch(request, Retry::Never).await?;
        if said.trim_ascii() != b"ready" {
            return Err(Error::invalid(self.address(), "another program answers there"));
        }
        Ok(())
    }

    /// Returns the agents of the server.
    ///
    /// # Errors
    /// The server can't be reached, or refuses the request.
    pub async fn agents(&self) -> Result<Agents, Error> {
        self.0.get(Endpoint::ListAgents, &[], ()).await
    }

    /// Returns the models of the server.
    ///
    /// # Errors
    /// As [`agents`](Self::agents).
    pub async fn models(&self) -> Result<Vec<ModelView>, Error> {
        Ok(self.0.get::<Items<_>>(Endpoint::ListModels, &[], ()).await?.items)
    }

    /// Returns the tools of the agent that leads runs.
    ///
    /// # Errors
    /// As [`agents`](Self::agents).
    pub async fn tools(&self) -> Result<Vec<ToolSpec>, Error> {
        Ok(self.0.get::<Items<_>>(Endpoint::ListTools, &[], ()).await?.items)
    }
}

#[async_trait]
impl Host for Server {
    async fn sessions(&self, query: &SessionQuery) -> Result<Page<SessionView>, Error> {
        self.0.get(Endpoint::ListSessions, &[], query).await
    }

    fn session(&self, id: &SessionId) -> Arc<dyn AnySession> {
        Arc::new(RemoteSession::new(self.clone(), id.clone()))
    }

    async fn delete_session(&self, id: &SessionId) -> Result<(), Error> {
        let request = self.0.request(&Request { endpoint: Endpoint::DeleteSession, path: &[id.as_str()] });
        self.0.fetch(request, Retry::Never).await.map(drop)
    }

    async fn tasks(&self, query: &TaskQuery) -> Result<Vec<TaskRecord>, Error> {
        Ok(self.0.get::<Items<_>>(Endpoint::ListTasks, &[], query).await?.items)
    }

    async fn task(&self, id: &TaskId) -> Result<TaskRecord, Error> {
        self.0.get(Endpoint::GetTask, &[id.as_str()], ()).await
    }

    async fn wait_for_task(&self, id: &TaskId, timeout: Duration) -> Result<TaskRecord, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            let left =
                deadline.saturating_duration_since(Instant::now()).as_secs().min(WaitQuery::DEFAULT_SECS);
            let query = WaitQuery { timeout: Some(left) };
            let task: TaskRecord = self.0.get(Endpoint::WaitForTask, &[id.as_str()], query).await?;
            if task.is_over() || left == 0 {
                return Ok(task);
            }
        }
    }

    async fn cancel_task(&self, id: &TaskId) -> Result<TaskRecord, Error> {
        let request = self.0.request(&Request { endpoint: Endpoint::CancelTask, path: &[id.as_str()] });
        self.0.post(request, Retry::Unreachable).await
    }

    async fn remove_task(&self, id: &TaskId) -> Result<(), Error> {
        let request = self.0.request(&Request { endpoint: Endpoint::RemoveTask, path: &[id.as_str()] });
        self.0.fetch(request, Retry::Never).await.map(drop)
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Page<JobView>, Error> {
        self.0.get(Endpoint::ListJobs, &[], query).await
    }

    async fn job(&self, id: &JobId) -> Result<JobView, Error> {
        self.0.get(Endpoint::GetJob, &[id.as_str()], ()).await
    }

    async fn add_job(&self, job: NewJob) -> Result<JobView, Error> {
        let request = self.0.request(&Request { endpoint: Endpoint::AddJob, path: &[] });
        self.0.post(request.json(&job), Retry::Never).await
    }

    async fn cancel_job(&self, id: &JobId) -> Result<JobView, Error> {
        let request = self.0.request(&Request { endpoint: Endpoint::CancelJob, path: &[id.as_str()] });
        self.0.post(request, Retry::Unreachable).await
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address()).finish_non_exhaustive()
    }
}
