//! Errors of agents.

use std::sync::Arc;

use mainstem_event::{CancelReason, Outcome};
use mainstem_message::Failure;
use mainstem_model::ModelError;

use crate::RunContext;

/// Why an invocation failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The model failed.
    #[error(transparent)]
    Model(ModelError),
    /// It was cancelled, also by a time limit.
    #[error("{0}")]
    Cancelled(CancelReason),
    /// The model's answer was empty, and so were those after the reminders.
    #[error("the model gave an empty answer")]
    EmptyReply,
    /// The service's filter withheld the answer.
    #[error("the service filtered the answer")]
    Filtered,
    /// The model refused to answer, or the service did for it.
    #[error("the model refused to answer{}", said_in(.said))]
    #[non_exhaustive]
    Declined {
        /// What it said instead, if anything.
        said: Arc<str>,
    },
    /// Code of a tool, a model or a middleware panicked.
    #[error("a panic in the agent: {0}")]
    Panicked(String),
    /// The answer did not fit the output schema, twice.
    #[error("the answer does not fit the output schema:{problems}\nthe answer was: {value}")]
    #[non_exhaustive]
    Output {
        /// A line for each problem, with its place.
        problems: String,
        /// The model's answer.
        value: String,
    },
    /// The model's output exceeded a limit: see [`AnswerLimits`](crate::AnswerLimits).
    #[error("the model said too much and was cut off: {most} {unit} is the limit for {what}")]
    #[non_exhaustive]
    TooLong {
        /// What exceeded the limit.
        what: &'static str,
        /// The limit.
        most: usize,
        /// The unit of the limit.
        unit: &'static str,
    },
    /// The answers of one invocation were cut too often.
    #[error("the model's answers were cut {cuts} times; the connection to the service is not stable")]
    #[non_exhaustive]
    CutTooOften {
        /// How often.
        cuts: u32,
    },
    /// The agent made the same calls again and again, with the same results, although it was told:
    /// see [`RepetitionLimits`](crate::RepetitionLimits).
    #[error("the agent repeated the same tool calls {times} times in a row, with the same results")]
    #[non_exhaustive]
    NoProgress {
        /// How often.
        times: u32,
    },
    /// The session's record has failed.
    #[error("{why}")]
    #[non_exhaustive]
    Unrecorded {
        /// The file and the reason.
        why: Arc<str>,
    },
    /// The agent runs elsewhere, and failed there or can't be reached.
    #[error("{failure}")]
    #[non_exhaustive]
    Remote {
        /// How the invocation ends.
        outcome: Outcome,
        /// The error.
        failure: Failure,
    },
    /// A middleware refused, or the session refused to begin the run.
    #[error("{0}")]
    Refused(Failure),
}

impl AgentError {
    /// The error of an agent that runs elsewhere.
    pub fn remote(outcome: Outcome, failure: Failure) -> Self {
        Self::Remote { outcome, failure }
    }

    /// Returns how the invocation ends.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Cancelled(reason) => reason.outcome(),
            Self::Remote { outcome, .. } => *outcome,
            _ => Outcome::Error,
        }
    }

    /// Returns the error of a cancelled context.
    pub fn cancelled(cx: &RunContext) -> Self {
        Self::Cancelled(cx.cancellation().reason().unwrap_or(CancelReason::User { how: None }))
    }

    /// Returns the model's error, if that is the cause.
    pub fn model_error(&self) -> Option<&ModelError> {
        match self {
            Self::Model(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ModelError> for AgentError {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<&AgentError> for Failure {
    fn from(error: &AgentError) -> Self {
        let code = match error {
            AgentError::Model(error) => return Self::from(error),
            AgentError::Refused(failure) | AgentError::Remote { failure, .. } => return failure.clone(),
            AgentError::Cancelled(reason) => return Self::from(reason),
            AgentError::EmptyReply => "empty_reply",
            AgentError::Filtered => "content_filter",
            AgentError::Declined { .. } => "refusal",
            AgentError::Panicked(_) => "panic",
            AgentError::Output { .. } => "invalid_output",
            AgentError::TooLong { .. } => "limit",
            AgentError::NoProgress { .. } => "no_progress",
            AgentError::CutTooOften { .. } => "cut_too_often",
            AgentError::Unrecorded { .. } => "record",
        };
        Self::new(code, error.to_string())
    }
}

fn said_in(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

/// Returns the message of a panic.
pub(crate) fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(no message)").to_owned()
}
