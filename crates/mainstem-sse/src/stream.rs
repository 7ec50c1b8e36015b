//! The decoder over a stream of chunks, such as the body of an HTTP response.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_core::{FusedStream, Stream};
use pin_project::pin_project;

use crate::{Decoder, SseError, SseEvent};

/// A stream of [`SseEvent`]s out of a stream of byte chunks.
///
/// Every event of a chunk is yielded before the source is polled again, and a chunk is released
/// before the stream waits for the next one. When the source ends, an event that only lacks its
/// blank line is yielded, too: see [`Decoder::finish`] for why. An error is the last item; the
/// stream is fused, and drops the source when it ends.
///
/// **Cancel safety:** dropping a pending `next()` loses nothing. Dropping the stream drops the
/// source, and so closes the connection, with the events that were not yielded.
///
/// ```
/// # tokio_test::block_on(async {
/// use bytes::Bytes;
/// use futures_util::{StreamExt, stream};
/// use mainstem_sse::SseStream;
///
/// let chunks = stream::iter(["data: a\n\nda", "ta: b\n\n"]);
/// let chunks = chunks.map(|c| Ok::<_, std::io::Error>(Bytes::from(c)));
/// let mut events = SseStream::new(chunks);
/// assert_eq!(events.next().await.unwrap()?.data, "a");
/// assert_eq!(events.next().await.unwrap()?.data, "b");
/// assert!(events.next().await.is_none());
/// # Ok::<(), mainstem_sse::SseError<std::io::Error>>(()) }).unwrap();
/// ```
#[pin_project]
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct SseStream<S> {
    /// `None` once it has ended or failed.
    #[pin]
    source: Option<S>,
    chunk: Bytes,
    /// The bytes of all chunks.
    bytes: u64,
    decoder: Decoder,
}

impl<S> SseStream<S> {
    /// Decodes `source`, with a fresh [`Decoder`] and its default limit.
    pub fn new(source: S) -> Self {
        Self { source: Some(source), chunk: Bytes::new(), bytes: 0, decoder: Decoder::new() }
    }

    /// Refuses events larger than `limit` bytes, as [`Decoder::with_limit`] does.
    pub fn with_limit(self, limit: usize) -> Self {
        Self { decoder: Decoder::with_limit(limit), ..self }
    }

    /// Returns how many bytes the source has yielded, those of comments and of an unfinished event
    /// included: while the number grows, the server is alive.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes
    }

    /// Returns the id to send as `Last-Event-ID` when reconnecting.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&Arc<str>> {
        self.decoder.last_event_id()
    }

    /// Returns how long the server last asked to wait before reconnecting.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.decoder.retry()
    }
}

impl<S, E> Stream for SseStream<S>
where
    S: Stream<Item = Result<Bytes, E>>,
{
    type Item = Result<SseEvent, SseError<E>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let item = loop {
            let Some(source) = this.source.as_mut().as_pin_mut() else {
                return Poll::Ready(None);
            };
            match this.decoder.decode(this.chunk) {
                Ok(None) => {}
                decoded => break decoded.map_err(SseError::from),
            }
            // An empty `Bytes` still holds the buffer that it was cut from.
            *this.chunk = Bytes::new();
            match ready!(source.poll_next(cx)) {
                Some(Ok(chunk)) => {
                    *this.bytes += chunk.len() as u64;
                    *this.chunk = chunk;
                }
                Some(Err(error)) => break Err(SseError::Source(error)),
                None => {
                    this.source.set(None);
                    break this.decoder.finish().map_err(SseError::from);
                }
            }
        };
        if item.is_err() {
            this.source.set(None);
        }
        Poll::Ready(item.transpose())
    }
}

impl<S, E> FusedStream for SseStream<S>
where
    S: Stream<Item = Result<Bytes, E>>,
{
    fn is_terminated(&self) -> bool {
        self.source.is_none()
    }
}

#[cfg(test)]
mod tests;
