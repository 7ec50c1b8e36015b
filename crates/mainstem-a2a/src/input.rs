//! Messages of clients as inputs of runs, and back.

use a2a::{Part, PartContent};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use mainstem_message::{ContentBlock, DataSource, Message, MessageId, Role};

/// The media type of bytes that have none.
const BYTES: &str = "application/octet-stream";

/// Returns a client's message as the input of a run; `None` if it is not a user's. JSON becomes
/// text; the names of files are lost.
pub fn from_message(message: &a2a::Message) -> Option<Message> {
    if message.role != a2a::Role::User {
        return None;
    }
    let input = Message::new(Role::User, message.parts.iter().map(block).collect());
    Some(match message.message_id.parse::<MessageId>() {
        Ok(id) => input.with_id(id),
        Err(_) => input,
    })
}

fn block(part: &Part) -> ContentBlock {
    let media_type = || part.media_type.clone().unwrap_or_else(|| BYTES.to_owned());
    let data = |source| ContentBlock::Data { media_type: media_type(), source, opaque: Default::default() };
    match &part.content {
        PartContent::Text(text) => ContentBlock::text(text),
        PartContent::Data(json) => ContentBlock::text(json.to_string()),
        PartContent::Raw(bytes) => data(DataSource::Base64(BASE64_STANDARD.encode(bytes))),
        PartContent::Url(url) => data(DataSource::Url(url.clone())),
    }
}

/// Returns the input of a run as a message of the task's history.
pub(crate) fn to_message(input: &Message, task: &str, context: &str, number: usize) -> a2a::Message {
    let id = input.id.as_ref().map_or_else(|| format!("{task}.input.{number}"), ToString::to_string);
    a2a::Message {
        message_id: id,
        context_id: Some(context.to_owned()),
        task_id: Some(task.to_owned()),
        role: a2a::Role::User,
        parts: input.content.iter().filter_map(|block| part(block, context)).collect(),
        metadata: None,
        extensions: None,
        reference_task_ids: None,
    }
}

/// Returns a part; data that is stored has its path at the server.
fn part(block: &ContentBlock, context: &str) -> Option<Part> {
    match block {
        ContentBlock::Text { text, .. } => Some(Part::text(text)),
        ContentBlock::Data { media_type, source: DataSource::Base64(text), .. } => {
            Some(Part::raw(BASE64_STANDARD.decode(text).ok()?).with_media_type(media_type))
        }
        ContentBlock::Data { media_type, source: DataSource::Url(url), .. } => {
            Some(Part::url(url).with_media_type(media_type))
        }
        ContentBlock::Data { media_type, source: DataSource::Stored(data), .. } => {
            Some(Part::url(data.path(&context.parse().ok()?)).with_media_type(media_type))
        }
        _ => None,
    }
}
