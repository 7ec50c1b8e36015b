//! The frames of each format, and what all formats have in common.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use mainstem_event::{AgentEvent, EventKind, Origin, Timestamp};

use crate::{EncodeExt, Encoder, Ndjson, Sse};

const JSON: &str = "{\"type\":\"CUSTOM\",\"seq\":3,\"id\":\"s.3\",\"sessionId\":\"s\",\
                    \"createdAt\":\"1970-01-01T00:00:00.000000Z\",\"name\":\"a\\nb\",\"value\":1}";

fn event() -> AgentEvent {
    let origin = Arc::new(Origin::session("s".parse().unwrap(), None));
    let kind = EventKind::Custom { name: "a\nb".to_owned(), value: 1.into() };
    AgentEvent::new(3, Timestamp::default(), origin, kind)
}

/// Returns the frames of a stream with one event.
async fn written(encoder: impl Encoder + Unpin) -> String {
    let frames = stream::iter([event()]).encoded(encoder);
    frames.map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect().await
}

#[tokio::test]
async fn each_format_has_its_beginning_and_its_end() {
    let sse = format!("retry: 2000\n\nid: 3\nevent: CUSTOM\ndata: {JSON}\n\nevent: end\ndata: {{}}\n\n");
    assert_eq!(written(Sse::new()).await, sse);
    assert_eq!(written(Ndjson::new()).await, format!("{JSON}\n"));
    let short = |_: &AgentEvent| "{}".to_owned();
    assert_eq!(written(Ndjson::with(short)).await, "{}\n");
    assert!(written(Sse::with(short)).await.contains("event: CUSTOM\ndata: {}\n\n"));
}

#[tokio::test]
async fn after_the_end_there_are_no_frames() {
    let mut frames = stream::empty().into_sse();
    assert_eq!(frames.by_ref().count().await, 2);
    assert_eq!(frames.next().await, None);
    assert_eq!(stream::empty().encoded(Ndjson::new()).count().await, 0, "no frame is empty");
}

#[test]
fn a_reader_skips_what_keeps_the_connection_open() {
    assert_eq!(Sse::new().keep_alive(), ": still here\n\n");
    assert_eq!(Ndjson::new().keep_alive(), "\n");
    assert_eq!(Sse::new().fail("{\"status\":503}"), "event: problem\ndata: {\"status\":503}\n\n");
    assert!(Ndjson::new().fail("{}").is_empty(), "each line is an event");
}

#[test]
fn shared_frames_do_not_depend_on_what_came_before() {
    #[track_caller]
    fn check(mut fresh: impl Encoder, mut used: impl Encoder) {
        let _ = (used.begin(), used.event(&event()), used.keep_alive());
        assert!(fresh.shared_as().is_some() && fresh.shared_as() == used.shared_as());
        assert_eq!(fresh.event(&event()), used.event(&event()));
    }
    check(Sse::new(), Sse::new());
    check(Ndjson::new(), Ndjson::new());
}
