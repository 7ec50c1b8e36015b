//! The state of a thread: the messages of the agent that leads a session.

use mainstem_event::AgentEvent;
use serde_json::{Value, json};

use super::speaker::{Said, Speaker};

/// The messages of a session's root, from its events.
#[derive(Debug, Default)]
pub struct LangGraphThread {
    speaker: Speaker,
    messages: Vec<Value>,
}

impl LangGraphThread {
    /// Creates the state of a thread without messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in an event of the session.
    pub fn apply(&mut self, event: &AgentEvent) {
        if event.is_root() && event.reply_id().is_some() {
            for said in self.speaker.apply(event) {
                self.add(said);
            }
        }
    }

    fn add(&mut self, said: Said) {
        if let Said::Whole { message, .. } | Said::Input(message) = said {
            self.messages.push(message);
        }
    }

    /// Returns the values of the state.
    pub fn values(&self) -> Value {
        json!({ "messages": self.messages })
    }

    /// Returns `true` if there are no messages.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn push(&mut self, message: Value) {
        self.messages.push(message);
    }
}
