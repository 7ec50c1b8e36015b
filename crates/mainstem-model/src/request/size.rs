//! The size of a request in bytes, from which its tokens are estimated.

use mainstem_message::{ContentBlock, DataSource, Message, ToolSpec};
use serde_json::Value;

use crate::ModelRequest;

/// What an image counts as. Services count pixels, not bytes, and scale large images down: to about
/// 1,600 tokens at Anthropic, half of that at OpenAI.
const IMAGE: usize = 6_400;

impl ModelRequest {
    /// Returns about as many bytes as its instructions, messages and tools have when written. Text
    /// has about four bytes a token.
    #[must_use]
    pub fn size(&self) -> usize {
        let system = self.system.as_ref().map_or(0, |text| text.len());
        let messages: usize = self.messages.iter().map(|message| size_of(message)).sum();
        system.saturating_add(messages).saturating_add(self.tools.iter().map(size_of_tool).sum())
    }
}

/// Returns about as many bytes as the content of a message has when written.
#[must_use]
pub fn size_of(message: &Message) -> usize {
    message.content.iter().map(of_block).sum()
}

fn of_block(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text { text, .. } => text.len(),
        ContentBlock::Thinking { thinking, .. } => thinking.len(),
        ContentBlock::Data { media_type, .. } if media_type.starts_with("image/") => IMAGE,
        ContentBlock::Data { source: DataSource::Base64(data) | DataSource::Url(data), .. } => data.len(),
        // Base64 has four digits for three bytes.
        ContentBlock::Data { source: DataSource::Stored(data), .. } => data.bytes as usize / 3 * 4,
        ContentBlock::ToolCall(call) => call.name.len() + call.arguments.len(),
        ContentBlock::ToolResult(result) => {
            result.name.len() + result.content.iter().map(of_block).sum::<usize>()
        }
        _ => 0,
    }
}

/// Returns about as many bytes as a tool has when written.
#[must_use]
pub fn size_of_tool(tool: &ToolSpec) -> usize {
    tool.name.len() + tool.description.len() + of_json(&tool.parameters)
}

fn of_json(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| of_json(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(key, value)| key.len() + 4 + of_json(value)).sum::<usize>()
        }
    }
}
