//! The content blocks of a turn in the vendor's form.

use std::borrow::Cow;

use mainstem_http::Arguments;
use mainstem_message::{ContentBlock, DataSource, ToolCall, ToolResult, ToolState};
use serde::Serialize;
use serde_json::Value;

use crate::opaque::{REDACTED, SERVER, SIGNATURE, stored};

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Arguments<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Content<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
    },
    /// A block of one of the vendor's own tools, as the vendor sent it.
    #[serde(untagged)]
    Server(Value),
}

impl Block<'_> {
    pub(super) fn is_thinking(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::RedactedThinking { .. })
    }

    pub(super) fn is_result(&self) -> bool {
        matches!(self, Self::ToolResult { .. })
    }

    /// Returns the id of a call of one of the vendor's own tools.
    pub(super) fn server_call(&self) -> Option<&str> {
        let Self::Server(block) = self else { return None };
        block.get("id")?.as_str().filter(|_| block.get("input").is_some())
    }

    /// Returns the id of the call that a result of one of the vendor's own tools answers.
    pub(super) fn answers(&self) -> Option<&str> {
        let Self::Server(block) = self else { return None };
        block.get("tool_use_id")?.as_str()
    }
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

/// Data that the API has no form for: its media type.
#[derive(Debug)]
pub(super) struct Unsupported<'a>(pub(super) &'a str);

/// Returns a block of the user's; `None` for blocks that users do not have.
pub(super) fn user(block: &ContentBlock) -> Result<Option<Block<'_>>, Unsupported<'_>> {
    match block {
        ContentBlock::Text { text, .. } => Ok(text_block(text)),
        ContentBlock::Data { media_type, source, .. } => data(media_type, source).map(Some),
        _ => Ok(None),
    }
}

/// Returns a block of the model's; `None` for thinking that this vendor did not sign.
pub(super) fn assistant(block: &ContentBlock) -> Result<Option<Block<'_>>, Unsupported<'_>> {
    Ok(match block {
        ContentBlock::Text { text, .. } => text_block(text),
        ContentBlock::Thinking { thinking, opaque } => {
            let server = stored(opaque, SERVER).and_then(|block| serde_json::from_str(block).ok());
            let redacted = stored(opaque, REDACTED).map(|data| Block::RedactedThinking { data });
            let signed = stored(opaque, SIGNATURE).map(|signature| Block::Thinking { thinking, signature });
            server.map(Block::Server).or(redacted).or(signed)
        }
        ContentBlock::ToolCall(call) => Some(tool_use(call)),
        ContentBlock::Data { media_type, .. } => return Err(Unsupported(media_type)),
        _ => None,
    })
}

/// Returns a text, unless it is blank, which the API refuses.
fn text_block(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then(|| Block::Text { text: text.into() })
}

fn data<'a>(media_type: &'a str, source: &'a DataSource) -> Result<Block<'a>, Unsupported<'a>> {
    let is_image = match source {
        DataSource::Base64(_) => {
            matches!(media_type, "image/jpeg" | "image/png" | "image/gif" | "image/webp")
        }
        _ => media_type.starts_with("image/"),
    };
    let source = match source {
        DataSource::Base64(data) => Source::Base64 { media_type, data },
        DataSource::Url(url) => Source::Url { url },
        _ => return Err(Unsupported(media_type)),
    };
    match media_type {
        _ if is_image => Ok(Block::Image { source }),
        "application/pdf" => Ok(Block::Document { source }),
        _ => Err(Unsupported(media_type)),
    }
}

fn tool_use(call: &ToolCall) -> Block<'_> {
    Block::ToolUse { id: id(call.id.as_str()), name: &call.name, input: Arguments::of(&call.arguments) }
}

/// Returns a tool's result. Data is never an error here: the tool has run, and its data must not
/// stop the conversation.
pub(super) fn result(answer: &ToolResult) -> Block<'_> {
    let failed = failed(answer);
    let content = if !failed && answer.content.iter().any(is_data) {
        Content::Blocks(answer.content.iter().filter_map(shown).collect())
    } else {
        let said = Some(joined(&answer.content)).filter(|text| !text.trim().is_empty());
        Content::Text(said.unwrap_or_else(|| answer.state.as_str().into()))
    };
    let is_error = failed.then_some(true);
    Block::ToolResult { tool_use_id: id(answer.tool_call_id.as_str()), content, is_error }
}

/// Returns the data of a call that failed. The API refuses it in the result itself ("all content
/// must be type `text` if `is_error` is true").
pub(super) fn attached(answer: &ToolResult) -> impl Iterator<Item = Block<'_>> {
    let failed = failed(answer);
    answer.content.iter().filter(move |block| failed && is_data(block)).filter_map(shown)
}

fn failed(answer: &ToolResult) -> bool {
    matches!(answer.state, ToolState::Error | ToolState::Interrupted | ToolState::Denied)
}

fn is_data(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Data { .. })
}

fn shown(block: &ContentBlock) -> Option<Block<'_>> {
    user(block).unwrap_or_else(|Unsupported(media_type)| {
        Some(Block::Text { text: format!("({media_type} data that you cannot be shown)").into() })
    })
}

/// Returns the text blocks, joined; borrowed if there is only one.
pub(super) fn joined(blocks: &[ContentBlock]) -> Cow<'_, str> {
    let mut texts = blocks.iter().filter_map(ContentBlock::as_text);
    let first = Cow::Borrowed(texts.next().unwrap_or_default());
    texts.fold(first, |joined, text| joined + text)
}

/// Returns an id in the form that the API requires, `^[a-zA-Z0-9_-]+$`: calls may come from other
/// vendors.
fn id(id: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if id.is_empty() {
        return "_".into();
    }
    if id.chars().all(fits) {
        return id.into();
    }
    id.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}
