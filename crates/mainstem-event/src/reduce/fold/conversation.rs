//! The conversation of one agent, over all its turns.

use std::sync::Arc;

use mainstem_message::{AgentKey, Message, ReplyId};

use super::Transcript;
use crate::{AgentEvent, EventKind};

/// The key of the root.
pub const ROOT: &str = "root";

/// The messages of one agent: a fold of the events of its session. A `STATE_CHECKPOINT` replaces
/// earlier messages.
///
/// ```
/// use mainstem_event::fold::{Conversation, ROOT};
/// use mainstem_event::AgentEvent;
///
/// fn of_root(events: &[AgentEvent]) -> Conversation {
///     let mut conversation = Conversation::of(ROOT.parse().expect("a key"));
///     events.iter().for_each(|event| conversation.apply(event));
///     conversation
/// }
/// assert_eq!(of_root(&[]).messages().count(), 0);
/// ```
#[derive(Clone, Debug)]
pub struct Conversation {
    agent: AgentKey,
    /// The messages of a checkpoint, and of turns before the latest.
    past: Vec<Arc<Message>>,
    /// The latest turn.
    latest: Option<(ReplyId, Transcript)>,
}

impl Conversation {
    /// Creates the conversation of this agent; the root's key is [`ROOT`].
    pub fn of(agent: AgentKey) -> Self {
        Self { agent, past: Vec::new(), latest: None }
    }

    /// Applies the next event of the session. Events of other agents change nothing.
    pub fn apply(&mut self, event: &AgentEvent) {
        if let EventKind::StateCheckpoint { agent_key, messages } = &event.kind
            && *agent_key == self.agent
        {
            self.past.clone_from(messages);
            if let Some((_, transcript)) = &mut self.latest {
                transcript.forget();
            }
        }
        let is_own = match event.agent_key() {
            Some(key) => *key == self.agent,
            None => self.agent == ROOT,
        };
        let Some(reply) = event.reply_id().filter(|_| is_own) else { return };
        let is_new = self.latest.as_ref().is_none_or(|(latest, _)| latest != reply);
        if is_new
            && let Some((_, ended)) = self.latest.replace((reply.clone(), Transcript::new(reply.clone())))
        {
            self.past.extend_from_slice(ended.messages());
        }
        if let Some((_, transcript)) = &mut self.latest {
            transcript.apply(&event.kind);
        }
    }

    /// Returns `true` if the agent has had a turn.
    pub fn has_begun(&self) -> bool {
        self.latest.is_some()
    }

    /// Returns the complete messages, the oldest first.
    pub fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        let latest = self.latest.iter().flat_map(|(_, transcript)| transcript.messages());
        self.past.iter().chain(latest)
    }
}
