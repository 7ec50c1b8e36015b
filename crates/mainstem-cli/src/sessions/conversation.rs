//! The conversation with a session's root, as text.

use mainstem::message::Role;
use mainstem_event::{AgentEvent, EventKind};

use crate::{replies::Replies, sanitize::clean, terminal::Terminal};

/// The most characters of a tool's arguments.
const ARGUMENTS: usize = 60;

/// Folds a session's events into its conversation.
#[derive(Default)]
pub(super) struct Conversation {
    text: String,
    replies: Replies,
}

impl Conversation {
    /// Applies an event.
    pub(super) fn event(&mut self, event: &AgentEvent, terminal: Terminal) {
        if !event.is_root() {
            return;
        }
        match &event.kind {
            EventKind::AgentStart { input, .. } => {
                for message in input.iter().filter(|message| message.role == Role::User) {
                    self.add(&clean(&format!("> {}\n", message.text().trim_end().replace('\n', "\n  "))));
                }
            }
            EventKind::ToolResultStart { tool_call_name, input, .. } => {
                let arguments: String = input.to_string().chars().take(ARGUMENTS).collect();
                self.text.push_str(&clean(&format!("  {tool_call_name} {arguments}\n")));
            }
            EventKind::AgentEnd { error: Some(error), .. } => {
                self.add(&clean(&format!("error: {}\n", error.message)))
            }
            _ => {}
        }
        if let Some(reply) = self.replies.event(event).filter(|reply| !reply.is_empty()) {
            self.add(&terminal.reply(&reply));
        }
    }

    /// Returns the text.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Adds a paragraph.
    fn add(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }
}
