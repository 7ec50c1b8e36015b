//! AgentScope's service of version 2 (`agentscope.app` of the Python package): a turn is a reply in
//! a session of its own.
//!
//! `follow` waits for the session's events; what they mean is decided in `decode` (one event) and
//! `reply` (the reply so far), which are pure, and `questions` has the requests that wait.

mod control;
mod decode;
mod follow;
mod questions;
mod remote_id;
mod reply;
mod server;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use mainstem_event::fold::RecordedTurn;
use mainstem_outbound::Reach;
use mainstem_spec::Protocol;
use serde_json::Value;

use self::{
    control::{Control, Progress},
    follow::{Follow, answer_to},
    questions::Questions,
    reply::Reply,
    server::{Server, Session},
    wire::Messages,
};
use super::{AGENTS, address};
use crate::{
    BegunTurn, RemoteAgent, RemoteError, RemoteTurn,
    declaration::{About, Declaration, Declared},
    http::Connection,
};

/// The header with the user whose agents and sessions are meant.
const USER: &str = "x-user-id";

const FALLBACK: &str = "AgentScope's service keeps the events of a run only while the run goes on";

/// An agent of AgentScope's service, which the Python package has since version 2.
///
/// A child has a session of its own there, which takes over the model of the agent's latest
/// session; a further message continues it. The stream reconnects, and repeats what it has; if the
/// service no longer has the events, the rest of the reply comes from its stored message. In plan
/// mode the session only reads (`explore`). Members of a team work in further sessions, whose
/// events are not read.
#[derive(Clone, Debug)]
pub struct AgentScopeServiceAgent {
    connection: Connection,
    agent: Arc<str>,
}

impl AgentScopeServiceAgent {
    /// Creates the agent at a URL: `https://host/agents/<agent>`, with the agent's id or name.
    ///
    /// # Errors
    /// The URL is not valid, has no agent, or is out of reach.
    pub fn at(url: &str, reach: &Reach) -> Result<Self, RemoteError> {
        let (address, agent) = url.trim_end_matches('/').rsplit_once(AGENTS).ok_or_else(|| {
            RemoteError::invalid(
                "the url names no agent: it has the form http://host:8000/agents/<name or id>",
            )
        })?;
        Ok(Self { connection: Connection::at(address, reach)?, agent: agent.into() })
    }

    /// Adds a header to every request. The service needs `X-User-ID`: whose agents and sessions are
    /// meant. Messages do not show its value.
    ///
    /// # Errors
    /// The name or the value is not valid in a header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, RemoteError> {
        self.connection = self.connection.with_header(name, value)?;
        Ok(self)
    }

    /// Returns the agent at the service, on behalf of a user unless a header names one.
    async fn server(&self, turn: &RemoteTurn) -> Result<Server, RemoteError> {
        let mut connection = self.connection.of_trace(turn.trace_parent.as_deref());
        if !connection.has_header(USER) {
            let user = turn.user.as_deref().ok_or_else(|| self.lacks_user())?;
            connection = connection.with_header(USER, user)?;
        }
        Server::find(connection, &self.agent).await
    }

    fn lacks_user(&self) -> RemoteError {
        self.connection.refusal("the service needs a user: declare the header X-User-ID, or run with one")
    }
}

impl Declared for AgentScopeServiceAgent {
    const PROTOCOL: Protocol = Protocol::AgentScope;

    fn declared(declaration: &Declaration) -> Result<Self, RemoteError> {
        let Self { connection, agent } = Self::at(&address(declaration), &declaration.reach)?;
        Ok(Self { connection: connection.with_headers(&declaration.headers)?, agent })
    }

    async fn describe(&self) -> Result<Option<About>, RemoteError> {
        let has_user = self.connection.has_header(USER);
        // Any user may ask whether the service is well.
        let connection = self.connection.clone();
        let connection = if has_user { connection } else { connection.with_header(USER, "mainstem")? };
        let health: Value = connection.get(connection.url(&["health"])).await?;
        if health["components"]["chat_run_registry"].is_null() {
            return Ok(None);
        }
        let version = health["version"].as_str().unwrap_or("of an unknown version");
        if !has_user {
            return Ok(Some(Ok(format!("an AgentScope service {version}; its agents are those of a user"))));
        }
        let found = Server::find(connection, &self.agent).await;
        Ok(Some(found.map(|server| format!("{}, at an AgentScope service {version}", server.name))))
    }
}

#[async_trait]
impl RemoteAgent for AgentScopeServiceAgent {
    async fn begin(&self, turn: RemoteTurn) -> Result<BegunTurn, RemoteError> {
        let server = self.server(&turn).await?;
        let session = server.session(&turn.session).await?;
        begin(session, &turn).await
    }

    fn can_find(&self) -> bool {
        true
    }

    /// The session has the name of the child's, and the message has the turn's id.
    async fn find(&self, turn: RemoteTurn, recorded: &RecordedTurn) -> Result<BegunTurn, RemoteError> {
        let server = self.server(&turn).await?;
        let Some(session) = server.known(&turn.session).await? else {
            return begin(server.session(&turn.session).await?, &turn).await;
        };
        let arrived = match recorded.latest_remote_id() {
            Some(_) => Some(session.messages_of(turn.id.as_str()).await?),
            None => session.arrived(&turn.id).await?,
        };
        match arrived {
            Some(page) => Ok(go_on(session, &turn, recorded, page)),
            None => begin(session, &turn).await,
        }
    }
}

/// Sends the message of a turn, and follows the reply.
async fn begin(session: Session, turn: &RemoteTurn) -> Result<BegunTurn, RemoteError> {
    session.ready().await?;
    session.set_plan_mode(turn.plan_mode).await?;
    let after = session.cursor().await?;
    session.begin(turn).await?;
    let questions = Arc::<Questions>::default();
    let reply = Reply::new(&session.server.name, &session.id, turn.session.clone(), questions.clone());
    Ok(follow(session, turn, reply, questions, after))
}

/// Goes on with a reply that another process has followed.
fn go_on(session: Session, turn: &RemoteTurn, recorded: &RecordedTurn, page: Messages) -> BegunTurn {
    let own = &recorded.own;
    // Each request has had a call.
    let questions = Arc::new(Questions::after(own.parts.calls.len()));
    let name = session.server.name.clone();
    let mut reply = Reply::recorded(&name, &session.id, turn.session.clone(), questions.clone(), own);
    if let Some(message) = answer_to(&page, turn.id.as_str()) {
        reply.catch_up(message);
    }
    follow(session, turn, reply, questions, page.event_cursor).with_fallback(FALLBACK)
}

fn follow(
    session: Session,
    turn: &RemoteTurn,
    reply: Reply,
    questions: Arc<Questions>,
    after: Option<String>,
) -> BegunTurn {
    let progress = Arc::<Progress>::default();
    let events = Follow::new(session.clone(), turn.id.as_str(), reply, questions.clone(), progress.clone());
    let events = events.behind(after).into_events();
    let control = Control { session, questions, progress };
    BegunTurn::new(events, Arc::new(control))
}
