//! A server's answer as a tool's output.

use mainstem_message::{ContentBlock, DataSource};
use mainstem_tool::{ToolOutput, ToolState};
use rmcp::model::{CallToolResult, ContentBlock as Said, ResourceContents};

/// Text stays text, images and sounds are data. Resources are text or data under their URI, and
/// links a line each. Structured content is used only if the result has nothing else: the
/// protocol asks servers to send it as text, too.
pub(crate) fn output(result: CallToolResult) -> ToolOutput {
    let mut content: Vec<_> = result.content.into_iter().map(block).collect();
    if let (true, Some(value)) = (content.is_empty(), result.structured_content) {
        content.push(ContentBlock::text(value.to_string()));
    }
    let state = if result.is_error == Some(true) { ToolState::Error } else { ToolState::Success };
    ToolOutput::new(separated(content)).with_state(state)
}

fn block(said: Said) -> ContentBlock {
    match said {
        Said::Text(text) => ContentBlock::text(text.text),
        Said::Image(image) => data(image.mime_type, image.data),
        Said::Audio(audio) => data(audio.mime_type, audio.data),
        Said::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                ContentBlock::text(format!("{uri}:\n{text}"))
            }
            ResourceContents::BlobResourceContents { mime_type, blob, .. } => {
                data(mime_type.unwrap_or_else(|| "application/octet-stream".to_owned()), blob)
            }
            _ => ContentBlock::text("[a resource in a form that is not known here]"),
        },
        Said::ResourceLink(link) => {
            let what = link.description.as_deref().unwrap_or_default();
            ContentBlock::text(format!("{} {} {what}", link.name, link.uri).trim_end().to_owned())
        }
        _ => ContentBlock::text("[content of a kind that is not known here]"),
    }
}

fn data(media_type: String, base64: String) -> ContentBlock {
    ContentBlock::Data { media_type, source: DataSource::Base64(base64), opaque: Default::default() }
}

/// Ends each text with an empty line: a server's texts are paragraphs, and here texts are joined.
fn separated(mut content: Vec<ContentBlock>) -> Vec<ContentBlock> {
    let texts = content.iter_mut().filter_map(|block| match block {
        ContentBlock::Text { text, .. } => Some(text),
        _ => None,
    });
    let mut texts: Vec<_> = texts.collect();
    texts.pop();
    for text in texts {
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    content
}

#[cfg(test)]
mod tests;
