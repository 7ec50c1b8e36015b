//! The requests to a LangGraph server about one thread.

use mainstem_event::fold::RecordedTurn;
use mainstem_message::{ReplyId, SessionId};
use reqwest::{Method, Response, header::CONTENT_LOCATION};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    remote_id::RemoteId,
    wire::{Run, State},
};
use crate::{
    RemoteError, RemoteTurn,
    http::{Connection, Frames, Repeat},
};

/// What is asked to be streamed: messages as they grow, changes of the state, what nodes write, and
/// the beginnings and ends of tasks. If a server refuses the last, the first three are requested.
const MODES: [&str; 4] = ["messages-tuple", "updates", "custom", "tasks"];
const COMMON_MODES: [&str; 3] = ["messages-tuple", "updates", "custom"];

/// The key of a request in the metadata of its run.
pub(super) const KEY: &str = "mainstem_key";

/// The most runs of a thread that are looked through, the latest first.
const MAX_RUNS: &str = "100";

/// A thread of a server.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) connection: Connection,
    pub(super) assistant: String,
    thread: String,
}

/// A run that another process has begun.
#[derive(Clone, Debug)]
pub(super) struct FoundRun {
    pub(super) id: String,
    /// Which of the turn's runs it is, from 1 on.
    pub(super) number: u32,
    /// The latest frame that is recorded of it; empty if there is none.
    pub(super) frame: String,
}

/// A run that has begun.
pub(super) struct Begun {
    pub(super) run: String,
    /// `None` if the server does not stream.
    pub(super) frames: Option<Frames>,
}

#[derive(Deserialize)]
struct Assistant {
    assistant_id: String,
    #[serde(default)]
    graph_id: String,
}

impl Server {
    /// Creates the thread of a session: its id is derived from that of the session. Without an
    /// assistant, it is the server's only one.
    ///
    /// # Errors
    /// The server has several assistants, or none.
    pub(super) async fn new(
        connection: Connection,
        assistant: Option<&str>,
        session: &SessionId,
    ) -> Result<Self, RemoteError> {
        let assistant = match assistant {
            Some(assistant) => assistant.to_owned(),
            None => only_assistant(&connection).await?,
        };
        Ok(Self { connection, assistant, thread: uuid(session.as_str()) })
    }

    /// Returns the latest run of a turn that another process has begun: by the turn's id in its
    /// metadata, or by the record; `None` if the turn has none.
    ///
    /// # Errors
    /// The server can't be reached; or it keeps no metadata, and no run is recorded.
    pub(super) async fn search(
        &self,
        turn: &ReplyId,
        recorded: &RecordedTurn,
    ) -> Result<Option<FoundRun>, RemoteError> {
        let latest_id = recorded.latest_remote_id().and_then(RemoteId::parse);
        let runs = self.runs().await?;
        let number = |run: &Run| run.key()?.strip_prefix(turn.as_str())?.strip_prefix('-')?.parse().ok();
        let latest =
            runs.iter().filter_map(|run| Some((number(run)?, run))).max_by_key(|(number, _)| *number);
        let found = latest.map(|(number, run)| (run.run_id.clone(), number));
        let found = found.or_else(|| latest_id.map(|latest| (latest.run.to_owned(), 1)));
        match found {
            Some((id, number)) => {
                let frame = latest_id.filter(|latest| latest.run == id).map_or("", |latest| latest.frame);
                Ok(Some(FoundRun { frame: frame.to_owned(), id, number }))
            }
            None if runs.iter().all(|run| run.key().is_some()) => Ok(None),
            None => Err(self.connection.refusal(
                "the process that began the turn ended before it knew the run, and the server shows no \
                 metadata of runs to find it by; the request is not sent again, because it would run twice",
            )),
        }
    }

    /// Returns the latest run of the thread.
    pub(super) async fn latest(&self) -> Result<Option<Run>, RemoteError> {
        Ok(self.runs().await?.into_iter().next())
    }

    /// Returns the latest runs of the thread, in descending order of time. The list is empty if the
    /// server does not know the thread.
    async fn runs(&self) -> Result<Vec<Run>, RemoteError> {
        let mut url = self.connection.url(&["threads", &self.thread, "runs"]);
        url.query_pairs_mut().append_pair("limit", MAX_RUNS);
        match self.connection.get(url).await {
            Err(RemoteError::Refused { status: Some(404), .. }) => Ok(Vec::new()),
            runs => runs,
        }
    }

    /// Begins a run: with the task, or with the value that resumes the graph. A run whose response
    /// was lost is found by its key.
    ///
    /// # Errors
    /// The server can't be reached, or refuses.
    pub(super) async fn begin(
        &self,
        turn: &RemoteTurn,
        resume: Option<Value>,
        key: &str,
    ) -> Result<Begun, RemoteError> {
        let mut body = self.body(turn, key);
        match resume {
            Some(value) => body["command"] = json!({ "resume": value }),
            None => {
                body["input"] =
                    json!({ "messages": [{ "type": "human", "content": turn.task, "id": turn.id }] })
            }
        }
        let mut posted = self.post(&["runs", "stream"], &body).await;
        if let Err(RemoteError::Refused { status: Some(400 | 422), .. }) = posted {
            body["stream_mode"] = json!(COMMON_MODES);
            posted = self.post(&["runs", "stream"], &body).await;
        }
        match posted {
            Ok(response) if is_stream(&response) => {
                let run = run_of(&response);
                let frames = Some(Connection::frames_of(response));
                match run {
                    Some(run) => Ok(Begun { run, frames }),
                    None => Ok(Begun { run: self.find(key).await?, frames }),
                }
            }
            Ok(_) => Ok(Begun { run: self.find(key).await?, frames: None }),
            Err(RemoteError::Refused { status: Some(404 | 405 | 501), .. }) => {
                let run: Run = self.connection.json(self.post(&["runs"], &body).await?).await?;
                Ok(Begun { run: run.run_id, frames: None })
            }
            Err(lost @ RemoteError::Unreachable { .. }) => {
                let run = self.find(key).await.map_err(|_| lost)?;
                let frames = self.frames(&run, "-1").await?;
                Ok(Begun { run, frames: Some(frames) })
            }
            Err(error) => Err(error),
        }
    }

    fn body(&self, turn: &RemoteTurn, key: &str) -> Value {
        let mut metadata = turn.metadata();
        metadata.insert(KEY.to_owned(), key.into());
        json!({
            "assistant_id": self.assistant,
            "metadata": metadata,
            "stream_mode": MODES,
            "stream_subgraphs": true,
            "stream_resumable": true,
            "on_disconnect": "continue",
            "multitask_strategy": "reject",
            "if_not_exists": "create",
        })
    }

    async fn post(&self, path: &[&str], body: &Value) -> Result<Response, RemoteError> {
        let url = self.connection.url(&[&["threads", &self.thread], path].concat());
        let accept = [("accept", "text/event-stream, application/json".to_owned())];
        self.connection.send(Method::POST, &url, Some(body), &accept, Repeat::Unsafe).await
    }

    /// Returns the run that a request with this key has begun.
    ///
    /// # Errors
    /// The server can't be reached, or shows no such run.
    pub(super) async fn find(&self, key: &str) -> Result<String, RemoteError> {
        let found = self.runs().await?.into_iter().find(|run| run.key() == Some(key));
        found
            .map(|run| run.run_id)
            .ok_or_else(|| self.connection.invalid("the run that was begun is unknown"))
    }

    /// Requests a run's stream after an event.
    ///
    /// # Errors
    /// The server can't be reached, or refuses.
    pub(super) async fn frames(&self, run: &str, after: &str) -> Result<Frames, RemoteError> {
        let url = self.run_url(run, &["stream"]);
        self.connection.frames(url, None, &[("last-event-id", after.to_owned())], Repeat::Safe).await
    }

    /// Waits for the end of a run.
    ///
    /// # Errors
    /// As [`frames`](Self::frames).
    pub(super) async fn join(&self, run: &str) -> Result<(), RemoteError> {
        self.connection.get::<Value>(self.run_url(run, &["join"])).await.map(drop)
    }

    /// Returns a run.
    ///
    /// # Errors
    /// As [`frames`](Self::frames).
    pub(super) async fn run(&self, run: &str) -> Result<Run, RemoteError> {
        self.connection.get(self.run_url(run, &[])).await
    }

    /// Returns the state of the thread.
    ///
    /// # Errors
    /// As [`frames`](Self::frames).
    pub(super) async fn state(&self) -> Result<State, RemoteError> {
        self.connection.get(self.connection.url(&["threads", &self.thread, "state"])).await
    }

    /// Asks a run to stop.
    ///
    /// # Errors
    /// As [`frames`](Self::frames).
    pub(super) async fn cancel(&self, run: &str) -> Result<(), RemoteError> {
        let url = self.run_url(run, &["cancel"]);
        self.connection.send(Method::POST, &url, None, &[], Repeat::Safe).await.map(drop)
    }

    fn run_url(&self, run: &str, path: &[&str]) -> reqwest::Url {
        self.connection.url(&[&["threads", &self.thread, "runs", run], path].concat())
    }
}

async fn only_assistant(connection: &Connection) -> Result<String, RemoteError> {
    let url = connection.url(&["assistants", "search"]);
    let all: Vec<Assistant> = connection.post(url, &json!({ "limit": 100 }), Repeat::Safe).await?;
    match &*all {
        [only] => Ok(only.assistant_id.clone()),
        all => {
            let names: Vec<_> = all.iter().map(|one| one.graph_id.as_str()).collect();
            let what = format!(
                "the server has {} assistants ({}); end the url with /assistants/<one of them>",
                all.len(),
                names.join(", ")
            );
            Err(connection.invalid(&what))
        }
    }
}

fn is_stream(response: &Response) -> bool {
    let media_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
    media_type.is_some_and(|media_type| media_type.starts_with("text/event-stream"))
}

/// Returns the run that a response is about.
fn run_of(response: &Response) -> Option<String> {
    let place = response.headers().get(CONTENT_LOCATION)?.to_str().ok()?;
    let (_, run) = place.rsplit_once("/runs/")?;
    Some(run.to_owned()).filter(|run| !run.is_empty() && !run.contains('/'))
}

/// Returns a UUID of version 8 ([RFC 9562](https://www.rfc-editor.org/rfc/rfc9562)) that is derived
/// from a text.
fn uuid(text: &str) -> String {
    let hash = Sha256::digest(format!("mainstem thread\n{text}"));
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let mut hex: Vec<char> = hex.chars().collect();
    hex[12] = '8';
    hex[16] = ['8', '9', 'a', 'b'][usize::from(hash[8] >> 6)];
    let part = |from: usize, to: usize| hex[from..to].iter().collect::<String>();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}

#[cfg(test)]
mod tests {
    //! Ids of threads.

    use super::uuid;

    #[test]
    fn a_session_has_one_thread() {
        let id = uuid("sub-1");
        assert_eq!(id, uuid("sub-1"));
        assert_ne!(id, uuid("sub-2"));
        let lengths: Vec<_> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert!(id.as_bytes()[14] == b'8' && b"89ab".contains(&id.as_bytes()[19]), "{id}");
    }
}
