//! The root's reply in each run, from a session's events.

use mainstem::event::fold::Transcript;
use mainstem_event::{AgentEvent, EventKind};

/// Collects the root's replies.
#[derive(Default)]
pub(crate) struct Replies {
    /// The text of the current run.
    root: Option<Transcript>,
    /// The reply of the current run, if it has one.
    reply: String,
}

impl Replies {
    /// Returns `true` if a run has not ended.
    pub(crate) fn is_open(&self) -> bool {
        self.root.is_some()
    }

    /// Applies an event. If it ends a run, returns the run's reply, which is empty if the run
    /// failed or was cancelled: its messages are then shown as progress.
    pub(crate) fn event(&mut self, event: &AgentEvent) -> Option<String> {
        if !event.is_root() {
            return None;
        }
        if let (EventKind::AgentStart { .. }, Some(reply)) = (&event.kind, event.reply_id()) {
            self.root = Some(Transcript::new(reply.clone()));
        }
        if let Some(root) = &mut self.root {
            root.apply(&event.kind);
        }
        if let EventKind::AgentResult { result } = &event.kind {
            // A server shortens a large event; its deltas have the full text.
            let whole = self.root.as_ref().and_then(Transcript::last_answer);
            self.reply = whole.map_or_else(|| result.text(), |answer| answer.text());
        }
        event.is_run_end().then(|| std::mem::take(&mut *self).reply)
    }
}
