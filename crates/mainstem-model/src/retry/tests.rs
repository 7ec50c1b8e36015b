//! Which calls are repeated, and after which waits.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::Instant;

use super::*;
use crate::{ErrorKind, ModelOptions, OnCut, ScriptedModel, scripted::Turn};

async fn check(turn: Turn, expected: &[&str], waited: Duration) {
    check_with(ModelOptions::default(), turn, expected, waited).await;
}

async fn check_with(options: ModelOptions, turn: Turn, expected: &[&str], waited: Duration) {
    let request = ModelRequest { options: Arc::new(options), ..ModelRequest::default() };
    let policy = RetryPolicy { attempts: 3, jitter: false, ..RetryPolicy::default() };
    let model = Retry::with_policy(ScriptedModel::new().agent("", [turn]), policy);
    let before = Instant::now();
    let got: Vec<_> = model
        .stream(request)
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
async fn a_call_is_repeated_after_a_transient_failure() {
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
    let wrong = ModelError::new(ErrorKind::Auth, "wrong key");
    check(Turn::new().fail_first(1, wrong), &["error wrong key"], ms(0)).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_cut_is_asked_for_again() {
    let (none, ms) = (Duration::ZERO, Duration::from_millis);
    let cut = || Turn::new().text("a").cut();
    let repeated =
        ["a", "retry 1 500ms transport", "a", "retry 2 1s transport", "a", "error the connection was cut"];
    check(cut(), &repeated, ms(1500)).await;
    let fail = ModelOptions { on_cut: Some(OnCut::Fail), ..ModelOptions::default() };
    check_with(fail, cut(), &["a", "error the connection was cut"], none).await;
    // What is not valid is a fault of the connection in the middle of an answer, and of the service
    // before it.
    let garbage = || ModelError::new(ErrorKind::Protocol, "garbage");
    let repeated = ["a", "retry 1 500ms protocol", "a", "retry 2 1s protocol", "a", "error garbage"];
    check(Turn::new().text("a").fail(garbage()), &repeated, ms(1500)).await;
    check(Turn::new().fail(garbage()), &["error garbage"], none).await;
    // The same request would fail again.
    let filtered = ModelError::new(ErrorKind::InvalidRequest, "no");
    check(Turn::new().text("a").fail(filtered), &["a", "error no"], none).await;
}
