//! What the agent answers in each run, out of a session's events.

use mainstem::event::fold::Transcript;
use mainstem_event::{AgentEvent, EventKind};

/// Listens to the root.
#[derive(Default)]
pub(crate) struct Replies {
    /// What it says in the present run.
    root: Option<Transcript>,
}

impl Replies {
    /// Takes in what happened. If a run has ended with that, its reply, which is empty if there is none.
    pub(crate) fn event(&mut self, event: &AgentEvent) -> Option<String> {
        if event.source().is_some() {
            return None;
        }
        if let (EventKind::AgentStart { .. }, Some(reply)) = (&event.kind, event.reply_id()) {
            self.root = Some(Transcript::new(reply.clone()));
        }
        let root = self.root.as_mut()?;
        root.apply(&event.kind);
        if !event.ends_run() {
            return None;
        }
        let reply = root.last_answer().map(|answer| answer.text()).unwrap_or_default();
        self.root = None;
        Some(reply)
    }
}
