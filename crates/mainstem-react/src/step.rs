//! What comes next: decided from what was said, without waiting.

use mainstem_event::Outcome;
use mainstem_message::{Message, StopReason, ToolCall};

use crate::AgentError;

/// What the loop does next.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Ask the model.
    Ask,
    /// Run the tools that it called, then ask again.
    Act(Vec<ToolCall>),
    /// Say that there was no answer, then ask again.
    Remind,
    /// Say that the limit is reached, then ask once more, without tools.
    SumUp,
    /// The answer is there.
    Finish(Outcome),
    /// There will be none.
    Fail(AgentError),
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Model calls so far.
    pub(crate) calls: u32,
    /// Empty answers in a row.
    pub(crate) empty: u32,
    /// Whether the last call was the one without tools.
    pub(crate) summed_up: bool,
}

/// How often an empty answer is asked for again.
const REMINDERS: u32 = 2;

/// After an answer.
pub(crate) fn after_answer(progress: Progress, answer: &Message, stop: &StopReason) -> Step {
    let calls: Vec<_> = answer.tool_calls().cloned().collect();
    let is_empty = answer.text().trim().is_empty() && !has_data(answer);
    match stop {
        _ if progress.summed_up => Step::Finish(Outcome::MaxIterations),
        _ if !calls.is_empty() => Step::Act(calls),
        StopReason::ContentFilter if is_empty => Step::Fail(AgentError::Filtered),
        _ if !is_empty => Step::Finish(Outcome::Success),
        _ if progress.empty >= REMINDERS => Step::Fail(AgentError::EmptyReply),
        _ => Step::Remind,
    }
}

/// Before a further model call.
pub(crate) fn before_call(progress: Progress, max_iterations: u32) -> Step {
    if progress.calls >= max_iterations && !progress.summed_up { Step::SumUp } else { Step::Ask }
}

fn has_data(answer: &Message) -> bool {
    answer.content.iter().any(|block| matches!(block, mainstem_message::ContentBlock::Data { .. }))
}

#[cfg(test)]
mod tests;
