//! The content of messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{DataId, SessionId, ToolCall, ToolResult};

/// What a vendor wants back unread: signatures, encrypted reasoning.
pub type Opaque = Map<String, Value>;

/// One part of a [`Message`](crate::Message).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Prose.
    Text {
        /// The text.
        text: String,
        /// What the vendor wants back with this block.
        #[serde(default, skip_serializing_if = "Opaque::is_empty")]
        opaque: Opaque,
    },
    /// Reasoning that the model showed before its answer.
    Thinking {
        /// The text; empty when the vendor keeps it to itself.
        thinking: String,
        /// The vendor's signature or encrypted form.
        #[serde(default, skip_serializing_if = "Opaque::is_empty")]
        opaque: Opaque,
    },
    /// An image, sound or file.
    Data {
        /// The media type, such as `image/png`.
        media_type: String,
        /// Where the bytes are.
        source: DataSource,
        /// What the vendor wants back with this block.
        #[serde(default, skip_serializing_if = "Opaque::is_empty")]
        opaque: Opaque,
    },
    /// The model asks for a tool.
    ToolCall(ToolCall),
    /// What a tool answered.
    ToolResult(ToolResult),
}

/// Where the bytes of a [`ContentBlock::Data`] are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DataSource {
    /// In the message itself, base64 (RFC 4648, padded).
    Base64(String),
    /// At an address that the model's service fetches.
    Url(String),
    /// Beside the events of the session, once, however often messages refer to it.
    Stored(StoredData),
}

/// Refers to data that is stored beside the events of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct StoredData {
    /// The SHA-256 of the bytes in hexadecimal digits.
    pub sha256: DataId,
    /// How many bytes there are.
    pub bytes: u64,
}

impl StoredData {
    /// Creates a reference.
    pub fn new(sha256: DataId, bytes: u64) -> Self {
        Self { sha256, bytes }
    }

    /// Returns the path at which a server returns it.
    pub fn path(&self, session: &SessionId) -> String {
        format!("/v1/sessions/{session}/data/{}", self.sha256)
    }
}

impl ContentBlock {
    /// Creates a text block.
    ///
    /// ```
    /// use mainstem_message::{ContentBlock, DataSource, Message, Opaque, Role};
    ///
    /// let image = ContentBlock::Data {
    ///     media_type: "image/png".to_owned(),
    ///     source: DataSource::Url("https://example.com/plan.png".to_owned()),
    ///     opaque: Opaque::new(),
    /// };
    /// let text = ContentBlock::text("What is missing?");
    /// let question = Message::new(Role::User, vec![text, image]);
    /// assert_eq!(question.text(), "What is missing?");
    /// ```
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), opaque: Opaque::new() }
    }

    /// Creates a thinking block.
    pub fn thinking(thinking: impl Into<String>) -> Self {
        Self::Thinking { thinking: thinking.into(), opaque: Opaque::new() }
    }

    /// Returns the text, if this is a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }
}
