//! Why a run has no reply, or was not begun.

use mainstem_event::{CancelReason, Outcome};
use mainstem_message::{Message, RunId};
use mainstem_react::{AgentError, RunOutcome};

/// A run that gave no full reply.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The run was cancelled.
    #[error("the run was {0}")]
    Cancelled(CancelReason),
    /// The limit of iterations was reached.
    #[error("the run reached its limit of iterations")]
    #[non_exhaustive]
    Limit {
        /// What the agent made of what it had.
        answer: Option<Box<Message>>,
    },
    /// The reply is not what the caller's type holds, or that type has no schema.
    #[error("no {what} in the reply: {why}")]
    Output {
        /// The caller's type.
        what: &'static str,
        /// Why, with the place if the reply was read.
        why: String,
    },
    /// The run has succeeded without a reply: it only compacts the conversation.
    #[error("the run compacts the conversation, and has no reply")]
    NoReply,
    /// The agent failed.
    #[error(transparent)]
    Agent(AgentError),
}

/// Another run of the session is active.
///
/// ```
/// use std::sync::Arc;
///
/// use mainstem_model::ScriptedModel;
/// use mainstem_react::Agent;
/// use mainstem_session::{RunActive, RunAgents, Session};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agents = RunAgents::new(Agent::builder("main", ScriptedModel::new()).build()?);
/// let session = Session::builder(Arc::new(agents)).build();
/// let first = session.run("Hi")?;
/// let second: Result<_, RunActive> = session.run("Hi again"); // `queue` would wait
/// assert!(second.is_err());
/// # drop(first);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another run of the session is active{}; wait for its end or cancel it", named(.run))]
#[non_exhaustive]
pub struct RunActive {
    /// The active run; `None` if it has just begun or ended.
    pub run: Option<RunId>,
}

fn named(run: &Option<RunId>) -> String {
    run.as_ref().map(|run| format!(" (`{run}`)")).unwrap_or_default()
}

/// Why no turn of a session can be taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NothingToResume {
    /// Nothing was said in it yet.
    #[error("the session has no turn yet")]
    New,
    /// The latest turn has its answer.
    #[error("the latest turn of the session has its answer")]
    Answered,
    /// It goes on already.
    #[error("a run of the session is active")]
    Active,
}

/// The reply of a run, or why there is none.
pub(crate) fn reply(outcome: RunOutcome) -> Result<Message, RunError> {
    let answer = outcome.answer.map(std::sync::Arc::unwrap_or_clone);
    match (outcome.outcome, answer, outcome.error) {
        (Outcome::Success, Some(answer), _) => Ok(answer),
        (Outcome::MaxIterations, answer, _) => Err(RunError::Limit { answer: answer.map(Box::new) }),
        (Outcome::Cancelled, _, Some(AgentError::Cancelled(reason))) => Err(RunError::Cancelled(reason)),
        (_, _, Some(error)) => Err(RunError::Agent(error)),
        (Outcome::Success, None, None) => Err(RunError::NoReply),
        (_, _, None) => Err(RunError::Agent(AgentError::EmptyReply)),
    }
}
