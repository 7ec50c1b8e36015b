//! Approval: what may run, what a person decides about a tool call, and calls that the caller runs.

mod ask;
pub(crate) mod external;
mod gate;

use std::sync::{Mutex, MutexGuard, PoisonError};

use dashmap::DashMap;
use mainstem_event::Decision;
use mainstem_message::{ConfirmId, ToolCallId};
use mainstem_tool::ToolOutput;
use tokio::sync::oneshot;

/// Why an answer was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The request does not exist, or was answered already.
    #[error("nothing waits for {id:?}: it was answered already, or never asked{}", open(waiting))]
    #[non_exhaustive]
    NotAsked {
        /// The request that was answered.
        id: String,
        /// The open requests.
        waiting: Vec<String>,
    },
}

fn open(waiting: &[String]) -> String {
    if waiting.is_empty() { String::new() } else { format!("; waiting: {}", waiting.join(", ")) }
}

/// The open requests of a session.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    requests: DashMap<ConfirmId, oneshot::Sender<Decision>>,
    /// Calls of external tools. Their ids are unique within a reply only: of two, the first is
    /// answered first.
    external: Mutex<Vec<(ToolCallId, oneshot::Sender<ToolOutput>)>>,
}

impl Approvals {
    /// Opens an approval request.
    fn request(&self, id: &ConfirmId) -> oneshot::Receiver<Decision> {
        let (answer, decided) = oneshot::channel();
        self.requests.insert(id.clone(), answer);
        decided
    }

    /// Removes a request that may be unanswered.
    fn withdraw(&self, id: &ConfirmId) {
        self.requests.remove(id);
    }

    /// Opens a request for the result of an external tool's call.
    fn request_result(&self, call: &ToolCallId) -> oneshot::Receiver<ToolOutput> {
        let (answer, done) = oneshot::channel();
        self.external().push((call.clone(), answer));
        done
    }

    /// Removes the calls that no agent waits for.
    fn forget_closed(&self) {
        self.external().retain(|(_, answer)| !answer.is_closed());
    }

    pub(crate) fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), AnswerError> {
        let asked = self.requests.remove(id).is_some_and(|(_, answer)| answer.send(decision).is_ok());
        let waiting = || self.requests.iter().map(|request| request.key().to_string()).collect();
        if asked { Ok(()) } else { Err(AnswerError::NotAsked { id: id.to_string(), waiting: waiting() }) }
    }

    pub(crate) fn submit(&self, call: &ToolCallId, output: ToolOutput) -> Result<(), AnswerError> {
        let mut external = self.external();
        let place = external.iter().position(|(id, answer)| id == call && !answer.is_closed());
        let taken = place.map(|place| external.remove(place));
        if taken.is_some_and(|(_, answer)| answer.send(output).is_ok()) {
            return Ok(());
        }
        let waiting = external.iter().map(|(id, _)| id.to_string()).collect();
        Err(AnswerError::NotAsked { id: call.to_string(), waiting })
    }

    fn external(&self) -> MutexGuard<'_, Vec<(ToolCallId, oneshot::Sender<ToolOutput>)>> {
        self.external.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
