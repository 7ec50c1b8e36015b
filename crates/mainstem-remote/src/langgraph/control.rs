//! Steers the runs of one turn.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use mainstem_event::{CancelReason, Decision};
use mainstem_message::{ConfirmId, ToolCallId};
use mainstem_tool::ToolOutput;
use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    time::sleep,
};

use super::server::Server;
use crate::{RemoteControl, RemoteError};

/// How often, and at which interval, a run is looked up that was requested before a cancel.
const SEARCHES: u32 = 20;
const SEARCH_INTERVAL: Duration = Duration::from_millis(100);

/// How many answers wait to be taken in.
const ANSWERS: usize = 8;

/// What the control and the driver share.
#[derive(Debug, Default)]
pub(super) struct Shared(Mutex<Status>);

#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    pub(super) run: String,
    pub(super) is_cancelled: bool,
    /// The key of a run that is requested, and whose id is not known yet.
    pub(super) requested: Option<String>,
}

/// What this side says.
#[derive(Debug)]
pub(super) enum Answer {
    Decided(ConfirmId, Decision),
    Cancelled,
}

impl Shared {
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Status) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn run(&self) -> String {
        self.with(|status| status.run.clone())
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.with(|status| status.is_cancelled)
    }
}

/// Steers the runs of a turn.
pub(super) struct Control {
    server: Server,
    shared: Arc<Shared>,
    answers: Sender<Answer>,
}

impl Control {
    /// Creates the control of a turn, and the receiver of what it says.
    pub(super) fn new(server: Server, shared: Arc<Shared>) -> (Self, Receiver<Answer>) {
        let (answers, said) = mpsc::channel(ANSWERS);
        (Self { server, shared, answers }, said)
    }
}

#[async_trait]
impl RemoteControl for Control {
    async fn cancel(&self, _: &CancelReason) -> Result<(), RemoteError> {
        self.shared.with(|status| status.is_cancelled = true);
        // A graph that asks has no run to stop.
        let _ = self.answers.try_send(Answer::Cancelled);
        let cancelled = match self.shared.run() {
            // The turn has no run yet.
            run if run.is_empty() => Ok(()),
            run => self.server.cancel(&run).await,
        };
        // If the driver is dropped, the response to its request is never read.
        for _ in 0..SEARCHES {
            let Some(key) = self.shared.with(|status| status.requested.clone()) else { break };
            if let Ok(run) = self.server.find(&key).await {
                return self.server.cancel(&run).await;
            }
            sleep(SEARCH_INTERVAL).await;
        }
        cancelled
    }

    async fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), RemoteError> {
        let answer = Answer::Decided(id.clone(), decision);
        self.answers.send(answer).await.map_err(|_| RemoteError::Ended)
    }

    async fn submit(&self, _: &ToolCallId, _: ToolOutput) -> Result<(), RemoteError> {
        Err(RemoteError::refused("LangGraph's API has no calls that the caller runs"))
    }
}
