//! The requests about one session of the service.

use std::time::Duration;

use mainstem_message::{ReplyId, SessionId};
use reqwest::{Method, Url};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::wire::{Agents, Created, Messages, SessionRecord, SessionView, Sessions, Status, StatusOf};
use crate::{
    RemoteError, RemoteTurn,
    http::{Connection, Frames, Repeat},
};

/// How often, and at which interval, a session that is busy is asked again.
const BUSY: u32 = 30;
const BUSY_INTERVAL: Duration = Duration::from_secs(1);

/// How often, and at which interval, a message is looked for whose response was lost; a session
/// that is idle does not store it later than after some of them.
const SEARCHES: u32 = 60;
const IDLE_SEARCHES: u32 = 10;
const SEARCH_INTERVAL: Duration = Duration::from_millis(500);

/// How many messages are read: those of the present turn, and else the most that have a page.
const LATEST: u32 = 4;
const PAGE: u32 = 50;

/// The modes of permission that are set: to read only, and to ask.
const EXPLORE: &str = "explore";
const DEFAULT: &str = "default";

/// The agent of a service.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) connection: Connection,
    /// Its id.
    agent: String,
    /// Its name.
    pub(super) name: String,
}

/// A session of the agent.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) server: Server,
    pub(super) id: String,
    /// Which calls it allows by itself.
    mode: String,
}

impl Server {
    /// Finds the agent by its id, or by its name if no other has it.
    ///
    /// # Errors
    /// The service can't be reached, refuses, or has no such agent.
    pub(super) async fn find(connection: Connection, wanted: &str) -> Result<Self, RemoteError> {
        let Agents { agents } = connection.get(connection.url(&["agent", ""])).await?;
        let by_id = agents.iter().find(|agent| agent.id == wanted);
        let mut named = agents.iter().filter(|agent| agent.data.name == wanted);
        let found = match (by_id, named.next(), named.next()) {
            (Some(agent), _, _) | (None, Some(agent), None) => agent,
            (None, Some(_), Some(_)) => {
                let what =
                    format!("two agents have the name {wanted:?}; the address needs an id: …/agents/<id>");
                return Err(connection.refusal(&what));
            }
            (None, None, _) => {
                let names: Vec<_> = agents.iter().map(|agent| agent.data.name.as_str()).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(
                    connection.refusal(&format!("no agent {wanted:?} for this user; it has: {names}"))
                );
            }
        };
        let (agent, name) = (found.id.clone(), found.data.name.clone());
        Ok(Self { connection, agent, name })
    }

    /// Returns the session of a child, which begins with its first turn.
    ///
    /// # Errors
    /// The service can't be reached or refuses, or no session has a model.
    pub(super) async fn session(&self, own: &SessionId) -> Result<Session, RemoteError> {
        let sessions = self.sessions().await?;
        if let Some(known) = named(&sessions, own) {
            return Ok(self.at(known));
        }
        let model = sessions.iter().find(|session| !session.config.chat_model_config.is_null());
        let Some(SessionRecord { config, .. }) = model else {
            let what = format!(
                "no session of the agent {:?} has a model, which a new session takes over; create one on the \
                 page of the service, or with POST /sessions/",
                self.name
            );
            return Err(self.connection.refusal(&what));
        };
        let body = json!({
            "agent_id": self.agent,
            "name": name_of(own),
            "chat_model_config": config.chat_model_config,
            "fallback_chat_model_config": config.fallback_chat_model_config,
            "knowledge_config": config.knowledge_config,
        });
        let created =
            self.connection.post::<Created>(self.url(&["sessions", ""]), &body, Repeat::Unsafe).await;
        match created {
            Ok(Created { session_id: id }) => Ok(Session { server: self.clone(), id, mode: String::new() }),
            // It may have been created all the same.
            Err(lost @ RemoteError::Unreachable { .. }) => self.known(own).await?.ok_or(lost),
            Err(error) => Err(error),
        }
    }

    /// Returns the session of a child, if it has begun.
    pub(super) async fn known(&self, own: &SessionId) -> Result<Option<Session>, RemoteError> {
        Ok(named(&self.sessions().await?, own).map(|known| self.at(known)))
    }

    async fn sessions(&self) -> Result<Vec<SessionRecord>, RemoteError> {
        let url = self.with_agent(self.url(&["sessions", ""]));
        let Sessions { sessions } = self.connection.get(url).await?;
        Ok(sessions.into_iter().map(|SessionView { session }| session).collect())
    }

    fn at(&self, record: &SessionRecord) -> Session {
        let mode = record.state.permission_context.mode.clone();
        Session { server: self.clone(), id: record.id.clone(), mode }
    }

    fn url(&self, segments: &[&str]) -> Url {
        self.connection.url(segments)
    }

    fn with_agent(&self, mut url: Url) -> Url {
        url.query_pairs_mut().append_pair("agent_id", &self.agent);
        url
    }
}

impl Session {
    /// Lets the agent only read, or asks again about what changes something.
    ///
    /// # Errors
    /// The service can't be reached or refuses.
    pub(super) async fn set_plan_mode(&self, is_planning: bool) -> Result<(), RemoteError> {
        let wanted = match (is_planning, &*self.mode) {
            (true, EXPLORE) => return Ok(()),
            (true, _) => EXPLORE,
            (false, EXPLORE) => DEFAULT,
            (false, _) => return Ok(()),
        };
        let body = json!({ "permission_mode": wanted });
        let server = &self.server;
        let url = self.url(&[]);
        server.connection.send(Method::PATCH, &url, Some(&body), &[], Repeat::Safe).await.map(drop)
    }

    /// Waits until the session can take a message. A reply of an earlier turn that waits for a
    /// person is ended: its request was withdrawn with its process.
    ///
    /// # Errors
    /// The service can't be reached or refuses, or the session stays busy.
    pub(super) async fn ready(&self) -> Result<(), RemoteError> {
        for _ in 0..BUSY {
            match self.status().await? {
                Status::Idle => return Ok(()),
                Status::Running => {}
                Status::AwaitingPermission | Status::AwaitingExternalResult => self.interrupt().await?,
            }
            sleep(BUSY_INTERVAL).await;
        }
        Err(self.busy())
    }

    fn busy(&self) -> RemoteError {
        self.server.connection.refusal("the session stays busy with another message")
    }

    /// Returns the latest messages if one of a turn is among them. While the session is running,
    /// the turn's may not be stored yet.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub(super) async fn arrived(&self, turn: &ReplyId) -> Result<Option<Messages>, RemoteError> {
        for _ in 0..BUSY {
            let page = self.messages_of(turn.as_str()).await?;
            if has(&page, turn.as_str()) {
                return Ok(Some(page));
            }
            if self.status().await? != Status::Running {
                return Ok(None);
            }
            sleep(BUSY_INTERVAL).await;
        }
        Err(self.busy())
    }

    /// Sends the message of a turn, once: it has the turn's id.
    ///
    /// # Errors
    /// The service can't be reached or refuses, or the session stays busy.
    pub(super) async fn begin(&self, turn: &RemoteTurn) -> Result<(), RemoteError> {
        let content = json!([{ "type": "text", "text": turn.task }]);
        let message = json!({ "name": "user", "role": "user", "id": turn.id.as_str(), "content": content });
        for _ in 0..BUSY {
            match self.chat(&message).await {
                Err(RemoteError::Refused { status: Some(409), .. }) => sleep(BUSY_INTERVAL).await,
                Err(lost @ RemoteError::Unreachable { .. }) => {
                    return if self.has_begun(&turn.id).await? { Ok(()) } else { Err(lost) };
                }
                sent => return sent,
            }
        }
        Err(self.busy())
    }

    async fn has_begun(&self, turn: &ReplyId) -> Result<bool, RemoteError> {
        for search in 0..SEARCHES {
            if has(&self.messages_of(turn.as_str()).await?, turn.as_str()) {
                return Ok(true);
            }
            if search >= IDLE_SEARCHES && self.status().await? == Status::Idle {
                return Ok(false);
            }
            sleep(SEARCH_INTERVAL).await;
        }
        // What runs there may be the turn, which is not followed.
        self.interrupt().await?;
        Ok(false)
    }

    /// Sends a message, or an event that answers a question.
    pub(super) async fn chat(&self, input: &Value) -> Result<(), RemoteError> {
        let Server { connection, agent, .. } = &self.server;
        let body = json!({ "agent_id": agent, "session_id": self.id, "input": input });
        connection.post::<Value>(connection.url(&["chat", ""]), &body, Repeat::Unsafe).await.map(drop)
    }

    /// Returns the latest event that the stored messages include.
    pub(super) async fn cursor(&self) -> Result<Option<String>, RemoteError> {
        Ok(self.messages(1).await?.event_cursor)
    }

    /// Returns the latest messages, with one of this id if it is among those of a page.
    pub(super) async fn messages_of(&self, message: &str) -> Result<Messages, RemoteError> {
        let latest = self.messages(LATEST).await?;
        let is_all = latest.messages.len() < LATEST as usize;
        if is_all || has(&latest, message) { Ok(latest) } else { self.messages(PAGE).await }
    }

    async fn messages(&self, limit: u32) -> Result<Messages, RemoteError> {
        let mut url = self.url(&["messages"]);
        url.query_pairs_mut().append_pair("limit", &limit.to_string());
        self.server.connection.get(url).await
    }

    pub(super) async fn status(&self) -> Result<Status, RemoteError> {
        let StatusOf { status } = self.server.connection.get(self.url(&["status"])).await?;
        Ok(status)
    }

    /// Opens the stream of events behind one of them. It begins with those of the present run.
    pub(super) async fn events(&self, after: Option<&str>) -> Result<Frames, RemoteError> {
        let mut url = self.url(&["stream"]);
        if let Some(after) = after {
            url.query_pairs_mut().append_pair("after", after);
        }
        self.server.connection.frames(url, None, &[], Repeat::Safe).await
    }

    /// Stops the reply that is running or waits. Nothing happens to a session that is idle.
    pub(super) async fn interrupt(&self) -> Result<(), RemoteError> {
        let url = self.url(&["interrupt"]);
        self.server.connection.post::<Value>(url, &Value::Null, Repeat::Safe).await.map(drop)
    }

    fn url(&self, action: &[&str]) -> Url {
        let path: Vec<_> = ["sessions", &self.id].into_iter().chain(action.iter().copied()).collect();
        self.server.with_agent(self.server.url(&path))
    }
}

fn has(page: &Messages, message: &str) -> bool {
    page.messages.iter().any(|one| one.id == message)
}

/// Returns the name of a child's session, by which it is found again.
fn name_of(own: &SessionId) -> String {
    format!("Mainstem {own}")
}

fn named<'a>(sessions: &'a [SessionRecord], own: &SessionId) -> Option<&'a SessionRecord> {
    let name = name_of(own);
    sessions.iter().find(|session| session.config.name == name)
}
