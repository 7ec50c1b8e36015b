//! The push parser: chunks in, events out, however the chunks are cut.

use std::{borrow::Cow, mem, num::NonZeroUsize, sync::Arc, time::Duration};

use bytes::Buf;
use sse_core::{MessageEvent, SseDecoder, SseEvent as Decoded};

use crate::TooLarge;

/// The size limit of [`Decoder::new`] in bytes: 16 MiB, room for an inline image in one event.
pub const DEFAULT_LIMIT: usize = 16 << 20;

/// The largest buffer in bytes that a decoder retains from one event to the next.
const KEEP: usize = 16 << 10;

/// One dispatched event.
///
/// `id` and `retry` belong to the connection: they are the values in force when the event was
/// dispatched, whichever frame brought them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The event type, `message` unless the server named one.
    pub event: Cow<'static, str>,
    /// The `data` lines, joined by `\n`. May be empty, if the server sent an empty `data` field.
    pub data: String,
    /// The last event id, which a client sends as `Last-Event-ID` when it reconnects.
    pub id: Option<Arc<str>>,
    /// How long the server asks a client to wait before it reconnects.
    pub retry: Option<Duration>,
}

/// Turns the bytes of a connection into events, as WHATWG's [interpretation rules] require.
///
/// Call [`decode`](Self::decode) with each chunk until it returns `None`, and
/// [`finish`](Self::finish) when the connection has ended. Only the unfinished event is stored in
/// between, and invalid UTF-8 becomes U+FFFD.
///
/// ```
/// use mainstem_sse::Decoder;
///
/// let mut decoder = Decoder::new();
/// let mut texts = Vec::new();
/// for mut chunk in [&b"data: on"[..], b"e\n\ndata: two\n\n"] {
///     while let Some(event) = decoder.decode(&mut chunk)? {
///         texts.push(event.data);
///     }
/// }
/// assert_eq!(texts, ["one", "two"]);
/// # Ok::<(), mainstem_sse::TooLarge>(())
/// ```
///
/// [interpretation rules]: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
#[derive(Debug, Clone)]
pub struct Decoder {
    inner: SseDecoder,
    limit: NonZeroUsize,
    retry: Option<Duration>,
}

impl Decoder {
    /// Creates a decoder that refuses events larger than [`DEFAULT_LIMIT`].
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(DEFAULT_LIMIT)
    }

    /// Creates a decoder that refuses events with more than `limit` bytes of data, event type or
    /// id.
    ///
    /// The three are measured apart and as sent (an invalid byte becomes three), so a connection
    /// holds at most a small multiple of `limit`.
    /// A limit of 0 counts as 1.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        let limit = NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN);
        Self { inner: SseDecoder::with_limit(limit), limit, retry: None }
    }

    /// Reads `input` up to the end of the next event; `None` once `input` is used up.
    ///
    /// Frames without a `data` field are skipped.
    ///
    /// # Errors
    /// [`TooLarge`] as soon as the unfinished event exceeds the limit. The decoder stays usable: it
    /// skips the rest of that event and continues with the next one.
    pub fn decode(&mut self, input: &mut impl Buf) -> Result<Option<SseEvent>, TooLarge> {
        while let Some(decoded) = self.inner.next(input) {
            match decoded {
                Ok(Decoded::Message(message)) => return Ok(Some(self.dispatch(message))),
                Ok(Decoded::Retry(millis)) => self.retry = Some(Duration::from_millis(millis.into())),
                Err(_) => return Err(TooLarge { limit: self.limit.get() }),
            }
        }
        Ok(None)
    }

    /// Ends the connection, and returns the event that only lacked its final blank line.
    ///
    /// **This deviates from WHATWG on purpose.** A browser discards such an event; but some model
    /// servers leave out the last blank line, or even the last line break, and the lost event is
    /// the end of a reply. The frame's `id`, and a `retry` without a line break, may have been cut
    /// short and are ignored. An event whose data is empty is still discarded.
    ///
    /// The decoder is then ready for a new connection, which keeps [`last_event_id`] and
    /// [`retry`].
    ///
    /// # Errors
    /// [`TooLarge`] if the last byte of the unfinished event exceeds the limit.
    ///
    /// [`last_event_id`]: Self::last_event_id
    /// [`retry`]: Self::retry
    pub fn finish(&mut self) -> Result<Option<SseEvent>, TooLarge> {
        let (id, retry) = (self.last_event_id().cloned(), self.retry);
        let last = self.decode(&mut b"\n\n".as_slice());
        self.inner.reconnect_with_id(id.clone());
        self.retry = retry;
        let last = last?.filter(|event| !event.data.is_empty());
        Ok(last.map(|event| SseEvent { id, retry, ..event }))
    }

    /// Returns the id to send as `Last-Event-ID` when reconnecting.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&Arc<str>> {
        self.inner.last_event_id()
    }

    /// Returns how long the server last asked to wait before reconnecting.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn dispatch(&mut self, message: MessageEvent) -> SseEvent {
        let MessageEvent { event, mut data, last_event_id: id } = message;
        // The inner decoder allocates for every event a buffer as large as the largest so far.
        if data.capacity() > KEEP {
            data.shrink_to_fit();
            self.give_back_buffers();
        }
        SseEvent { event, data, id, retry: self.retry }
    }

    /// Replaces the buffers by empty ones; only valid between two events.
    fn give_back_buffers(&mut self) {
        let full = mem::replace(&mut self.inner, SseDecoder::with_limit(self.limit));
        self.inner.reconnect_with_id(full.last_event_id().cloned());
        // A blank line dispatches no event, and leaves the state in which a BOM would be skipped.
        let nothing = self.inner.next(&mut b"\n".as_slice());
        debug_assert!(nothing.is_none());
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
