//! The frames of a stream.

use futures_util::{StreamExt, stream};
use mainstem_event::{EventKind, Origin, Timestamp};

use super::*;

#[tokio::test]
async fn a_stream_has_a_beginning_and_an_end() {
    let origin = std::sync::Arc::new(Origin::session("s".into(), None));
    let kind = EventKind::Custom { name: "a\nb".to_owned(), value: 1.into() };
    let event = AgentEvent::new(3, Timestamp::default(), origin, kind);
    let mut frames = stream::iter([event]).into_sse();
    let frames: Vec<_> =
        frames.by_ref().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect().await;
    assert_eq!(
        frames.concat(),
        "retry: 2000\n\nid: 3\nevent: CUSTOM\ndata: {\"type\":\"CUSTOM\",\"seq\":3,\"id\":\"s.3\",\"sessionId\":\"s\",\
         \"createdAt\":\"1970-01-01T00:00:00.000000Z\",\"name\":\"a\\nb\",\"value\":1}\n\nevent: end\ndata: {}\n\n"
    );
}

#[tokio::test]
async fn after_the_end_there_is_nothing() {
    let mut frames = stream::empty().into_sse();
    assert_eq!(frames.by_ref().count().await, 2);
    assert_eq!(frames.next().await, None);
}
