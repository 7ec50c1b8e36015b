//! The stream, poll by poll.

use std::{collections::VecDeque, io};

use futures_util::stream::Empty;
use tokio_test::{assert_pending, assert_ready, assert_ready_eq, task};

use super::*;

const _: () = {
    const fn sendable<T: Send + Sync>() {}
    sendable::<SseStream<Empty<Result<Bytes, io::Error>>>>();
};

/// A source with these results, one a poll; it must not be polled after them.
struct Script {
    answers: VecDeque<Poll<Option<Result<Bytes, &'static str>>>>,
    _alive: Arc<()>,
}

impl Stream for Script {
    type Item = Result<Bytes, &'static str>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.answers.pop_front().expect("the source was polled once too often")
    }
}

const END: Poll<Option<Result<Bytes, &str>>> = Poll::Ready(None);
const CUT: Poll<Option<Result<Bytes, &str>>> = Poll::Ready(Some(Err("cut")));

fn chunk(text: &'static str) -> Poll<Option<Result<Bytes, &'static str>>> {
    Poll::Ready(Some(Ok(Bytes::from_static(text.as_bytes()))))
}

/// Returns a stream over the script, and a handle that tells whether the source is alive.
fn script<const N: usize>(
    answers: [Poll<Option<Result<Bytes, &'static str>>>; N],
) -> (SseStream<Script>, Arc<()>) {
    let alive = Arc::new(());
    (SseStream::new(Script { answers: answers.into(), _alive: alive.clone() }), alive)
}

macro_rules! assert_data {
    ($events:expr, $data:expr) => {
        assert_eq!(assert_ready!($events.poll_next()).unwrap().unwrap().data, $data)
    };
}

#[test]
fn drains_a_chunk_before_it_polls_the_source_again() {
    // The script ends where the source must not be polled.
    let (events, _) = script([Poll::Pending, chunk("data: a\n\ndata: b\n\n")]);
    let mut events = task::spawn(events);
    assert_pending!(events.poll_next());
    assert_data!(events, "a");
    assert_data!(events, "b");
}

#[test]
fn joins_what_chunks_and_waits_cut_apart() {
    let (events, _) = script([
        chunk("id: 1\nda"),
        Poll::Pending,
        chunk(""),
        chunk("ta: a\n\n: ping\n\ndata: b\n"),
        Poll::Pending,
        chunk("\n"),
        END,
    ]);
    let mut events = task::spawn(events);
    assert_pending!(events.poll_next());
    assert_data!(events, "a");
    assert_eq!(events.last_event_id().map(|id| &**id), Some("1"));
    assert_pending!(events.poll_next());
    assert_data!(events, "b");
    assert_ready_eq!(events.poll_next(), None);
}

#[test]
fn the_last_event_needs_no_blank_line() {
    let (events, alive) = script([chunk("retry: 7\ndata: a\n\ndata: [DONE]"), END]);
    let mut events = task::spawn(events);
    assert_data!(events, "a");
    assert!(!events.is_terminated());
    assert_data!(events, "[DONE]");
    assert_eq!(Arc::strong_count(&alive), 1, "the connection is given up with its end");
    assert!(events.is_terminated());
    assert_eq!(events.retry(), Some(Duration::from_millis(7)));
    assert_ready_eq!(events.poll_next(), None);
    assert_ready_eq!(events.poll_next(), None);
}

#[test]
fn a_cut_connection_is_the_last_item_and_loses_the_half_event() {
    let (events, alive) = script([chunk("data: a\n\ndata: ha"), CUT]);
    let mut events = task::spawn(events);
    assert_data!(events, "a");
    assert_ready_eq!(events.poll_next(), Some(Err(SseError::Source("cut"))));
    assert_eq!(Arc::strong_count(&alive), 1);
    assert_ready_eq!(events.poll_next(), None);
}

#[test]
fn an_event_above_the_limit_is_the_last_item() {
    let (events, alive) = script([chunk("data: ab\n\ndata: abc\n\ndata: d\n\n")]);
    let mut events = task::spawn(events.with_limit(2));
    assert_data!(events, "ab");
    assert_ready_eq!(events.poll_next(), Some(Err(SseError::TooLarge(crate::TooLarge { limit: 2 }))));
    assert_eq!(Arc::strong_count(&alive), 1);
    assert_ready_eq!(events.poll_next(), None);

    let (events, _) = script([chunk("data: ab\ndata:"), END]);
    let mut events = task::spawn(events.with_limit(2));
    assert_ready_eq!(events.poll_next(), Some(Err(SseError::TooLarge(crate::TooLarge { limit: 2 }))));
    assert_ready_eq!(events.poll_next(), None);
}

#[test]
fn a_chunk_is_released_before_the_wait_for_the_next() {
    let chunk = Bytes::from(b"data: a\n\n".to_vec());
    let (events, _) = script([Poll::Ready(Some(Ok(chunk.clone()))), Poll::Pending]);
    let mut events = task::spawn(events);
    assert_data!(events, "a");
    assert!(!chunk.is_unique());
    assert_pending!(events.poll_next());
    assert!(chunk.is_unique());
}

#[test]
fn dropping_the_stream_drops_the_source() {
    let (events, alive) = script([Poll::Pending]);
    let mut events = task::spawn(events);
    assert_pending!(events.poll_next());
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(events);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn errors_say_what_happened() {
    let cut = SseError::Source(io::Error::other("reset"));
    assert_eq!(cut.to_string(), "the event stream was cut off");
    assert_eq!(std::error::Error::source(&cut).unwrap().to_string(), "reset");
    let large = SseError::<io::Error>::from(crate::TooLarge { limit: 9 });
    assert_eq!(
        large.to_string(),
        "a server-sent event is larger than 9 bytes; raise the limit if the server is trusted",
    );
}
