//! Views over any stream of events: live, late, from HTTP, from a file.

mod filter;
mod gate;
mod lanes;
mod project;

use std::{collections::BTreeMap, future::Future, sync::Arc};

use futures_core::Stream;
use futures_util::StreamExt as _;
use mainstem_message::{AgentKey, Failure, Message, TaskId};

pub use self::{
    filter::{EventFilter, Filtered},
    gate::GateRootText,
    lanes::{Lane, for_each_lane},
    project::{Events, Ndjson, Text},
};
use crate::{AgentEvent, EventKind, Outcome, StreamOptions};

#[expect(clippy::wrong_self_convention, reason = "`events.from_agent(id)` reads as what it is")]
/// Views over a stream of [`AgentEvent`]s. They drop or reshape events; the order and the numbers
/// stay.
///
/// ```
/// use futures_util::StreamExt;
/// use mainstem_event::{AgentEvent, EventStreamExt};
///
/// let events = [
///     r#"{"type": "TEXT_BLOCK_DELTA", "seq": 1, "sessionId": "s",
///         "createdAt": "2026-11-21T10:00:00Z", "blockId": "b", "delta": "Hello"}"#,
///     r#"{"type": "CUSTOM", "seq": 2, "sessionId": "s", "createdAt": "2026-11-21T10:00:00Z",
///         "name": "step", "value": 1}"#,
/// ];
/// let events = events.map(|line| serde_json::from_str::<AgentEvent>(line).expect("an event"));
/// let stream = || futures_util::stream::iter(events.clone());
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// assert_eq!(stream().text().collect::<String>().await, "Hello");
/// assert_eq!(stream().root_only().kinds(["CUSTOM"]).count().await, 1);
/// assert_eq!(stream().children().count().await, 0);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait EventStreamExt: Stream<Item = AgentEvent> + Sized {
    /// Selects the events that a filter matches, and every [`Gap`](EventKind::Gap), because it may
    /// have such events.
    fn filtered(self, filter: EventFilter) -> Filtered<Self> {
        Filtered::new(self, filter)
    }

    /// Selects the events of every instance of an agent.
    fn from_agent(self, agent_id: impl Into<String>) -> Filtered<Self> {
        self.filtered(EventFilter::new().with_agent(agent_id))
    }

    /// Selects the events of one instance.
    fn from_key(self, key: AgentKey) -> Filtered<Self> {
        self.filtered(EventFilter::new().with_key(key))
    }

    /// Selects the events of agents at this depth; 0 is the root.
    fn at_depth(self, depth: u16) -> Filtered<Self> {
        self.filtered(EventFilter::new().with_depth(depth))
    }

    /// Selects the events of agents down to this depth.
    fn max_depth(self, depth: u16) -> Filtered<Self> {
        self.filtered(EventFilter::new().with_max_depth(depth))
    }

    /// Selects the events of the root, and of the session itself.
    fn root_only(self) -> Filtered<Self> {
        self.at_depth(0)
    }

    /// Selects the events of every descendant.
    fn children(self) -> Filtered<Self> {
        self.filtered(EventFilter::new().with_children_only(true))
    }

    /// Selects the events of the agent at this path and of those below it; whole segments are
    /// compared.
    fn under_path(self, path: impl Into<String>) -> Filtered<Self> {
        self.filtered(EventFilter::new().with_path(path))
    }

    /// Selects the events of a background task.
    fn in_task(self, task: TaskId) -> Filtered<Self> {
        self.filtered(EventFilter::new().with_task(task))
    }

    /// Selects the events of these kinds, by their `type`.
    fn kinds<K: Into<String>>(self, kinds: impl IntoIterator<Item = K>) -> Filtered<Self> {
        self.filtered(EventFilter::new().with_kinds(kinds))
    }

    /// Returns the pieces of prose, without their sources; filter first.
    fn text(self) -> Text<Self> {
        Text::new(self)
    }

    /// Returns the coarser v1 events.
    fn into_events(self, options: StreamOptions) -> Events<Self> {
        Events::new(self, options)
    }

    /// Returns each event as one line of JSON, with its line end.
    fn into_ndjson(self) -> Ndjson<Self> {
        Ndjson::new(self)
    }

    /// Replaces the root's prose of a turn that calls tools by a status line.
    fn gate_root_text(self) -> GateRootText<Self> {
        GateRootText::new(self)
    }

    /// Runs `f` once for each instance of an agent, with the stream of its events, concurrently;
    /// ends with the last of them.
    ///
    /// A lane that is not read delays no other: it retains its latest events, and a
    /// [`Gap`](EventKind::Gap) counts those that it has dropped. To read lanes of a live session at
    /// one's own pace, subscribe once per lane instead.
    fn for_each_lane<F, Fut>(self, f: F) -> impl Future<Output = ()>
    where
        F: FnMut(Lane) -> Fut,
        Fut: Future<Output = ()>,
    {
        for_each_lane(self, f)
    }

    /// Returns all events, grouped by instance; the root and the session itself under `None`.
    fn collect_by_agent(self) -> impl Future<Output = BTreeMap<Option<AgentKey>, Vec<AgentEvent>>> {
        self.fold(BTreeMap::new(), async |mut all: BTreeMap<_, Vec<_>>, event| {
            all.entry(event.agent_key().cloned()).or_default().push(event);
            all
        })
    }

    /// Returns the final reply of the first instance of an agent (by id, `main` for the root, or by
    /// key) that ends.
    ///
    /// Reads up to that event. Dropping the future drops the stream.
    fn final_reply_of(self, agent: impl Into<String>) -> impl Future<Output = Result<Message, ReplyError>> {
        let agent = agent.into();
        async move {
            let mut events = std::pin::pin!(self);
            let mut replies = BTreeMap::new();
            while let Some(event) = events.next().await {
                let Some(reply_id) = event.reply_id().filter(|_| is_of(&event, &agent)) else { continue };
                let reply = replies.entry(reply_id.clone()).or_insert(None);
                match &event.kind {
                    EventKind::AgentResult { result } => *reply = Some(result.clone()),
                    EventKind::AgentEnd { outcome, error, .. } => {
                        return ending(reply.take(), *outcome, error.as_ref());
                    }
                    _ => {}
                }
            }
            Err(if replies.is_empty() { ReplyError::NeverSpawned(agent) } else { ReplyError::Unfinished })
        }
    }
}

impl<S: Stream<Item = AgentEvent>> EventStreamExt for S {}

/// Why there is no final reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// The stream ended before such an agent started.
    #[error("no agent {0:?} was spawned")]
    NeverSpawned(String),
    /// The stream ended before the agent did.
    #[error("the stream ended before the agent did")]
    Unfinished,
    /// The agent failed.
    #[error("the agent failed: {0}")]
    Failed(String),
    /// The agent was cancelled.
    #[error("the agent was cancelled")]
    Cancelled,
}

fn is_of(event: &AgentEvent, agent: &str) -> bool {
    event.agent_id() == agent || event.agent_key().is_some_and(|key| *key == *agent)
}

/// Returns the result of an invocation that ended so.
fn ending(
    reply: Option<Arc<Message>>,
    outcome: Outcome,
    error: Option<&Failure>,
) -> Result<Message, ReplyError> {
    match (outcome, reply) {
        (Outcome::Cancelled, _) => Err(ReplyError::Cancelled),
        (Outcome::Success | Outcome::MaxIterations | Outcome::Suspended, Some(reply)) => {
            Ok(Arc::unwrap_or_clone(reply))
        }
        _ => {
            let silent = || format!("it ended with {} and no reply", outcome.as_str());
            Err(ReplyError::Failed(error.map_or_else(silent, ToString::to_string)))
        }
    }
}

#[cfg(test)]
mod tests;
