//! Which calls are repeated, and after which waits.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::Instant;

use super::*;
use crate::{ErrorKind, ScriptedModel, scripted::Turn};

async fn check(turn: Turn, expected: &[&str], waited: Duration) {
    let policy = RetryPolicy { attempts: 3, jitter: false, ..RetryPolicy::default() };
    let model = Retry::with_policy(ScriptedModel::new().agent("", [turn]), policy);
    let before = Instant::now();
    let got: Vec<_> = model
        .stream(ModelRequest::default())
        .map(|delta| match delta {
            Ok(ModelDelta::Text(text)) => text,
            Ok(ModelDelta::Retry { attempt, wait, error }) => {
                format!("retry {attempt} {wait:?} {}", error.code)
            }
            Ok(other) => format!("{other:?}").split(['(', ' ']).next().unwrap().to_owned(),
            Err(error) => format!("error {error}"),
        })
        .collect()
        .await;
    assert_eq!(got, expected);
    assert_eq!(before.elapsed(), waited);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_repeated_until_its_first_delta() {
    let ms = Duration::from_millis;
    let asks = |wait| ModelError::from_status(503, "busy").with_retry_after(wait);
    check(Turn::new().text("a"), &["a", "Usage", "Stop"], ms(0)).await;
    check(
        Turn::new().text("a").rate_limited(1),
        &["retry 1 500ms rate_limited", "a", "Usage", "Stop"],
        ms(500),
    )
    .await;
    let twice = ["retry 1 500ms rate_limited", "retry 2 1s rate_limited", "error too many requests"];
    check(Turn::new().text("a").rate_limited(9), &twice, ms(1500)).await;
    let after = ["retry 1 7s overloaded", "a", "Usage", "Stop"];
    check(Turn::new().text("a").fail_first(1, asks(ms(7000))), &after, ms(7000)).await;
    check(Turn::new().text("a").fail_first(1, asks(ms(60_000))), &["error busy"], ms(0)).await;
    check(Turn::new().text("a").cut(), &["a", "error the connection was cut"], ms(0)).await;
    let wrong = ModelError::new(ErrorKind::Auth, "wrong key");
    check(Turn::new().fail_first(1, wrong), &["error wrong key"], ms(0)).await;
}
