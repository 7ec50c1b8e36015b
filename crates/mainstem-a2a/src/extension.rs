//! The extension under which updates have what the protocol has no place for.

use std::{collections::HashMap, fmt};

use mainstem_event::AgentEvent;
use serde_json::Value;

/// The URI of the extension. A client opts in with the header `A2A-Extensions`. Then the metadata
/// of each update has the event that caused it under this URI, with the agent that it is of: all
/// events of the run, in order, each once.
///
/// The frames of a stream then have the numbers of their events as ids. `SubscribeToTask` with
/// `Last-Event-ID` goes on behind that event, also for a task that is over.
///
/// A request that begins a task can have an object with `options` in its metadata under this URI:
/// those of a run of `/v1`, such as its user, attributes, budget and rules. A `max_depth` beyond
/// the server's means the server's.
pub const URI: &str = "https://github.com/mainstem-rs/mainstem/a2a/events/v1";

/// Metadata of the protocol's objects.
pub type Metadata = HashMap<String, Value>;

/// Writes the events that the extension carries.
pub struct Extension(Box<dyn Fn(&AgentEvent) -> Value + Send + Sync>);

impl Extension {
    /// Creates it with the JSON of an event; a server cuts large events.
    pub fn new(json: impl Fn(&AgentEvent) -> Value + Send + Sync + 'static) -> Self {
        Self(Box::new(json))
    }

    pub(crate) fn metadata(&self, event: &AgentEvent) -> Metadata {
        [(URI.to_owned(), (self.0)(event))].into()
    }
}

impl Default for Extension {
    fn default() -> Self {
        Self::new(|event| serde_json::to_value(event).unwrap_or_default())
    }
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Extension(…)")
    }
}

/// Returns `true` if the value of `A2A-Extensions` has the extension.
pub fn is_wanted(header: &str) -> bool {
    header.split(',').any(|uri| uri.trim() == URI)
}
