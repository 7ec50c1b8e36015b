//! Events as server-sent events: the same frames from a terminal, a server, or any stream of one's own.
//!
//! A frame has the event's number as its `id`, so that a reader can go on behind the last one it saw (`Last-Event-ID`), its kind as
//! `event`, and its JSON as `data`. The stream begins with [`first_frame`] and ends with [`end_frame`].

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_util::Stream;
use mainstem_event::AgentEvent;
use mainstem_sse::Frame;

/// How long a reader whose connection was cut shall wait before it comes back.
pub const RETRY: Duration = Duration::from_secs(2);

/// What every stream begins with: `retry: 2000`.
pub fn first_frame() -> Bytes {
    Frame::default().with_retry(RETRY).encode()
}

/// One event.
///
/// ```
/// let json = r#"{"type":"TEXT_BLOCK_DELTA","seq":7,"sessionId":"s","createdAt":"2026-11-21T10:00:00Z","blockId":"b","delta":"Hi"}"#;
/// let frame = mainstem::sse::event_frame(&serde_json::from_str(json)?);
/// assert!(frame.starts_with(b"id: 7\nevent: TEXT_BLOCK_DELTA\ndata: {\"type\":\"TEXT_BLOCK_DELTA\""));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn event_frame(event: &AgentEvent) -> Bytes {
    json_frame(event, &event.to_json())
}

/// The same with JSON of one's own: an event that was shortened, say.
pub fn json_frame(event: &AgentEvent, json: &str) -> Bytes {
    let id = event.seq.to_string();
    Frame::data(json).with_event(event.kind.name()).with_id(&id).encode()
}

/// What a stream that is over ends with, so that a reader knows it was not cut.
pub fn end_frame() -> Bytes {
    Frame::data("{}").with_event("end").encode()
}

/// Any stream of events as server-sent events.
pub trait SseExt: Stream<Item = AgentEvent> + Sized {
    /// Each event as a frame, after [`first_frame`] and before [`end_frame`].
    fn into_sse(self) -> IntoSse<Self> {
        IntoSse { stream: self, place: Place::First }
    }
}

impl<S: Stream<Item = AgentEvent>> SseExt for S {}

/// The stream of [`SseExt::into_sse`]. Dropping it drops what it reads.
#[derive(Clone, Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct IntoSse<S> {
    stream: S,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    First,
    Events,
    Over,
}

impl<S: Stream<Item = AgentEvent> + Unpin> Stream for IntoSse<S> {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let frame = match self.place {
            Place::First => first_frame(),
            Place::Over => return Poll::Ready(None),
            Place::Events => match ready!(Pin::new(&mut self.stream).poll_next(cx)) {
                Some(event) => return Poll::Ready(Some(event_frame(&event))),
                None => end_frame(),
            },
        };
        self.place = if matches!(self.place, Place::First) { Place::Events } else { Place::Over };
        Poll::Ready(Some(frame))
    }
}

#[cfg(test)]
mod tests;
