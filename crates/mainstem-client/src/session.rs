//! A session on a server, and a run of it.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use mainstem_api::{
    AnyRun, AnySession, Approval, Approved, Begun, CancelQuery, CancelledAgent, Endpoint, Error, EventQuery,
    Events, FleetQuery, Items, LinkView, MAX_LIMIT, NewLink, NewLinkView, NewMessage, NewRun, NewToolResult,
    Page, RunQuery, RunView, SessionView, TaskQuery, Transcript,
};
use mainstem_event::{CancelReason, ChildSummary, Decision, FleetState, Ids, RandomIds, SendMode};
use mainstem_message::{AgentKey, ConfirmId, LinkId, RunId, SessionId, StoredData, ToolCallId};
use mainstem_task::TaskRecord;
use reqwest::RequestBuilder;

use crate::{
    Server,
    connection::{Request, Retry},
    events::Reader,
};

/// A session on a server. Cheap to clone.
#[derive(Clone)]
pub struct RemoteSession {
    pub(crate) server: Server,
    id: SessionId,
    agent: Option<Arc<str>>,
}

impl RemoteSession {
    pub(crate) fn new(server: Server, id: SessionId) -> Self {
        Self { server, id, agent: None }
    }

    /// Sets the agent that leads runs which do not name another.
    #[must_use]
    pub fn with_agent(mut self, agent: impl Into<Arc<str>>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Returns the messages of an agent; the root's key is `root`.
    ///
    /// # Errors
    /// The agent does not exist, or the server can't be reached.
    pub async fn transcript(&self, agent: &str) -> Result<Transcript, Error> {
        self.server.0.get(Endpoint::GetTranscript, &[self.id.as_str(), agent], ()).await
    }

    /// Begins a run as [`run`](AnySession::run) does, once for each key: a further call with the
    /// same key and request returns the same run, also from another process.
    ///
    /// # Errors
    /// As `run`, or the key was used for another request.
    pub async fn run_with_key(&self, key: &str, run: NewRun) -> Result<Begun, Error> {
        let mut run = self.with_stored_data(run).await?;
        run.agent = run.agent.or_else(|| self.agent.as_deref().map(str::to_owned));
        let request = self.post(Endpoint::BeginRun, &[]).header("idempotency-key", key).json(&run);
        let begun: RunView = self.server.0.post(request, Retry::Lost).await?;
        Ok(self.begun(&begun))
    }

    /// Creates a link, with which the session is read without a token of the server.
    ///
    /// # Errors
    /// The session does not exist, the link is not valid, the session has too many, or the server
    /// has no journal ([`NoLinks`](mainstem_api::Code::NoLinks)).
    pub async fn add_link(&self, link: NewLink) -> Result<NewLinkView, Error> {
        self.server.0.post(self.post(Endpoint::AddLink, &[]).json(&link), Retry::Never).await
    }

    /// Returns the links that have not ended, the oldest first.
    ///
    /// # Errors
    /// As for [`add_link`](Self::add_link).
    pub async fn links(&self) -> Result<Vec<LinkView>, Error> {
        Ok(self.server.0.get::<Items<_>>(Endpoint::ListLinks, &[self.id.as_str()], ()).await?.items)
    }

    /// Revokes a link: its readers read nothing more after some seconds.
    ///
    /// # Errors
    /// The link does not exist, or the server can't be reached.
    pub async fn delete_link(&self, id: &LinkId) -> Result<(), Error> {
        self.server.0.fetch(self.post(Endpoint::DeleteLink, &[id.as_str()]), Retry::Never).await.map(drop)
    }

    /// Returns a run of the session, with its events from the first one on.
    pub fn begun(&self, run: &RunView) -> Begun {
        let query = EventQuery::after(run.first_seq.saturating_sub(1)).with_run(&run.id);
        let run = Arc::new(RemoteRun { server: self.server.clone(), id: run.id.clone() });
        Begun { run, events: self.events(query) }
    }

    pub(crate) fn post(&self, endpoint: Endpoint, more: &[&str]) -> RequestBuilder {
        let path: Vec<_> = std::iter::once(self.id.as_str()).chain(more.iter().copied()).collect();
        self.server.0.request(&Request { endpoint, path: &path })
    }
}

/// Adds a key with which a request has its effect once, however often it is sent.
fn with_idempotency_key(request: RequestBuilder) -> RequestBuilder {
    request.header("idempotency-key", RandomIds.next("client-"))
}

#[async_trait]
impl AnySession for RemoteSession {
    fn id(&self) -> &SessionId {
        &self.id
    }

    async fn view(&self) -> Result<SessionView, Error> {
        self.server.0.get(Endpoint::GetSession, &[self.id.as_str()], ()).await
    }

    async fn runs(&self) -> Result<Vec<RunView>, Error> {
        let (mut runs, mut cursor) = (Vec::new(), None);
        loop {
            let query = RunQuery { limit: Some(MAX_LIMIT), cursor };
            let page: Page<_> = self.server.0.get(Endpoint::ListRuns, &[self.id.as_str()], &query).await?;
            // Pages go back in time.
            runs.splice(0..0, page.items);
            match page.next {
                None => return Ok(runs),
                same if same == query.cursor => {
                    let reason = "a page of runs names itself as the next one";
                    return Err(self.server.0.invalid(reason.to_owned()));
                }
                next => cursor = next,
            }
        }
    }

    async fn run(&self, run: NewRun) -> Result<Begun, Error> {
        self.run_with_key(&RandomIds.next("client-"), run).await
    }

    fn events(&self, query: EventQuery) -> Events {
        Reader::new(self.server.0.clone(), self.id.clone(), query).into_stream()
    }

    async fn fleet(&self) -> Result<FleetState, Error> {
        self.server.0.get(Endpoint::GetFleet, &[self.id.as_str()], ()).await
    }

    async fn fleet_at(&self, seq: u64) -> Result<FleetState, Error> {
        let query = FleetQuery { at: Some(seq) };
        self.server.0.get(Endpoint::GetFleet, &[self.id.as_str()], query).await
    }

    async fn data(&self, data: &StoredData) -> Result<Bytes, Error> {
        let path = [self.id.as_str(), data.sha256.as_str()];
        let request = self.server.0.request(&Request { endpoint: Endpoint::GetData, path: &path });
        self.server.0.fetch(request, Retry::Unreachable).await.map(Bytes::from)
    }

    async fn children(&self) -> Result<Vec<ChildSummary>, Error> {
        Ok(self.server.0.get::<Items<_>>(Endpoint::ListChildren, &[self.id.as_str()], ()).await?.items)
    }

    async fn tasks(&self) -> Result<Vec<TaskRecord>, Error> {
        let query = TaskQuery { session: Some(self.id.clone()), status: None };
        Ok(self.server.0.get::<Items<_>>(Endpoint::ListTasks, &[], query).await?.items)
    }

    async fn send(&self, child: &AgentKey, message: &str, mode: SendMode) -> Result<(), Error> {
        let message = NewMessage { content: message.to_owned(), mode };
        let request =
            with_idempotency_key(self.post(Endpoint::SendMessage, &[child.as_str()])).json(&message);
        self.server.0.fetch(request, Retry::Unreachable).await.map(drop)
    }

    async fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), Error> {
        let request = self.post(Endpoint::Confirm, &[id.as_str()]).json(&Approval::from(decision));
        // A second request finds that it was answered.
        self.server.0.post::<Approved>(request, Retry::Unreachable).await.map(drop)
    }

    async fn submit(&self, call: &ToolCallId, result: &NewToolResult) -> Result<(), Error> {
        let request = self.post(Endpoint::SubmitToolResult, &[call.as_str()]).json(result);
        self.server.0.fetch(request, Retry::Unreachable).await.map(drop)
    }

    async fn cancel_agent(&self, child: &AgentKey) -> Result<bool, Error> {
        let request = self.post(Endpoint::CancelAgent, &[child.as_str()]);
        let cancelled: CancelledAgent = self.server.0.post(request, Retry::Unreachable).await?;
        Ok(cancelled.was_running)
    }
}

impl fmt::Debug for RemoteSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.server.address();
        f.debug_struct("RemoteSession").field("server", &server).field("id", &self.id).finish_non_exhaustive()
    }
}

/// A run on a server.
struct RemoteRun {
    server: Server,
    id: RunId,
}

#[async_trait]
impl AnyRun for RemoteRun {
    fn id(&self) -> &RunId {
        &self.id
    }

    async fn view(&self) -> Result<RunView, Error> {
        self.server.0.get(Endpoint::GetRun, &[self.id.as_str()], ()).await
    }

    async fn cancel(&self, reason: CancelReason) -> Result<(), Error> {
        let request = Request { endpoint: Endpoint::CancelRun, path: &[self.id.as_str()] };
        let request = self.server.0.request(&request).query(&CancelQuery::from(&reason));
        self.server.0.fetch(request, Retry::Unreachable).await.map(drop)
    }
}
