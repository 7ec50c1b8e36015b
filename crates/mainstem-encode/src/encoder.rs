//! The trait.

use bytes::Bytes;
use mainstem_event::AgentEvent;

/// Turns the events of one stream into frames of a wire format.
///
/// The calls come in this order: [`begin`](Self::begin) once, [`event`](Self::event) and
/// [`keep_alive`](Self::keep_alive) any number of times, then [`end`](Self::end) or
/// [`fail`](Self::fail) once, or neither if the connection is lost. What a call returns is written
/// at once; it may be empty, or more than one frame.
pub trait Encoder: Send {
    /// Returns the media type of the frames.
    fn media_type(&self) -> &'static str;

    /// Returns the frames before the first event.
    fn begin(&mut self) -> Bytes {
        Bytes::new()
    }

    /// Returns the frames of an event.
    fn event(&mut self, event: &AgentEvent) -> Bytes;

    /// Returns a frame without meaning, which keeps an idle connection open.
    fn keep_alive(&mut self) -> Bytes;

    /// Returns the frames of an error after which the stream ends early; `problem` is JSON of
    /// [RFC 9457](https://www.rfc-editor.org/rfc/rfc9457).
    fn fail(&mut self, problem: &str) -> Bytes {
        let _ = problem;
        Bytes::new()
    }

    /// Returns the frames after the last event of a stream that is complete.
    fn end(&mut self) -> Bytes {
        Bytes::new()
    }

    /// Returns `true` if the frames tell a reader whether the stream is complete. Otherwise a
    /// server ends the response of a stream that is cut with an error of the transport.
    fn marks_end(&self) -> bool {
        false
    }

    /// Returns `true` if the frames so far end the stream, whatever events follow: in protocols
    /// whose streams end when a person has to answer.
    fn is_over(&self) -> bool {
        false
    }

    /// Returns a name if the frames of an event depend on the event alone. Encoders of one name
    /// return equal frames for equal events, so that an event is encoded once for all of them.
    fn shared_as(&self) -> Option<&'static str> {
        None
    }
}

/// Writes an event as JSON on one line. The default is [`AgentEvent::to_json`]; a server cuts large
/// events, a terminal escapes control characters.
pub trait WriteJson: Send {
    /// Returns the JSON.
    fn json(&self, event: &AgentEvent) -> String;
}

impl<F: Fn(&AgentEvent) -> String + Send> WriteJson for F {
    fn json(&self, event: &AgentEvent) -> String {
        self(event)
    }
}
