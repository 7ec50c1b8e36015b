//! The size of a request in bytes, from which its tokens are estimated.

use mainstem_message::{ContentBlock, DataSource, Message, ToolSpec};
use serde_json::Value;

use crate::ModelRequest;

/// What an image counts as. Services count pixels, not bytes, and scale large images down: to about
/// 1,600 tokens at Anthropic, half of that at OpenAI.
const IMAGE: usize = 6_400;

/// How many bytes of a document count as one: a page of some 60 KB has 1,500 to 3,000 tokens, its
/// text and its picture.
const DOCUMENT: usize = 5;

/// The same for sound and video: a second of 16 KB has 10 to 32 tokens.
const RECORDING: usize = 125;

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
        ContentBlock::Data { media_type, source, .. } => of_data(media_type, source),
        ContentBlock::ToolCall(call) => call.name.len() + call.arguments.len(),
        ContentBlock::ToolResult(result) => {
            result.name.len() + result.content.iter().map(of_block).sum::<usize>()
        }
        _ => 0,
    }
}

fn of_data(media_type: &str, source: &DataSource) -> usize {
    let bytes = match source {
        // Base64 has four digits for three bytes.
        DataSource::Base64(data) => data.len() / 4 * 3,
        DataSource::Stored(data) => usize::try_from(data.bytes).unwrap_or(usize::MAX),
        // Of unknown length, as a page or two.
        _ => IMAGE * DOCUMENT,
    };
    match media_type.split('/').next() {
        Some("image") => IMAGE,
        Some("text") => bytes,
        Some("audio" | "video") => bytes / RECORDING,
        _ => bytes / DOCUMENT,
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

#[cfg(test)]
mod tests {
    use mainstem_message::Opaque;

    use super::*;

    #[track_caller]
    fn check(media_type: &str, bytes: usize, tokens: std::ops::RangeInclusive<usize>) {
        let source = DataSource::Base64("A".repeat(bytes / 3 * 4));
        let block = ContentBlock::Data { media_type: media_type.to_owned(), source, opaque: Opaque::new() };
        let size = of_block(&block) / 4;
        assert!(tokens.contains(&size), "{media_type} of {bytes} bytes: {size} tokens");
    }

    #[test]
    fn data_counts_as_what_services_make_of_it() {
        check("image/png", 3_000_000, 1_600..=1_600);
        // Twenty pages; ten minutes of speech.
        check("application/pdf", 1_200_000, 30_000..=60_000);
        check("audio/mpeg", 9_600_000, 6_000..=20_000);
        check("text/csv", 40_000, 9_000..=10_000);
    }
}
