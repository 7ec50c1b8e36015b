//! The v1 view: message-level events, a pure projection of [`AgentEvent`](crate::AgentEvent)s.

mod projector;

use std::sync::Arc;

use mainstem_message::{Failure, Message};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::projector::Projector;
use crate::EventSource;

/// Something said, at the level of messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Event {
    /// What sort.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// The piece, or the whole so far, or the complete message: see [`StreamOptions::incremental`]
    /// and `is_last`.
    pub message: Arc<Message>,
    /// Whether the message is complete.
    pub is_last: bool,
    /// Why the invocation has no answer. Set on the `AGENT_RESULT` of an invocation that failed or
    /// was cancelled; its message is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Who said it; absent for the agent whose stream this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Arc<EventSource>>,
}

/// The sorts of [`Event`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum EventType {
    /// The model's prose, thinking and tool calls.
    Reasoning,
    /// What a tool answered.
    ToolResult,
    /// What the harness put into the conversation.
    Hint,
    /// The answer of the invocation, or why there is none; always its last.
    AgentResult,
    /// The model's prose of the last call, after the limit of iterations.
    Summary,
}

/// Which v1 events a reader wants, and in what form.
///
/// ```
/// use mainstem_event::{EventType, StreamOptions};
///
/// let mut options = StreamOptions::default();
/// options.event_types = Some(vec![EventType::AgentResult]);
/// options.include_reasoning_chunk = false;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StreamOptions {
    /// Which types; `None` is all.
    pub event_types: Option<Vec<EventType>>,
    /// `true`: a piece carries what is new. `false`: it carries the text so far.
    pub incremental: bool,
    /// Pieces of reasoning.
    pub include_reasoning_chunk: bool,
    /// The complete message of a reasoning turn.
    pub include_reasoning_result: bool,
    /// Pieces of a tool's output.
    pub include_acting_chunk: bool,
    /// Pieces of a summary.
    pub include_summary_chunk: bool,
    /// The complete summary.
    pub include_summary_result: bool,
}

impl Default for StreamOptions {
    /// Everything, in pieces.
    fn default() -> Self {
        Self {
            event_types: None,
            incremental: true,
            include_reasoning_chunk: true,
            include_reasoning_result: true,
            include_acting_chunk: true,
            include_summary_chunk: true,
            include_summary_result: true,
        }
    }
}

impl StreamOptions {
    fn wants(&self, kind: EventType, is_last: bool) -> bool {
        let asked = self.event_types.as_ref().is_none_or(|types| types.contains(&kind));
        asked
            && match (kind, is_last) {
                (EventType::Reasoning, false) => self.include_reasoning_chunk,
                (EventType::Reasoning, true) => self.include_reasoning_result,
                (EventType::ToolResult, false) => self.include_acting_chunk,
                (EventType::Summary, false) => self.include_summary_chunk,
                (EventType::Summary, true) => self.include_summary_result,
                (EventType::ToolResult | EventType::Hint | EventType::AgentResult, _) => true,
            }
    }
}

#[cfg(test)]
mod tests;
