//! From events back to messages, complete enough to call the model again.
//!
//! The loop itself has its conversation in a [`Transcript`] and feeds it every event that it emits,
//! so that the fold of a stream and the conversation of the agent are the same.

mod conversation;
mod recorded;
mod results;
mod transcript;

use std::{collections::HashMap, sync::Arc};

use mainstem_message::{AgentKey, Message, ReplyId};

use self::results::Results;
pub(crate) use self::results::append_text;
pub use self::{
    conversation::{Conversation, ROOT},
    recorded::{RecordedCall, RecordedInvocation, RecordedParts, RecordedTurn},
    transcript::{BlockKind, Transcript},
};
use crate::{AgentEvent, EventKind, EventSource};

/// One invocation, folded from its events.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Invocation {
    /// Its reply.
    pub reply_id: ReplyId,
    /// The source; absent for the root.
    pub source: Option<Arc<EventSource>>,
    /// Its conversation.
    pub transcript: Transcript,
}

impl Invocation {
    /// Returns the messages, the input first.
    pub fn messages(&self) -> &[Arc<Message>] {
        self.transcript.messages()
    }
}

/// Folds the events of any number of interleaved invocations, in the order of their start.
pub fn fold<'a>(events: impl IntoIterator<Item = &'a AgentEvent>) -> Vec<Invocation> {
    let mut all: Vec<Invocation> = Vec::new();
    let mut places: HashMap<&ReplyId, usize> = HashMap::new();
    for event in events {
        if let EventKind::StateCheckpoint { agent_key, messages } = &event.kind {
            replace(&mut all, agent_key, messages);
        }
        let Some(reply_id) = event.reply_id() else { continue };
        let place = *places.entry(reply_id).or_insert_with(|| {
            let source = event.origin.source.clone();
            let transcript = Transcript::new(reply_id.clone());
            all.push(Invocation { reply_id: reply_id.clone(), source, transcript });
            all.len() - 1
        });
        all[place].transcript.apply(&event.kind);
    }
    all
}

/// Moves the whole conversation after a checkpoint into the latest invocation of an agent, and
/// empties the earlier ones.
fn replace(all: &mut [Invocation], agent: &AgentKey, messages: &[Arc<Message>]) {
    let is_of = |one: &&mut Invocation| match &one.source {
        Some(source) => source.agent_key == *agent,
        None => *agent == ROOT,
    };
    let mut own = all.iter_mut().filter(is_of).rev();
    if let Some(latest) = own.next() {
        latest.transcript.replace(messages.to_vec());
    }
    own.for_each(|earlier| earlier.transcript.forget());
}

#[cfg(test)]
mod tests;
