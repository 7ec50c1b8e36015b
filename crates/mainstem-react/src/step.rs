//! Decides what the loop does next, without waiting.

use mainstem_event::Outcome;
use mainstem_message::{Message, StopReason, ToolCall};

use crate::AgentError;

/// The next step of the loop.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Call the model.
    Ask,
    /// Run the tools that it called, then call it again.
    Act(Vec<ToolCall>),
    /// Call the model again, which goes on with its answer.
    GoOn,
    /// Remind the model to answer, then call it again.
    Remind,
    /// Tell the model that the limit is reached, then call it once more, without tools.
    SumUp,
    /// End with an answer.
    Finish(Outcome),
    /// End without one.
    Fail(AgentError),
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Model calls so far.
    pub(crate) calls: u32,
    /// Empty answers in a row.
    pub(crate) empty: u32,
    /// Whether the last call was the one without tools.
    pub(crate) summed_up: bool,
}

/// How many reminders follow empty answers in a row.
const REMINDERS: u32 = 2;

/// Decides after an answer.
pub(crate) fn after_answer(progress: Progress, answer: &Message, stop: &StopReason) -> Step {
    let calls: Vec<_> = answer.tool_calls().cloned().collect();
    let is_empty = answer.text().trim().is_empty() && !has_data(answer);
    match stop {
        _ if progress.summed_up => Step::Finish(Outcome::MaxIterations),
        _ if !calls.is_empty() => Step::Act(calls),
        StopReason::Paused => Step::GoOn,
        StopReason::ContentFilter => Step::Fail(AgentError::Filtered),
        StopReason::Refusal => Step::Fail(AgentError::Declined { said: answer.text().trim().into() }),
        _ if !is_empty => Step::Finish(Outcome::Success),
        _ if progress.empty >= REMINDERS => Step::Fail(AgentError::EmptyReply),
        _ => Step::Remind,
    }
}

/// Decides before a further model call.
pub(crate) fn before_call(progress: Progress, max_iterations: u32) -> Step {
    if progress.calls >= max_iterations && !progress.summed_up { Step::SumUp } else { Step::Ask }
}

fn has_data(answer: &Message) -> bool {
    answer.content.iter().any(|block| matches!(block, mainstem_message::ContentBlock::Data { .. }))
}

#[cfg(test)]
mod tests;
