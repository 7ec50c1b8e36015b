//! Server-sent events ([WHATWG](https://html.spec.whatwg.org/multipage/server-sent-events.html)).

use std::time::Duration;

use bytes::Bytes;
use mainstem_event::AgentEvent;
use mainstem_sse::Frame;

use crate::{Encoder, WriteJson};

/// How long a reader waits before it reconnects.
pub const RETRY: Duration = Duration::from_secs(2);

/// Server-sent events: `id` is the number of the event, `event` its kind, `data` its JSON. The
/// stream begins with `retry: 2000` and ends with `event: end`, so that a reader can tell a
/// complete stream from one that was cut; `event: problem` ends one early.
///
/// ```
/// use mainstem_encode::{Encoder, Sse};
/// use mainstem_event::AgentEvent;
///
/// let event: AgentEvent = serde_json::from_str(
///     r#"{"type": "CUSTOM", "seq": 1, "sessionId": "s", "createdAt": "2026-11-21T10:00:00Z",
///         "name": "step", "value": 1}"#,
/// )?;
/// let frame = Sse::new().event(&event);
/// assert!(frame.starts_with(b"id: 1\nevent: CUSTOM\ndata: {"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sse<J = fn(&AgentEvent) -> String> {
    json: J,
}

impl Sse {
    /// With the whole JSON of each event.
    pub fn new() -> Self {
        Self { json: AgentEvent::to_json }
    }
}

impl Default for Sse {
    fn default() -> Self {
        Self::new()
    }
}

impl<J: WriteJson> Sse<J> {
    /// With JSON that this writes.
    pub fn with(json: J) -> Self {
        Self { json }
    }
}

impl<J: WriteJson> Encoder for Sse<J> {
    fn media_type(&self) -> &'static str {
        "text/event-stream"
    }

    fn begin(&mut self) -> Bytes {
        Frame::default().with_retry(RETRY).encode()
    }

    fn event(&mut self, event: &AgentEvent) -> Bytes {
        let id = event.seq.to_string();
        Frame::data(&self.json.json(event)).with_event(event.kind.name()).with_id(&id).encode()
    }

    fn keep_alive(&mut self) -> Bytes {
        Frame::comment("still here").encode()
    }

    fn fail(&mut self, problem: &str) -> Bytes {
        Frame::data(problem).with_event("problem").encode()
    }

    fn end(&mut self) -> Bytes {
        Frame::data("{}").with_event("end").encode()
    }

    fn marks_end(&self) -> bool {
        true
    }

    fn shared_as(&self) -> Option<&'static str> {
        Some("sse")
    }
}
