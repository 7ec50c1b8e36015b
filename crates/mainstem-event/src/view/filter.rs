//! The filter of a reader, the same for a stream, a command line and a query string.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use mainstem_message::{AgentKey, TaskId};
use pin_project::pin_project;

use crate::{AgentEvent, EventKind};

/// The conditions of an event, all of which must hold.
///
/// ```
/// use mainstem_event::EventFilter;
///
/// let filter = EventFilter::new().with_agent("researcher").with_kinds(["TOOL_CALL_START"]);
/// # let _ = filter;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct EventFilter {
    agent: Option<String>,
    key: Option<AgentKey>,
    depth: Option<u16>,
    max_depth: Option<u16>,
    children_only: bool,
    under: Option<String>,
    task: Option<TaskId>,
    kinds: Option<Vec<String>>,
}

impl EventFilter {
    /// Creates a filter that matches every event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Matches only instances of this agent; `main` is the root.
    pub fn with_agent(mut self, agent_id: impl Into<String>) -> Self {
        self.agent = Some(agent_id.into());
        self
    }

    /// Matches only this instance.
    pub fn with_key(mut self, key: AgentKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Matches only this depth.
    pub fn with_depth(mut self, depth: u16) -> Self {
        self.depth = Some(depth);
        self
    }

    /// Matches agents down to this depth.
    pub fn with_max_depth(mut self, depth: u16) -> Self {
        self.max_depth = Some(depth);
        self
    }

    /// Sets whether the events of the root are left out, with those of the session.
    pub fn with_children_only(mut self, children_only: bool) -> Self {
        self.children_only = children_only;
        self
    }

    /// Matches this path and those below it; the root's path is its session.
    pub fn with_path(mut self, path: impl Into<String>) -> Self {
        self.under = Some(path.into());
        self
    }

    /// Matches only this background task: the events of its agents, and its changes.
    pub fn with_task(mut self, task: TaskId) -> Self {
        self.task = Some(task);
        self
    }

    /// Matches only these kinds, by their `type`.
    pub fn with_kinds<K: Into<String>>(mut self, kinds: impl IntoIterator<Item = K>) -> Self {
        self.kinds = Some(kinds.into_iter().map(Into::into).collect());
        self
    }

    /// Returns `true` if an event matches.
    pub fn matches(&self, event: &AgentEvent) -> bool {
        let source = event.source();
        let depth = event.depth();
        self.agent.as_deref().is_none_or(|agent| event.agent_id() == agent)
            && self.key.as_ref().is_none_or(|key| event.agent_key() == Some(key))
            && self.depth.is_none_or(|wanted| depth == wanted)
            && self.max_depth.is_none_or(|most| depth <= most)
            && (!self.children_only || source.is_some())
            && self.under.as_deref().is_none_or(|path| is_under(event, path))
            && self.task.as_ref().is_none_or(|task| task_of(event) == Some(task))
            && self.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| kind == event.kind.name()))
    }
}

/// Returns the background task that an event is part of, or that it changes.
fn task_of(event: &AgentEvent) -> Option<&TaskId> {
    match &event.kind {
        EventKind::TaskUpdated { task_id, .. } => Some(task_id),
        _ => event.source()?.task_id.as_ref(),
    }
}

fn is_under(event: &AgentEvent, path: &str) -> bool {
    event.source().map_or_else(|| *event.session_id() == *path, |source| source.is_under(path))
}

/// The stream of [`EventStreamExt::filtered`](super::EventStreamExt::filtered) and its shorter
/// forms.
#[pin_project]
#[derive(Clone, Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct Filtered<S> {
    #[pin]
    stream: S,
    filter: EventFilter,
}

impl<S> Filtered<S> {
    pub(super) fn new(stream: S, filter: EventFilter) -> Self {
        Self { stream, filter }
    }
}

impl<S: Stream<Item = AgentEvent>> Stream for Filtered<S> {
    type Item = AgentEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        let mut me = self.project();
        loop {
            match ready!(me.stream.as_mut().poll_next(cx)) {
                Some(event) if !is_gap(&event) && !me.filter.matches(&event) => {}
                other => return Poll::Ready(other),
            }
        }
    }
}

fn is_gap(event: &AgentEvent) -> bool {
    matches!(event.kind, EventKind::Gap { .. })
}
