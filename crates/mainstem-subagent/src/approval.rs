//! What people are asked, and what they answer.

pub(crate) mod external;
pub(crate) mod gate;

use std::sync::{Mutex, MutexGuard, PoisonError};

use dashmap::DashMap;
use mainstem_event::{ConfirmResult, Decision, EventKind};
use mainstem_message::{ConfirmId, ToolCall, ToolCallId, ToolResult};
use mainstem_react::RunContext;
use mainstem_tool::ToolOutput;
use tokio::sync::oneshot;

use crate::{fleet::Fleet, options::SpawnOptions};

/// Why an answer was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// Nobody asked that, or it was answered already.
    #[error("nothing waits for {id:?}: it was answered already, or never asked{}", open(waiting))]
    NotAsked {
        /// What was answered.
        id: String,
        /// What waits.
        waiting: Vec<String>,
    },
}

fn open(waiting: &[String]) -> String {
    if waiting.is_empty() { String::new() } else { format!("; waiting: {}", waiting.join(", ")) }
}

/// The questions that wait.
#[derive(Debug, Default)]
pub(crate) struct People {
    questions: DashMap<ConfirmId, oneshot::Sender<Decision>>,
    /// Calls of external tools. Their ids are unique within a reply only: of two, the first is
    /// answered first.
    external: Mutex<Vec<(ToolCallId, oneshot::Sender<ToolOutput>)>>,
}

impl People {
    pub(crate) fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), AnswerError> {
        let asked = self.questions.remove(id).is_some_and(|(_, answer)| answer.send(decision).is_ok());
        let waiting = || self.questions.iter().map(|question| question.key().to_string()).collect();
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

impl Fleet {
    /// Asks a person about a call, live in the stream; only that call waits. Where nobody is there
    /// to be asked, the answer is no.
    pub(crate) async fn ask(&self, cx: &RunContext, call: ToolCall) -> Decision {
        if !SpawnOptions::of(cx).has_people {
            return Decision::Deny(
                "a person would have to allow it, and nobody is there to be asked".to_owned(),
            );
        }
        let (answer, decided) = oneshot::channel();
        let id = ConfirmId::new(cx.new_id("confirm-"));
        self.people.questions.insert(id.clone(), answer);
        let mut question = Question { fleet: self, cx, id, call, answer: None };
        cx.emit(EventKind::RequireUserConfirm {
            confirm_id: question.id.clone(),
            tool_calls: vec![question.call.clone()],
        });
        let decision = self.waiting(cx, decided).await.unwrap_or_else(|| Decision::Deny(STOPPED.to_owned()));
        question.answer = Some(decision.clone());
        decision
    }

    /// Has a call done by whoever reads the stream.
    pub(crate) async fn have_done(&self, cx: &RunContext, call: ToolCall) -> Option<ToolOutput> {
        if !SpawnOptions::of(cx).has_people {
            return Some(ToolOutput::failed("this tool is run by the caller, and nobody is there to run it"));
        }
        let (answer, done) = oneshot::channel();
        self.people.external().push((call.id.clone(), answer));
        cx.emit(EventKind::RequireExternalExecution { tool_calls: vec![call.clone()] });
        let output = self.waiting(cx, done).await;
        self.people.external().retain(|(_, answer)| !answer.is_closed());
        let output = cx.bounded(output?).await;
        let (content, state) = output.clone().into_parts();
        let result = ToolResult { tool_call_id: call.id, name: call.name, content, state };
        cx.emit(EventKind::ExternalExecutionResult { tool_results: vec![result] });
        Some(output)
    }

    /// Waits for an answer with the agent's place lent out, and its task, if it is part of one,
    /// said to wait; `None` if it is stopped.
    async fn waiting<T>(&self, cx: &RunContext, answer: oneshot::Receiver<T>) -> Option<T> {
        let lent = self.slots.lend(cx);
        let task = cx.sink().task().cloned();
        if let Some(task) = &task {
            self.tasks.set_waiting(task, true).await;
        }
        let answer = tokio::select! {
            biased;
            () = cx.cancelled() => None,
            answer = answer => answer.ok(),
        };
        if let Some(task) = &task {
            self.tasks.set_waiting(task, false).await;
        }
        lent.take_back().await;
        answer
    }
}

const STOPPED: &str = "the agent was stopped before anybody answered";

/// A question; says how it was answered, also when the agent is dropped.
struct Question<'a> {
    fleet: &'a Fleet,
    cx: &'a RunContext,
    id: ConfirmId,
    call: ToolCall,
    answer: Option<Decision>,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.fleet.people.questions.remove(&self.id);
        let call = self.call.clone();
        let result = match self.answer.take() {
            Some(Decision::Allow) => ConfirmResult::confirmed(call),
            Some(Decision::AllowWith(arguments)) => {
                ConfirmResult::confirmed(ToolCall { arguments: arguments.to_string(), ..call })
            }
            Some(Decision::Deny(reason)) => ConfirmResult::denied(call, reason),
            None => ConfirmResult::denied(call, STOPPED),
        };
        let confirm_id = self.id.clone();
        self.cx.emit(EventKind::UserConfirmResult { confirm_id, confirm_results: vec![result] });
    }
}
