//! The requests about one task.

use std::time::Duration;

use mainstem_encode::agent_protocol::{Resume, Snapshot, Status, Submit, Verdict};
use reqwest::Url;
use serde::Serialize;
use serde_json::Value;
use tokio::time::sleep;

use crate::{
    RemoteError,
    http::{Connection, Frames, Repeat},
};

/// How often an answer to a request for approval is repeated while the server has not noted that
/// the task waits for it, and after how long at first.
const RESUMES: u32 = 6;
const RESUME_INTERVAL: Duration = Duration::from_millis(100);

/// The error of a task that the server does not know.
const UNKNOWN: &str = "task not found";

/// A task of a server.
#[derive(Debug)]
pub(super) struct Task {
    connection: Connection,
    id: String,
}

impl Task {
    pub(super) fn new(connection: Connection, id: &str) -> Self {
        Self { connection, id: id.to_owned() }
    }

    /// Returns `true` if a task of the server can continue a conversation, which it says of a task
    /// that it does not know.
    pub(super) async fn can_continue(&self) -> Result<bool, RemoteError> {
        Ok(self.status().await?.continues_sessions == Some(true))
    }

    /// Returns its state, if the server has the task.
    pub(super) async fn known(&self) -> Result<Option<Snapshot>, RemoteError> {
        Ok(Some(self.status().await?).filter(|snapshot| !is_unknown(snapshot)))
    }

    /// Begins it. A server that has begun it already, because a response was lost, may refuse the
    /// second request.
    pub(super) async fn submit(&self, task: &Submit) -> Result<(), RemoteError> {
        let url = self.connection.url(&["tasks"]);
        let sent = self.connection.post::<Value>(url, &json(task), Repeat::Safe).await;
        match sent {
            Err(refused @ RemoteError::Refused { .. }) => match self.status().await {
                Ok(snapshot) if !is_unknown(&snapshot) => Ok(()),
                _ => Err(refused),
            },
            sent => sent.map(drop),
        }
    }

    /// Returns its state.
    pub(super) async fn status(&self) -> Result<Snapshot, RemoteError> {
        self.connection.get(self.url(None)).await
    }

    /// Waits on the server until the task has ended, it waits for an approval, or the time is over.
    /// What it answers is left to [`status`](Self::status): a time that is over has the form of a
    /// failed task.
    pub(super) async fn wait(&self, timeout: Duration) -> Result<(), RemoteError> {
        let mut url = self.url(Some("wait"));
        url.set_query(Some(&format!("timeout_seconds={}", timeout.as_secs())));
        self.connection.get::<Value>(url).await.map(drop)
    }

    /// Opens the stream of its events behind the last one.
    pub(super) async fn events(&self, last: u64) -> Result<Frames, RemoteError> {
        let mut url = self.url(Some("events"));
        if last == 0 {
            return self.connection.frames(url, None, &[], Repeat::Safe).await;
        }
        url.set_query(Some(&format!("from_seq={last}")));
        let headers = [("last-event-id", last.to_string())];
        self.connection.frames(url, None, &headers, Repeat::Safe).await
    }

    pub(super) async fn cancel(&self) -> Result<(), RemoteError> {
        self.connection.post::<Value>(self.url(Some("cancel")), &Value::Null, Repeat::Safe).await.map(drop)
    }

    /// Answers a request for approval. It may have arrived before the server has noted that the
    /// task waits.
    pub(super) async fn resume(&self, decisions: Vec<Verdict>) -> Result<(), RemoteError> {
        let body = json(&Resume { decisions });
        let mut wait = RESUME_INTERVAL;
        for _ in 0..RESUMES {
            let url = self.url(Some("resume"));
            match self.connection.post::<Value>(url, &body, Repeat::Unsafe).await {
                Err(RemoteError::Refused { .. }) if self.is_running().await? => sleep(wait).await,
                // A server denies the calls of a later request that an answer does not name.
                Err(RemoteError::Unreachable { .. }) if !self.waits_for(&body).await? => return Ok(()),
                Err(RemoteError::Unreachable { .. }) => sleep(wait).await,
                answered => return answered.map(drop),
            }
            wait *= 2;
        }
        Err(self.connection.invalid("the task does not wait for the approval that it requires"))
    }

    /// Returns `true` if the task still waits for the approval of a call that an answer is about.
    async fn waits_for(&self, answer: &Value) -> Result<bool, RemoteError> {
        let pending = self.status().await?.pending_confirms.unwrap_or_default();
        let decisions = answer["decisions"].as_array().into_iter().flatten();
        let mut calls = decisions.filter_map(|decision| decision["toolCallId"].as_str());
        Ok(calls.any(|call| pending.iter().any(|one| one.tool_call_id == call)))
    }

    async fn is_running(&self) -> Result<bool, RemoteError> {
        Ok(matches!(self.status().await?.status, Some(Status::Running | Status::Pending)))
    }

    /// Returns the error of a lost stream.
    pub(super) fn lost(&self, cause: &str) -> RemoteError {
        RemoteError::unreachable(format!("{}: {cause}", self.connection.shown()))
    }

    /// Returns the error of what is not in the protocol.
    pub(super) fn invalid(&self, what: &str) -> RemoteError {
        self.connection.invalid(what)
    }

    fn url(&self, action: Option<&str>) -> Url {
        let segments: Vec<_> = ["tasks", &*self.id].into_iter().chain(action).collect();
        self.connection.url(&segments)
    }
}

fn is_unknown(snapshot: &Snapshot) -> bool {
    snapshot.status == Some(Status::Error) && snapshot.error.as_deref() == Some(UNKNOWN)
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
