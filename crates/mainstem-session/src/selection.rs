//! The events that a query selects, and the last of them. Pure.

use mainstem_api::{Detail, EventQuery, Problem};
use mainstem_event::{AgentEvent, EventFilter, EventKind};
use mainstem_message::RunId;

/// A query that was checked.
pub(crate) struct Selection {
    filter: EventFilter,
    run: Option<RunId>,
    is_brief: bool,
}

impl Selection {
    /// # Errors
    /// A kind does not exist.
    pub(crate) fn of(query: &EventQuery) -> Result<Self, Problem> {
        let run = query.run.clone();
        Ok(Self { filter: query.filter()?, run, is_brief: query.detail == Detail::Lifecycle })
    }

    /// Selects all events.
    pub(crate) fn all() -> Self {
        Self { filter: EventFilter::new(), run: None, is_brief: false }
    }

    /// A gap is always selected: events that the query selects may be missing.
    pub(crate) fn has(&self, event: &AgentEvent) -> bool {
        let is_of_run = self.run.as_ref().is_none_or(|run| event.run_id() == Some(run));
        let is_told = !self.is_brief || event.kind.is_lifecycle();
        matches!(event.kind, EventKind::Gap { .. }) || (is_of_run && is_told && self.filter.matches(event))
    }

    /// Returns `true` if no later event is selected.
    pub(crate) fn ends_with(&self, event: &AgentEvent) -> bool {
        let is_end = event.is_run_end() || event.is_queued_run_cancel();
        self.run.as_ref().is_some_and(|run| is_end && event.run_id() == Some(run))
    }
}
