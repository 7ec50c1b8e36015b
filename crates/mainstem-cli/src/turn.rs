//! A turn that has begun, of an agent of this process or of a server: heard, asked about, stopped.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use futures_util::{StreamExt, stream::LocalBoxStream};
use mainstem::{
    event::{Cursor, Diagnostics, Ids, RandomIds},
    message::{ConfirmId, Failure, Message},
    prelude::{Decision, Run, RunHandle},
    task::TaskSet,
};
use mainstem_event::{AgentEvent, CancelReason, EventKind, Outcome};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::remote::{Refused, Remote, escape};

/// What a turn says, to its end; after an error there is nothing more. Nothing is lost when a wait for the next one is dropped.
pub(crate) type Events = LocalBoxStream<'static, anyhow::Result<AgentEvent>>;

/// How long a server may take to hear that a turn shall end: one that does not answer must not keep anybody here.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) enum Turn {
    /// Stopped when its events are dropped.
    Here(RunHandle),
    /// Goes on when nobody hears it any more.
    There { remote: Remote, session: String, run: String },
}

/// How a turn ended.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) error: Option<Failure>,
    /// The error in words for people.
    pub(crate) why: Option<String>,
    pub(crate) reply: Option<Arc<Message>>,
    /// In millionths of a dollar, if all prices are known.
    pub(crate) cost: Option<u64>,
}

/// A name for a session that nobody has named.
pub(crate) fn new_session() -> String {
    RandomIds.next("chat-")
}

impl Turn {
    pub(crate) fn here(run: Run) -> (Self, Events) {
        (Self::Here(run.handle()), run.map(Ok).boxed_local())
    }

    /// Lets a server begin it: `body` is that of `POST /sessions/{id}/runs`.
    ///
    /// # Errors
    /// The server is not reached, or says why not.
    pub(crate) async fn there(
        remote: &Remote,
        session: &str,
        body: &Value,
    ) -> anyhow::Result<(Self, Events)> {
        let path = format!("/sessions/{}", escape(session));
        let begun = remote.post(&format!("{path}/runs"), body).await?;
        let run = begun["id"].as_str().context("the server's answer is no run")?.to_owned();
        let after = begun["first_seq"].as_u64().unwrap_or(1).saturating_sub(1);
        let events = remote.events(format!("{path}/events?run={}", escape(&run)), after);
        Ok((Self::There { remote: remote.clone(), session: session.to_owned(), run }, events.into_stream()))
    }

    pub(crate) fn run_id(&self) -> &str {
        match self {
            Self::Here(run) => run.id().as_str(),
            Self::There { run, .. } => run,
        }
    }

    pub(crate) fn session_id(&self) -> &str {
        match self {
            Self::Here(run) => run.session().id().as_str(),
            Self::There { session, .. } => session,
        }
    }

    /// The background tasks of this process, which end with it.
    pub(crate) fn tasks(&self) -> Option<TaskSet> {
        match self {
            Self::Here(run) => Some(run.session().task_set().clone()),
            Self::There { .. } => None,
        }
    }

    /// What was said from this event on, also after the turn.
    pub(crate) fn said_from(&self, seq: u64) -> Option<Cursor> {
        match self {
            Self::Here(run) => Some(run.subscribe_from(seq)),
            Self::There { .. } => None,
        }
    }

    pub(crate) fn diagnostics(&self) -> Option<Diagnostics> {
        match self {
            Self::Here(run) => Some(run.diagnostics()),
            Self::There { .. } => None,
        }
    }

    /// Asks all its agents to stop.
    pub(crate) async fn cancel(&self, reason: CancelReason) {
        match self {
            Self::Here(run) => {
                run.cancel_with_tasks(reason);
            }
            Self::There { remote, run, .. } => {
                let why = match reason {
                    CancelReason::Timeout { after } => format!("timeout&after_ms={}", after.as_millis()),
                    CancelReason::Signal { .. } => "signal".to_owned(),
                    _ => "user".to_owned(),
                };
                let (path, nothing) = (format!("/runs/{}/cancel?reason={why}", escape(run)), json!({}));
                // If it is not heard, the turn goes on, which is seen.
                let _ = timeout(PATIENCE, remote.post(&path, &nothing)).await;
            }
        }
    }

    /// Answers a question. If the question was answered already, its result arrives as an event.
    ///
    /// # Errors
    /// The answer does not get to the server.
    pub(crate) async fn confirm(&self, id: &ConfirmId, decision: Decision) -> anyhow::Result<()> {
        match self {
            Self::Here(run) => _ = run.confirm(id, decision),
            Self::There { remote, session, .. } => {
                let path = format!("/sessions/{}/confirmations/{}", escape(session), escape(id.as_str()));
                let told = remote.insist(&path, &answer(decision)).await;
                let is_late = |error: &anyhow::Error| {
                    error.downcast_ref::<Refused>().is_some_and(|refused| refused.code == "not_asked")
                };
                if let Err(error) = told
                    && !is_late(&error)
                {
                    return Err(error).context("the answer did not get there");
                }
            }
        }
        Ok(())
    }

    /// How it ended, which of a server's is told by its last event; `None` if it has not, or was dropped.
    ///
    /// # Errors
    /// The server does not say what the reply is.
    pub(crate) async fn ended(&self, last: Option<&AgentEvent>) -> anyhow::Result<Option<Ended>> {
        match self {
            Self::Here(run) => {
                let Some(ended) = run.outcome().await else { return Ok(None) };
                Ok(Some(Ended {
                    outcome: ended.outcome,
                    error: ended.error.as_ref().map(Failure::from),
                    why: ended.error.as_ref().map(ToString::to_string),
                    reply: ended.answer,
                    cost: ended.usage.inclusive_cost,
                }))
            }
            Self::There { remote, run, .. } => {
                let last = last.map(|last| &last.kind);
                let Some(EventKind::AgentEnd { outcome, error, usage, .. }) = last else { return Ok(None) };
                let known = remote.get(&format!("/runs/{}", escape(run))).await?;
                Ok(Some(Ended {
                    outcome: *outcome,
                    error: error.clone(),
                    why: error.as_ref().map(|error| error.message.clone()),
                    reply: serde_json::from_value(known["message"].clone()).ok(),
                    cost: usage.inclusive_cost,
                }))
            }
        }
    }
}

/// A person's answer, as a server takes it.
fn answer(decision: Decision) -> Value {
    match decision {
        Decision::Deny(reason) => json!({ "decision": "deny", "reason": reason }),
        Decision::AllowWith(arguments) => json!({ "decision": "allow", "arguments": arguments }),
        Decision::Allow => json!({ "decision": "allow" }),
    }
}
