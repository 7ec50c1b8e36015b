//! Which events of a session a reader gets, in which form, and when its stream ends.

use mainstem::{
    event::{AgentEvent, Cursor, EventFilter, EventKind},
    message::{RunId, TaskId},
    prelude::RunHandle,
};

/// What a reader asks for.
pub(crate) struct Subscription {
    pub(crate) filter: EventFilter,
    /// Leaves out deltas.
    pub(crate) lifecycle: bool,
    pub(crate) until: Until,
    /// The last event that the reader may have, if there is such a limit.
    pub(crate) through: Option<u64>,
    /// Whether to wait for further events.
    pub(crate) follow: bool,
}

/// The part of a session that a reader gets, and its end.
pub(crate) enum Until {
    /// All events of the session, without an end.
    Never,
    /// Those of a run, until it ends.
    EndOf(RunId, Option<RunHandle>),
    /// Those of a run, until it ends or asks for approval in an event after this one.
    EndOrQuestion { run: RunId, handle: Option<RunHandle>, after: u64 },
    /// Those of a background task, until it is over.
    TaskIsOver(TaskId),
}

impl Until {
    fn includes(&self, event: &AgentEvent) -> bool {
        match self {
            Self::Never => true,
            Self::EndOf(run, _) | Self::EndOrQuestion { run, .. } => event.run_id() == Some(run),
            Self::TaskIsOver(task) => {
                event.source().and_then(|source| source.task_id.as_ref()) == Some(task)
                    || matches!(&event.kind, EventKind::TaskUpdated { task_id, .. } if task_id == task)
            }
        }
    }

    /// Waits until the session has released the run, so that another run can begin when the reader
    /// sees the end.
    pub(crate) async fn released(&self) {
        if let Self::EndOf(_, Some(run)) | Self::EndOrQuestion { handle: Some(run), .. } = self {
            run.released().await;
        }
    }

    /// Returns `true` if the run asks in this event, so that the stream ends and the run does not.
    pub(super) fn is_asked_by(&self, event: &AgentEvent) -> bool {
        let Self::EndOrQuestion { run, after, .. } = self else { return false };
        let is_question = matches!(event.kind, EventKind::RequireUserConfirm { .. });
        is_question && event.seq > *after && event.run_id() == Some(run)
    }

    /// Returns `true` if the stream ends behind this event.
    pub(crate) fn is_reached_by(&self, event: &AgentEvent) -> bool {
        match self {
            Self::Never => false,
            // The end itself may be among the events of the gap.
            Self::EndOf(_, Some(run)) | Self::EndOrQuestion { handle: Some(run), .. } if is_gap(event) => {
                run.status().is_over() && event.seq >= run.session().log().last_seq()
            }
            Self::EndOf(run, _) | Self::EndOrQuestion { run, .. } => {
                event.run_id() == Some(run) && (event.is_run_end() || event.is_queued_run_cancel())
            }
            Self::TaskIsOver(task) => matches!(
                &event.kind,
                EventKind::TaskUpdated { task_id, to, .. } if task_id == task && to.is_terminal()
            ),
        }
    }
}

impl Subscription {
    /// Returns the subscription to all events up to an end, past and future ones.
    pub(crate) fn to(until: Until) -> Self {
        Self { filter: EventFilter::new(), lifecycle: false, until, through: None, follow: true }
    }

    pub(super) fn includes(&self, event: &AgentEvent) -> bool {
        let is_selected = (!self.lifecycle || event.kind.is_lifecycle()) && self.filter.matches(event);
        let is_shown = self.through.is_none_or(|through| event.seq <= through);
        is_gap(event) || (is_shown && self.until.includes(event) && is_selected)
    }

    /// Returns `true` if the stream ends behind this event.
    pub(super) fn is_reached_by(&self, event: &AgentEvent) -> bool {
        self.through.is_some_and(|through| event.seq >= through) || self.until.is_reached_by(event)
    }
}

pub(crate) fn is_gap(event: &AgentEvent) -> bool {
    matches!(event.kind, EventKind::Gap { .. })
}

/// What a session has for a reader, before the response begins.
pub(crate) enum Available {
    /// Only events from `oldest` on, which is after the requested one.
    After {
        oldest: u64,
    },
    Nothing,
    Something,
}

/// Returns what a session has from the cursor's position on. `is_complete` is `true` if no further
/// events are expected.
pub(crate) async fn available(
    mut cursor: Cursor,
    subscription: &Subscription,
    is_complete: bool,
) -> Available {
    let mut next = cursor.at_hand().await;
    if let Some(EventKind::Gap { to_seq, .. }) = next.as_ref().map(|event| &event.kind) {
        return Available::After { oldest: to_seq + 1 };
    }
    if !is_complete {
        return Available::Something;
    }
    while let Some(event) = next {
        if subscription.includes(&event) {
            return Available::Something;
        }
        if subscription.is_reached_by(&event) {
            break;
        }
        next = cursor.at_hand().await;
    }
    Available::Nothing
}
