//! A message of a conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ContentBlock, MessageId, ToolCall, ToolResult};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "every vendor maps exactly these")]
pub enum Role {
    /// Instructions.
    System,
    /// The person, or the agent that delegates.
    User,
    /// The model.
    Assistant,
    /// Results of tools.
    Tool,
}

/// A message: who speaks, and what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Message {
    /// Absent if no reference to the message is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<MessageId>,
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub content: Vec<ContentBlock>,
}

impl Message {
    /// Creates a message without an id.
    pub fn new(role: Role, content: Vec<ContentBlock>) -> Self {
        Self { id: None, role, content }
    }

    /// Creates a person's text.
    ///
    /// ```
    /// use mainstem_message::{Message, Role};
    ///
    /// let question = Message::user("What is 2 + 3?");
    /// assert_eq!((question.role, question.text()), (Role::User, "What is 2 + 3?".to_owned()));
    /// // Where a message is taken, a text is one of the user.
    /// assert_eq!(Message::from("What is 2 + 3?"), question);
    /// ```
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![ContentBlock::text(text)])
    }

    /// Creates a model's text.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![ContentBlock::text(text)])
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(mut self, id: MessageId) -> Self {
        self.id = Some(id);
        self
    }

    /// Returns the text blocks, joined; thinking, tool calls and tool results are not text. See
    /// [`tool_text`](Self::tool_text) for the latter.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(ContentBlock::as_text).collect()
    }

    /// Returns the text of the tool results, in order, with a line break between two; empty if the
    /// message has none. Images and other data of a result are not text.
    ///
    /// ```
    /// use mainstem_message::{ContentBlock, Message, Role, ToolResult, ToolState};
    ///
    /// let result = |name: &str, text: &str| {
    ///     ContentBlock::ToolResult(ToolResult {
    ///         tool_call_id: format!("call-{name}").into(),
    ///         name: name.to_owned(),
    ///         content: vec![ContentBlock::text(text)],
    ///         state: ToolState::Success,
    ///     })
    /// };
    /// let results = vec![result("clock", "12:00"), result("date", "1 May")];
    /// let message = Message::new(Role::Tool, results);
    /// assert_eq!(message.tool_text(), "12:00\n1 May");
    /// assert_eq!(message.text(), "");
    /// ```
    pub fn tool_text(&self) -> String {
        self.tool_results().map(ToolResult::text).collect::<Vec<_>>().join("\n")
    }

    /// Returns the tool calls, in the order in which the model made them.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            ContentBlock::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the tool results, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.content.iter().filter_map(|block| match block {
            ContentBlock::ToolResult(result) => Some(result),
            _ => None,
        })
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::user(text)
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::user(text)
    }
}
