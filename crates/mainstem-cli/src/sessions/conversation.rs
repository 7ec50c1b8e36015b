//! The conversation with a session's root, as text.

use std::mem::take;

use mainstem::message::{ContentBlock, Message, Role, StopReason};
use mainstem_event::{AgentEvent, EventKind};
use serde_json::Value;

use crate::{
    sanitize::{REMINDER, clean},
    terminal::Terminal,
};

/// The most characters of a tool's arguments.
const ARGUMENTS: usize = 60;

/// Folds a session's events into its conversation.
#[derive(Default)]
pub(super) struct Conversation {
    text: String,
    /// What the root says at present.
    said: String,
    /// Whether the root has said something in this turn.
    has_said: bool,
}

impl Conversation {
    /// Applies an event.
    pub(super) fn event(&mut self, event: &AgentEvent, terminal: Terminal) {
        if !event.is_root() {
            return;
        }
        match &event.kind {
            EventKind::AgentStart { input, .. } => self.begin(input.iter().map(|message| &**message)),
            EventKind::TextBlockStart { .. } if !self.said.is_empty() => self.said.push_str("\n\n"),
            EventKind::TextBlockDelta { delta, .. } => self.said.push_str(delta),
            EventKind::ModelRetry { .. } | EventKind::ModelFallback { .. }
                if event.kind.taken_back().is_some() =>
            {
                self.said.clear();
            }
            EventKind::ModelCallEnd { stop_reason, .. } => self.end_answer(stop_reason, terminal),
            EventKind::ToolResultStart { tool_call_name, input, .. } => {
                let arguments = if input.is_null() { String::new() } else { short(input) };
                self.text.push_str(&clean(format!("  {tool_call_name} {arguments}").trim_end()));
                self.text.push('\n');
            }
            // A result that no model has said.
            EventKind::AgentResult { result } if !self.has_said => self.say(&result.text(), terminal),
            EventKind::AgentEnd { error: Some(error), .. } => {
                self.add(&clean(&format!("error: {}\n", error.message)));
            }
            _ => {}
        }
    }

    /// Returns the text.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn begin<'a>(&mut self, input: impl Iterator<Item = &'a Message>) {
        (self.said, self.has_said) = (String::new(), false);
        for message in input.filter(|message| message.role == Role::User) {
            let text = shown(message);
            if !text.starts_with(REMINDER) {
                self.add(&clean(&format!("> {}\n", text.trim_end().replace('\n', "\n  "))));
            }
        }
    }

    fn end_answer(&mut self, reason: &StopReason, terminal: Terminal) {
        let said = take(&mut self.said);
        let is_cut = matches!(reason, StopReason::Error | StopReason::Cancelled);
        let cut = if is_cut { "\n\n(cut off here)" } else { "" };
        if !said.trim().is_empty() {
            self.say(&format!("{said}{cut}"), terminal);
        }
    }

    fn say(&mut self, text: &str, terminal: Terminal) {
        self.has_said = true;
        if !text.is_empty() {
            self.add(&terminal.reply(text));
        }
    }

    /// Adds a paragraph.
    fn add(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }
}

/// Returns a message as text, with the media types of its data.
fn shown(message: &Message) -> String {
    let block = |block: &ContentBlock| match block {
        ContentBlock::Data { media_type, .. } => Some(format!("[{media_type}]")),
        block => block.as_text().map(str::to_owned),
    };
    message.content.iter().filter_map(block).collect()
}

fn short(input: &Value) -> String {
    let text = input.to_string();
    match text.char_indices().nth(ARGUMENTS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
