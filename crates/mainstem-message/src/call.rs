//! Tools as models see them: specs, calls, results.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ContentBlock, Opaque, ToolCallId};

/// The description of a tool for a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name that the model calls.
    pub name: String,
    /// What the tool does and when to use it.
    pub description: String,
    /// JSON Schema (2020-12) of the arguments, an object; shared, because a spec is cloned into
    /// each request.
    pub parameters: Arc<Value>,
}

impl ToolSpec {
    /// Creates a spec from its parts.
    ///
    /// ```
    /// use mainstem_message::ToolSpec;
    /// use serde_json::json;
    ///
    /// let query = json!({ "type": "string" });
    /// let parameters = json!({ "type": "object", "properties": { "query": query } });
    /// let spec = ToolSpec::new("search", "Searches the corpus", parameters);
    /// assert_eq!(spec.name, "search");
    /// ```
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self { name: name.into(), description: description.into(), parameters: Arc::new(parameters) }
    }
}

/// A model's request to run a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The vendor's id, or ours where it gives none; unique within a reply.
    pub id: ToolCallId,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them: JSON, if it wrote well.
    pub arguments: String,
    /// What the vendor wants back with this call.
    #[serde(default, skip_serializing_if = "Opaque::is_empty")]
    pub opaque: Opaque,
}

impl ToolCall {
    /// Creates a call with the arguments as raw JSON text.
    ///
    /// ```
    /// use mainstem_message::ToolCall;
    ///
    /// let call = ToolCall::new("call-1", "search", r#"{"query": "rust"}"#);
    /// assert_eq!(call.parsed_arguments()?["query"], "rust");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn new(id: impl Into<ToolCallId>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into(), opaque: Opaque::new() }
    }

    /// Returns the arguments as JSON. An empty text reads as `{}`, which is what models write for a
    /// tool without parameters.
    ///
    /// # Errors
    /// If the text is not JSON, with line and column.
    pub fn parsed_arguments(&self) -> Result<Value, serde_json::Error> {
        if self.arguments.trim().is_empty() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        serde_json::from_str(&self.arguments)
    }
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The call that this answers.
    pub tool_call_id: ToolCallId,
    /// The tool's name.
    pub name: String,
    /// Text and data, in order.
    pub content: Vec<ContentBlock>,
    /// How it went.
    pub state: ToolState,
}

impl ToolResult {
    /// Returns the text blocks, joined.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(ContentBlock::as_text).collect()
    }
}

/// How a tool call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolState {
    /// It did what it was asked.
    Success,
    /// It failed; the text says why.
    Error,
    /// It was cut off before it ended.
    Interrupted,
    /// A rule or a person refused it.
    Denied,
    /// The call has ended, its work goes on in the background.
    Running,
}

impl ToolState {
    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Interrupted => "interrupted",
            Self::Denied => "denied",
            Self::Running => "running",
        }
    }
}
