//! The earlier turns of a conversation as a part of its next message, for a server that keeps none.

use std::sync::Arc;

use mainstem_message::{Message, Role};

/// The most of the earlier turns that is sent, in bytes: the latest.
const MAX_HISTORY: usize = 256 << 10;

/// Returns a message with the texts of the conversation before it.
pub(super) fn with_history(history: &[Arc<Message>], message: &str) -> String {
    let (mut parts, mut left, mut is_cut) = (Vec::new(), MAX_HISTORY, false);
    for part in history.iter().rev().filter_map(|message| shown(message)) {
        match left.checked_sub(part.len()) {
            Some(rest) => left = rest,
            None => {
                is_cut = true;
                break;
            }
        }
        parts.push(part);
    }
    let note = if is_cut { "(earlier messages are left out)\n" } else { "" };
    let parts: String = parts.into_iter().rev().collect();
    format!(
        "This continues a conversation. Its messages so far:\n\n<conversation>\n{note}{parts}</conversation>\n\n\
         The next message:\n\n{message}"
    )
}

/// Returns the text of a message of one of both sides; markup in it does not end the element.
fn shown(message: &Message) -> Option<String> {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        _ => return None,
    };
    let text = message.text().replace('<', "&lt;");
    (!text.trim().is_empty()).then(|| format!("<message role=\"{role}\">\n{text}\n</message>\n"))
}
