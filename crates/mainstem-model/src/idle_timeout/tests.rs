//! Silence counts, pauses of the caller do not.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{Instant, advance};

use super::*;
use crate::{ScriptedModel, scripted::Turn};

const SECOND: Duration = Duration::from_secs(1);

fn watched(turn: Turn) -> ModelStream {
    let model = ScriptedModel::new().agent("", [turn]);
    IdleTimeout::new(model, 10 * SECOND).stream(ModelRequest::default())
}

#[tokio::test(start_paused = true)]
async fn silence_ends_the_call() {
    let before = Instant::now();
    let mut stream = watched(Turn::new().wait(6 * SECOND).text("a").wait(6 * SECOND).text("b").hang());
    assert_eq!(stream.next().await.unwrap().unwrap(), ModelDelta::Text("a".into()));
    assert_eq!(stream.next().await.unwrap().unwrap(), ModelDelta::Text("b".into()));
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Timeout, "scripted sent nothing for 10s".into())
    );
    assert_eq!(before.elapsed(), 22 * SECOND);
    assert!(stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_the_caller_is_not_silence() {
    let mut stream = tokio_test::task::spawn(watched(Turn::new().text("a").wait(30 * SECOND).text("b")));
    assert!(stream.poll_next().is_ready());
    assert!(stream.poll_next().is_pending());
    advance(25 * SECOND).await;
    assert!(stream.poll_next().is_pending(), "looked at late: the alarm is set anew");
    advance(6 * SECOND).await;
    assert!(stream.poll_next().is_ready());
}
