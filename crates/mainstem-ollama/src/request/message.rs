//! The conversation in the vendor's form.

use std::borrow::Cow;

use mainstem_http::Arguments;
use mainstem_message::{ContentBlock, DataSource, Message, Role, ToolCall, ToolResult};
use mainstem_model::ModelRequest;
use serde::Serialize;

#[derive(Debug, Default, Serialize)]
pub(super) struct Turn<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    thinking: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    /// Unknown to older versions, which use the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    index: usize,
    name: &'a str,
    arguments: Arguments<'a>,
}

/// Returns the instructions and all messages. Fails with what the API has no form for, and its
/// place.
pub(super) fn messages(request: &ModelRequest) -> Result<Vec<Turn<'_>>, String> {
    let system = request.system.iter().map(|system| Turn {
        role: "system",
        content: (&**system).into(),
        ..Turn::default()
    });
    let mut turns: Vec<_> = system.collect();
    for (at, message) in request.messages.iter().enumerate() {
        turns.extend(message.tool_results().map(result));
        turns.extend(
            turn(message).map_err(|(block, what)| {
                format!(
                    "takes images in base64 and no other data, but block {} of message {} is {what}; send it as text, or leave it out",
                    block + 1,
                    at + 1,
                )
            })?,
        );
    }
    Ok(turns)
}

/// Returns a message without its results of tools; `None` if it is empty.
fn turn(message: &Message) -> Result<Option<Turn<'_>>, (usize, String)> {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => return Ok(None),
    };
    let tool_calls: Vec<_> = message.tool_calls().enumerate().map(call).collect();
    let (content, images) = (text(&message.content), images(&message.content)?);
    if content.is_empty() && images.is_empty() && tool_calls.is_empty() {
        return Ok(None);
    }
    Ok(Some(Turn { role, content, thinking: thinking(message), images, tool_calls, ..Turn::default() }))
}

fn result(result: &ToolResult) -> Turn<'_> {
    let (mut content, mut images) = (text(&result.content), Vec::new());
    for block in &result.content {
        match image(block) {
            None => {}
            Some(Ok(image)) => images.push(image),
            // The tool has run; its data must not stop the conversation.
            Some(Err(_)) => {
                content += if content.is_empty() { "" } else { "\n" };
                content += "(data omitted: unsupported type)";
            }
        }
    }
    if content.is_empty() {
        content = result.state.as_str().into();
    }
    let (tool_name, tool_call_id) = (Some(&*result.name), Some(result.tool_call_id.as_str()));
    Turn { role: "tool", content, images, tool_name, tool_call_id, ..Turn::default() }
}

/// Returns all images, or the place of the first block with other data, and its type.
fn images(blocks: &[ContentBlock]) -> Result<Vec<&str>, (usize, String)> {
    let images = blocks.iter().enumerate().filter_map(|(at, block)| Some((at, image(block)?)));
    images.map(|(at, image)| image.map_err(|what| (at, what))).collect()
}

/// Returns the image of a data block, or its type.
fn image(block: &ContentBlock) -> Option<Result<&str, String>> {
    let ContentBlock::Data { media_type, source, .. } = block else { return None };
    Some(match source {
        DataSource::Base64(image) if media_type.starts_with("image/") => Ok(image),
        DataSource::Base64(_) => Err(media_type.clone()),
        _ => Err(format!("{media_type} at a URL")),
    })
}

/// Returns the text blocks, joined; borrowed if there is only one.
fn text(blocks: &[ContentBlock]) -> Cow<'_, str> {
    join(blocks.iter().filter_map(ContentBlock::as_text))
}

/// Returns the thinking, of any vendor: Ollama needs no signature.
fn thinking(message: &Message) -> Cow<'_, str> {
    join(message.content.iter().filter_map(|block| match block {
        ContentBlock::Thinking { thinking, .. } => Some(thinking.as_str()),
        _ => None,
    }))
}

fn join<'a>(mut texts: impl Iterator<Item = &'a str>) -> Cow<'a, str> {
    let first = Cow::Borrowed(texts.next().unwrap_or_default());
    texts.fold(first, |joined, text| joined + text)
}

fn call((index, call): (usize, &ToolCall)) -> Call<'_> {
    let function = Function { index, name: &call.name, arguments: Arguments::of(&call.arguments) };
    Call { id: call.id.as_str(), kind: "function", function }
}
