//! Which messages of a conversation stay, and in what form. Pure.

use std::sync::Arc;

use mainstem_message::{ContentBlock, DataSource, Message, Role, ToolResult};
use mainstem_model::size_of;

use super::text;
use crate::data::{MAX_LOADED, blocks, blocks_mut};

/// What becomes of the messages before the latest ones.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Older {
    /// The notes of an earlier compaction.
    pub(super) notes: String,
    /// Messages to summarize, as text.
    pub(super) messages: Vec<String>,
    /// Results that stay whole.
    pub(super) retained: Vec<String>,
}

/// Returns the size of messages in bytes.
pub(super) fn size(messages: &[Arc<Message>]) -> usize {
    messages.iter().map(|message| size_of(message)).sum()
}

/// Returns the input of a turn with the request that it works on: an input of reminders only, or
/// none, continues the turn before it. Its request is all that the user has said since the answer
/// before, also while the agent worked.
pub(super) fn with_request(history: &[Arc<Message>], input: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    if !input.iter().all(|message| text::is_of_harness(message)) {
        return input;
    }
    let is_answer = |message: &Message| {
        let has_calls = message.content.iter().any(|block| matches!(block, ContentBlock::ToolCall(_)));
        message.role == Role::Assistant && !has_calls
    };
    let mut request = Vec::new();
    for message in history.iter().rev() {
        if message.role == Role::User && !text::is_of_harness(message) {
            request.push(message.clone());
        } else if is_answer(message) && !request.is_empty() {
            break;
        }
    }
    request.reverse();
    request.into_iter().chain(input).collect()
}

/// Returns the index of the first of the latest messages, which have up to `bytes` bytes. They
/// begin with a message of the user or the model, because a result needs its call. The last such
/// message is always one of them.
pub(super) fn boundary(messages: &[Arc<Message>], bytes: usize) -> usize {
    let mut left = bytes;
    let mut first = messages.len();
    for (index, message) in messages.iter().enumerate().rev() {
        match left.checked_sub(size_of(message)) {
            Some(less) => left = less,
            None if first < messages.len() => break,
            None => left = 0,
        }
        if message.role != Role::Tool {
            first = index;
        }
    }
    first
}

/// Returns the messages with the results of tools shortened to `bytes` bytes each, except those
/// that last.
pub(super) fn with_short_results(
    messages: &[Arc<Message>],
    bytes: usize,
    is_lasting: impl Fn(&str) -> bool,
) -> Vec<Arc<Message>> {
    let short = |message: &Arc<Message>| {
        let is_long = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult(result) if !is_lasting(&result.name));
        if message.role != Role::Tool || !message.content.iter().any(is_long) || size_of(message) <= bytes {
            return message.clone();
        }
        let mut message = Message::clone(message);
        for block in &mut message.content {
            if let ContentBlock::ToolResult(result) = block
                && !is_lasting(&result.name)
            {
                shorten(result, bytes);
            }
        }
        Arc::new(message)
    };
    messages.iter().map(short).collect()
}

fn shorten(result: &mut ToolResult, bytes: usize) {
    if let Some(text) = text::shortened(&result.text(), bytes) {
        result.content.retain(|block| block.as_text().is_none());
        result.content.insert(0, ContentBlock::text(text));
    }
    result.content.iter_mut().for_each(|block| remove_data(block, SPACE));
}

/// Returns the messages without the older half of their data, in bytes; `None` if only the messages
/// of `input` have any, which keep it.
pub(super) fn with_less_data(messages: &[Arc<Message>], input: &[Arc<Message>]) -> Option<Vec<Arc<Message>>> {
    let data = |message: &Arc<Message>| if is_one_of(message, input) { 0 } else { data_of(message) };
    let mut left: u64 = messages.iter().map(data).sum();
    if left == 0 {
        return None;
    }
    // What is beyond the limit was not sent.
    let most = left.min(MAX_LOADED) / 2;
    let less = |message: &Arc<Message>| {
        let bytes = data(message);
        if bytes == 0 || left <= most {
            return message.clone();
        }
        left -= bytes;
        let mut message = Message::clone(message);
        blocks_mut(&mut message.content).for_each(|block| remove_data(block, SPACE));
        Arc::new(message)
    };
    Some(messages.iter().map(less).collect())
}

/// Returns the bytes of data that a request has of a message.
fn data_of(message: &Message) -> u64 {
    let bytes = |block: &ContentBlock| match block {
        ContentBlock::Data { source: DataSource::Base64(digits), .. } => digits.len() as u64 / 4 * 3,
        ContentBlock::Data { source: DataSource::Stored(data), .. } => data.bytes,
        _ => 0,
    };
    blocks(&message.content).map(bytes).sum()
}

/// Returns the messages with data, those of `input` aside.
pub(super) fn with_data(messages: &[Arc<Message>], input: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let has_data =
        |message: &Message| blocks(&message.content).any(|block| matches!(block, ContentBlock::Data { .. }));
    let messages = messages.iter().filter(|message| has_data(message) && !is_one_of(message, input));
    messages.cloned().collect()
}

/// Returns the messages with notes in place of the data of these, which the model can't read.
pub(super) fn without_data(messages: Vec<Arc<Message>>, of: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let readable = |mut message: Arc<Message>| {
        if is_one_of(&message, of) {
            let content = &mut Arc::make_mut(&mut message).content;
            blocks_mut(content).for_each(|block| remove_data(block, "because this model can't read it"));
        }
        message
    };
    messages.into_iter().map(readable).collect()
}

fn is_one_of(message: &Arc<Message>, messages: &[Arc<Message>]) -> bool {
    messages.iter().any(|one| Arc::ptr_eq(one, message))
}

/// Why data is removed from what is compacted.
const SPACE: &str = "to save space";

fn remove_data(block: &mut ContentBlock, why: &str) {
    if let ContentBlock::Data { media_type, .. } = block {
        *block = ContentBlock::text(format!("[{media_type} was removed {why}]"));
    }
}

/// Returns what becomes of older messages. Results that last, up to `bytes` bytes of them, stay
/// whole, as those that an earlier compaction has left do.
pub(super) fn older(messages: &[Arc<Message>], bytes: usize, is_lasting: impl Fn(&str) -> bool) -> Older {
    let mut older = Older::default();
    let mut left = bytes;
    let mut retain = |retained: &mut Vec<String>, text: String| {
        let text = text.trim().to_owned();
        let fits = text.len() <= left;
        if fits && !retained.contains(&text) {
            left -= text.len();
            retained.push(text);
        }
        fits
    };
    for message in messages {
        if text::is_state(message) {
            continue;
        }
        if let Some(notes) = text::notes_of(message) {
            let gap = if older.notes.is_empty() { "" } else { "\n\n" };
            older.notes = [&older.notes, gap, &notes].concat();
            continue;
        }
        if let Some(lasting) = text::retained_of(message)
            && retain(&mut older.retained, lasting)
        {
            continue;
        }
        let results = message.tool_results().filter(|result| is_lasting(&result.name));
        let are_retained =
            results.map(|result| retain(&mut older.retained, result.text())).collect::<Vec<_>>();
        // Its other results, and what did not fit, are summarized.
        if are_retained.is_empty()
            || are_retained.len() < message.content.len()
            || are_retained.contains(&false)
        {
            older.messages.push(text::rendered(message));
        }
    }
    older
}

/// Returns texts as pieces of up to `bytes` bytes. A text that is longer is shortened.
pub(super) fn pieces(texts: &[String], bytes: usize) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for text in texts {
        let short = text::shortened(text, bytes / 2);
        let text = short.as_deref().unwrap_or(text);
        match pieces.last_mut().filter(|piece| piece.len() + text.len() <= bytes) {
            Some(piece) => piece.push_str(text),
            None => pieces.push(text.to_owned()),
        }
    }
    pieces
}

/// Returns the messages that replace a conversation. The input of the present turn stays, also if
/// it is not one of the latest messages.
pub(super) fn replacement(
    notes: &str,
    retained: &[String],
    state: &[String],
    input: &[Arc<Message>],
    latest: &[Arc<Message>],
) -> Vec<Arc<Message>> {
    let is_latest = |message: &&Arc<Message>| latest.iter().any(|one| Arc::ptr_eq(one, message));
    let input = input.iter().filter(|message| !is_latest(message)).cloned();
    let latest = latest.iter().filter(|message| !text::is_state(message)).cloned();
    let summary = (!notes.is_empty()).then(|| text::summary(notes));
    let state = (!state.is_empty()).then(|| text::state(state));
    let retained = retained.iter().map(|one| text::retained(one));
    summary.into_iter().chain(retained).chain(state).chain(input).chain(latest).collect()
}

#[cfg(test)]
mod tests;
