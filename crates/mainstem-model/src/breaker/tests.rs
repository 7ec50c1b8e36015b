//! Which calls are made.

use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::StreamExt;
use tokio::time::advance;

use super::*;
use crate::{Fallback, Retry, ScriptedModel, scripted::Turn};

const SECOND: Duration = Duration::from_secs(1);

/// A model that fails its first calls, and counts all of them.
#[derive(Clone, Debug)]
struct Down {
    calls: Arc<AtomicU32>,
    failures: u32,
    kind: ErrorKind,
}

impl Down {
    fn for_calls(failures: u32) -> Self {
        Self { calls: Arc::default(), failures, kind: ErrorKind::Overloaded }
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Model for Down {
    fn name(&self) -> &str {
        "down"
    }

    fn stream(&self, _: ModelRequest) -> ModelStream {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let answer = if number < self.failures {
            Err(ModelError::new(self.kind, "no"))
        } else {
            Ok(ModelDelta::Text("yes".into()))
        };
        Box::pin(futures_util::stream::iter([answer]))
    }
}

fn breaker(model: &Down) -> Breaker<Down> {
    let policy = BreakerPolicy { failures: 3, ..BreakerPolicy::default() };
    Breaker::with_policy(model.clone(), policy)
}

async fn ask(model: &impl Model) -> String {
    let mut stream = model.stream(ModelRequest::default());
    let item = stream.next().await.unwrap();
    assert!(item.is_ok() || stream.next().await.is_none());
    match item {
        Ok(delta) => format!("{delta:?}"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_is_left_alone_then_tried() {
    let down = Down::for_calls(4);
    let breaker = breaker(&down);
    let other = breaker.clone();
    for _ in 0..3 {
        assert_eq!(ask(&breaker).await, "no");
    }
    let spared = "down was not asked: it failed several times in a row and is left alone for 10.0 s more";
    assert_eq!((ask(&breaker).await.as_str(), ask(&other).await.as_str()), (spared, spared));
    assert_eq!(down.calls(), 3);
    advance(10 * SECOND).await;
    assert_eq!(ask(&other).await, "no", "one goes ahead, and fails");
    assert!(ask(&breaker).await.contains("left alone for 10.0 s"));
    advance(10 * SECOND).await;
    assert_eq!(ask(&breaker).await, "Text(\"yes\")");
    assert_eq!(ask(&other).await, "Text(\"yes\")");
    assert_eq!(down.calls(), 6);
}

#[tokio::test(start_paused = true)]
async fn only_one_tries_and_another_may_if_it_gives_up() {
    let down = Down::for_calls(3);
    let breaker = breaker(&down);
    for _ in 0..3 {
        ask(&breaker).await;
    }
    advance(10 * SECOND).await;
    let model = ScriptedModel::new().agent("", [Turn::new().hang()]);
    let slow = Breaker { inner: Arc::new(model), policy: breaker.policy, circuit: breaker.circuit.clone() };
    let mut trying = tokio_test::task::spawn(slow.stream(ModelRequest::default()));
    assert!(trying.poll_next().is_pending());
    assert!(ask(&breaker).await.contains("left alone for 2.0 s"));
    drop(trying);
    assert_eq!(ask(&breaker).await, "Text(\"yes\")");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_passing_failure_does_not_count() {
    let down = Down { kind: ErrorKind::Auth, ..Down::for_calls(9) };
    let breaker = breaker(&down);
    for _ in 0..9 {
        assert_eq!(ask(&breaker).await, "no");
    }
    assert_eq!(ask(&breaker).await, "Text(\"yes\")");
}

#[tokio::test(start_paused = true)]
async fn successes_in_between_begin_the_count_again() {
    let down = Down::for_calls(2);
    let breaker = breaker(&down);
    for expected in ["no", "no", "Text(\"yes\")"] {
        assert_eq!(ask(&breaker).await, expected);
    }
    for _ in 0..9 {
        assert_eq!(ask(&breaker).await, "Text(\"yes\")");
    }
}

#[tokio::test(start_paused = true)]
async fn what_began_before_it_opened_says_nothing() {
    let mut circuit = Circuit::default();
    let now = Instant::now();
    let passes: Vec<_> = (0..5).map(|_| circuit.admit(now, SECOND).unwrap()).collect();
    let [one, two, three, late, later] = <[Pass; 5]>::try_from(passes).unwrap();
    for pass in [one, two, three] {
        circuit.failed(pass, 3, now + SECOND);
    }
    circuit.succeeded(late);
    circuit.failed(later, 3, now + 9 * SECOND);
    assert_eq!(circuit.admit(now, 5 * SECOND).unwrap_err(), now + SECOND);
}

#[tokio::test(start_paused = true)]
async fn around_it_retries_wait_and_fallbacks_do_not() {
    let down = Down::for_calls(3);
    let breaker = breaker(&down);
    for _ in 0..3 {
        ask(&breaker).await;
    }
    let spare = ScriptedModel::named("spare").agent("", [Turn::new().text("spare")]);
    let mut fallback = Fallback::new(breaker.clone(), spare).stream(ModelRequest::default());
    assert!(matches!(fallback.next().await, Some(Ok(ModelDelta::Fallback { .. }))));
    let before = Instant::now();
    let deltas: Vec<_> = Retry::new(breaker).stream(ModelRequest::default()).collect().await;
    assert!(
        matches!(&deltas[..], [Ok(ModelDelta::Retry { attempt: 1, .. }), Ok(ModelDelta::Text(_))]),
        "{deltas:?}"
    );
    assert_eq!((before.elapsed().as_secs(), down.calls()), (10, 4));
}
