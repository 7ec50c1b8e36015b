//! Errors between a socket and an event.

use thiserror::Error;

/// An event is larger than the decoder's limit and was discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a server-sent event is larger than {limit} bytes; raise the limit if the server is trusted")]
#[non_exhaustive]
pub struct TooLarge {
    /// The limit in bytes, as given to [`Decoder::with_limit`](crate::Decoder::with_limit).
    pub limit: usize,
}

/// Why a [`SseStream`](crate::SseStream) ended before its source did. `E` is the source's error.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SseError<E> {
    /// The server sent an event above the limit.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The source of the bytes failed, for example because the connection was cut.
    #[error("the event stream was cut off")]
    Source(#[source] E),
}
