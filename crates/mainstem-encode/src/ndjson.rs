//! Lines of JSON ([NDJSON](https://github.com/ndjson/ndjson-spec)).

use bytes::Bytes;
use mainstem_event::AgentEvent;

use crate::{Encoder, WriteJson};

/// A line of JSON for each event; a blank line keeps the connection open. The end of the stream is
/// that of the response, so a server ends the response with an error where the stream is cut.
///
/// ```
/// use mainstem_encode::{Encoder, Ndjson};
/// use mainstem_event::AgentEvent;
///
/// let event: AgentEvent = serde_json::from_str(
///     r#"{"type": "CUSTOM", "seq": 1, "sessionId": "s", "createdAt": "2026-11-21T10:00:00Z",
///         "name": "step", "value": 1}"#,
/// )?;
/// let frame = Ndjson::new().event(&event);
/// assert!(frame.ends_with(b"}\n"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ndjson<J = fn(&AgentEvent) -> String> {
    json: J,
}

impl Ndjson {
    /// With the whole JSON of each event.
    pub fn new() -> Self {
        Self { json: AgentEvent::to_json }
    }
}

impl Default for Ndjson {
    fn default() -> Self {
        Self::new()
    }
}

impl<J: WriteJson> Ndjson<J> {
    /// With JSON that this writes.
    pub fn with(json: J) -> Self {
        Self { json }
    }
}

impl<J: WriteJson> Encoder for Ndjson<J> {
    fn media_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn event(&mut self, event: &AgentEvent) -> Bytes {
        let mut line = self.json.json(event);
        line.push('\n');
        line.into()
    }

    fn keep_alive(&mut self) -> Bytes {
        Bytes::from_static(b"\n")
    }

    fn shared_as(&self) -> Option<&'static str> {
        Some("ndjson")
    }
}
