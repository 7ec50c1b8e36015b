//! A session as its record tells it: what was said in it, and what was cut off when its process ended.

use std::{collections::BTreeMap, sync::Arc};

use mainstem_event::{
    AgentEvent, EventKind, EventSink, FleetState, Origin, Outcome, Rollup, SessionLog, TaskStatus, Timestamp,
    fold::Transcript,
};
use mainstem_message::{Failure, Message, ReplyId, SessionId, StopReason};

/// What a session's events come to, taken in one by one.
#[derive(Default)]
pub(crate) struct Past {
    /// What was said between the caller and the agent.
    pub(crate) history: Vec<Arc<Message>>,
    /// What the fleet was doing last.
    pub(crate) fleet: FleetState,
    open: BTreeMap<ReplyId, Open>,
}

/// An invocation that has begun and not ended.
struct Open {
    seq: u64,
    began: Timestamp,
    origin: Arc<Origin>,
    transcript: Transcript,
    /// What its model calls used so far, and its children that ended; what it cost nobody knows any more.
    usage: Rollup,
}

impl Open {
    /// The agent's own session.
    fn session(&self) -> &SessionId {
        self.origin.source.as_ref().map_or(&self.origin.session_id, |source| &source.session_id)
    }
}

impl Past {
    /// Takes in the next event.
    pub(crate) fn apply(&mut self, event: &AgentEvent) {
        self.fleet.apply(event);
        let Some(reply) = event.reply_id() else { return };
        if let EventKind::AgentStart { .. } = event.kind {
            let transcript = Transcript::new(reply.clone());
            let (seq, began, origin) = (event.seq, event.at, event.origin.clone());
            self.open
                .insert(reply.clone(), Open { seq, began, origin, transcript, usage: Rollup::default() });
        }
        let Some(open) = self.open.get_mut(reply) else { return };
        open.transcript.apply(&event.kind);
        match &event.kind {
            EventKind::ModelCallEnd { usage: Some(usage), .. } => open.usage.add_own(*usage, None),
            EventKind::AgentEnd { usage, .. } => {
                let ended = self.open.remove(reply);
                ended.iter().for_each(|ended| self.remember(ended));
                add_to_parent(self.open.values_mut(), &event.origin, usage);
            }
            _ => {}
        }
    }

    fn remember(&mut self, ended: &Open) {
        if ended.origin.source.is_none() {
            self.history.extend_from_slice(ended.transcript.messages());
        }
    }

    /// Ends what was cut off, children before their parents: what is open is closed, and one `AGENT_END` says why. What was said until
    /// then stays in the history.
    pub(crate) fn close(&mut self, log: &Arc<SessionLog>) {
        let mut open: Vec<_> = std::mem::take(&mut self.open).into_values().collect();
        open.sort_by_key(|open| std::cmp::Reverse(open.seq));
        while !open.is_empty() {
            let mut cut = open.remove(0);
            let sink = EventSink::resumed(log.clone(), cut.origin.clone());
            while let Some(kind) = cut.transcript.next_closing(StopReason::Cancelled) {
                cut.transcript.apply(&kind);
                sink.emit(kind);
            }
            sink.emit(EventKind::AgentEnd {
                outcome: Outcome::Error,
                error: Some(restarted()),
                usage: cut.usage,
                duration_ms: log.clock().now().millis_since(cut.began),
            });
            add_to_parent(open.iter_mut(), &cut.origin, &cut.usage);
            self.remember(&cut);
        }
        self.close_tasks(log);
    }

    /// Nobody works on its tasks any more; what ran them has its end before they have theirs.
    fn close_tasks(&self, log: &Arc<SessionLog>) {
        for (task, status) in self.fleet.tasks.iter().filter(|(_, status)| !status.is_terminal()) {
            let error = Some(restarted());
            log.emit(EventKind::TaskUpdated {
                task_id: task.clone(),
                from: *status,
                to: TaskStatus::Failed,
                error,
            });
        }
    }
}

/// Why it ended.
fn restarted() -> Failure {
    Failure::new("restarted", "the process that ran the agent has ended")
}

/// A child that ended counts for the agent that called it, if that has not ended.
fn add_to_parent<'a>(open: impl IntoIterator<Item = &'a mut Open>, child: &Origin, usage: &Rollup) {
    let Some(source) = &child.source else { return };
    let parent = open.into_iter().find(|open| *open.session() == source.parent_session_id);
    parent.into_iter().for_each(|parent| parent.usage.add_child(usage));
}
