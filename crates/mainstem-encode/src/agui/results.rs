//! The result of a tool call, which our events have in pieces and AG-UI as a whole.

use mainstem_message::{ContentBlock, DataSource};
use serde_json::{Value, json};

/// The most text of a result that a stream shows, in bytes. The results of our own tools are
/// shorter; those of agents on other machines may not be.
const MAX_TEXT: usize = 256 << 10;

/// The parts of a result so far.
#[derive(Debug, Default)]
pub(super) struct ResultParts {
    text: String,
    data: Vec<Value>,
    size: usize,
    /// Bytes that are left out.
    left_out: usize,
}

impl ResultParts {
    pub(super) fn push_text(&mut self, text: &str) {
        let room = text.floor_char_boundary(MAX_TEXT.saturating_sub(self.size));
        let (shown, rest) = text.split_at(room);
        self.text.push_str(shown);
        self.size += shown.len();
        self.left_out += rest.len();
    }

    /// Adds a part that is not text; returns `false` if it has no place in a result.
    pub(super) fn push_data(&mut self, block: &ContentBlock) -> bool {
        let part = match block {
            ContentBlock::Text { text, .. } => {
                self.push_text(text);
                return true;
            }
            ContentBlock::Data { media_type, source, .. } => part(media_type, source),
            _ => None,
        };
        let Some(part) = part else { return false };
        let size = part.to_string().len();
        if self.size + size > MAX_TEXT {
            return false;
        }
        self.size += size;
        self.data.push(part);
        true
    }

    /// Returns the content: a text, or parts if there is more than text.
    pub(super) fn content(mut self) -> Value {
        if self.left_out > 0 {
            self.text.push_str(&format!("\n[{} more bytes are left out here]", self.left_out));
        }
        if self.data.is_empty() {
            return self.text.into();
        }
        if !self.text.is_empty() {
            self.data.insert(0, json!({ "type": "text", "text": self.text }));
        }
        self.data.into()
    }
}

fn part(media_type: &str, source: &DataSource) -> Option<Value> {
    let source = match source {
        DataSource::Base64(bytes) => json!({ "type": "data", "value": bytes, "mimeType": media_type }),
        DataSource::Url(url) => json!({ "type": "url", "value": url, "mimeType": media_type }),
        _ => return None,
    };
    let kind = media_type.split('/').next().filter(|kind| ["image", "audio", "video"].contains(kind));
    let kind = kind.unwrap_or("document");
    Some(json!({ "type": kind, "source": source }))
}
