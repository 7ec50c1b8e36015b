//! Calls that share a limiter.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{StreamExt, future::join_all};
use mainstem_message::{Allowance, RateLimits};

use super::*;
use crate::{Retry, ScriptedModel, scripted::Turn};

fn request(session: &str) -> ModelRequest {
    ModelRequest { session: session.into(), ..ModelRequest::default() }
}

/// Returns the deltas of a call as text, with waits in milliseconds.
async fn told(stream: ModelStream) -> Vec<String> {
    let text = |delta: Result<ModelDelta, ModelError>| match delta {
        Ok(ModelDelta::Text(text)) => Some(text),
        Ok(ModelDelta::RateLimitWait { limit, wait, ahead, refusal }) => {
            let wait = wait.map(|wait| wait.as_millis());
            let why = refusal.map_or_else(String::new, |refusal| format!(" ({})", refusal.message));
            Some(format!("wait {limit:?} {wait:?} behind {ahead}{why}"))
        }
        Ok(ModelDelta::RateLimitPassed { waited }) => Some(format!("passed {}", waited.as_millis())),
        Ok(_) => None,
        Err(error) => Some(format!("error {:?}: {error}", error.kind())),
    };
    stream.filter_map(async |delta| text(delta)).collect().await
}

/// Returns a model whose every answer reports that this much of 60 requests a minute is left.
fn model(answers: usize, left: u64) -> ScriptedModel {
    let mut limits = RateLimits::default();
    limits.requests = Some(Allowance::new(left).with_limit(60).with_reset_ms((60 - left) * 1_000));
    let turn = || Turn::new().delta(ModelDelta::RateLimits(Box::new(limits))).text("a");
    ScriptedModel::new().agent("", (0..answers).map(|_| turn()))
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_as_long_as_the_service_leaves_no_room() {
    let limiter = RateLimiter::default();
    let first = RateLimited::new(model(9, 0), limiter.clone());
    assert_eq!(told(first.stream(request(""))).await, ["a"]);
    // Another model with the same limiter.
    let second = RateLimited::new(model(9, 30), limiter);
    let waited = ["wait Requests Some(1000) behind 0", "passed 1000", "a"];
    assert_eq!(told(second.stream(request(""))).await, waited);
    assert_eq!(told(second.stream(request(""))).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_gives_up_its_place() {
    let model = RateLimited::new(model(9, 0), RateLimiter::default());
    told(model.stream(request(""))).await;
    let mut dropped = model.stream(request(""));
    dropped.next().await;
    let drops = async {
        tokio::task::yield_now().await;
        drop(dropped);
    };
    let (behind, ()) = futures_util::future::join(told(model.stream(request(""))), drops).await;
    assert_eq!(behind, ["wait Requests Some(1000) behind 1", "passed 1000", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_reads_nothing_holds_nothing_up() {
    let model = RateLimited::new(model(9, 0), RateLimiter::default());
    told(model.stream(request(""))).await;
    let mut stuck: Vec<_> = (0..3).map(|number| model.stream(request(&number.to_string()))).collect();
    for stream in &mut stuck {
        assert!(stream.next().await.is_some());
    }
    let told = told(model.stream(request("reads"))).await;
    assert_eq!(told.last().unwrap(), "a");
    let passed: u64 = told[1].strip_prefix("passed ").unwrap().parse().unwrap();
    assert!(passed < 10_000, "{passed} ms");
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_waits_again_before_all_others() {
    let refusal = ModelError::from_status(429, "slow down").with_retry_after(Duration::from_secs(5));
    let script = ScriptedModel::new().agent("", [Turn::new().fail_first(2, refusal).text("a")]);
    let model = RateLimited::new(script, RateLimiter::default());
    let wait = "wait Refusal Some(5000) behind 0 (slow down)";
    let expected = [wait, "passed 5000", wait, "passed 5000", "a"];
    let (first, second) =
        futures_util::future::join(told(model.stream(request(""))), told(model.stream(request("")))).await;
    assert_eq!(first, expected);
    assert_eq!(second.last().unwrap(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_that_has_used_tokens_is_repeated_where_they_are_counted() {
    let refusal = ModelError::from_status(429, "slow down");
    let used = ModelDelta::Usage(Usage::new(9, 0));
    let script = || {
        ScriptedModel::new().agent("", [Turn::new().delta(used.clone()).fail(refusal.clone()), Turn::new()])
    };
    let model = RateLimited::new(script(), RateLimiter::default());
    let mut deltas = model.stream(request(""));
    assert_eq!(deltas.next().await.unwrap().unwrap(), used);
    let error = deltas.next().await.unwrap().unwrap_err();
    assert!(is_refusal(&error) && !error.is_repeated(), "{error}");
    let again = Retry::new(RateLimited::new(script(), RateLimiter::default()));
    let deltas: Vec<_> = again.stream(request("")).take(2).map(Result::unwrap).collect().await;
    assert!(matches!(deltas[..], [ModelDelta::Usage(_), ModelDelta::Retry { .. }]), "{deltas:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_refused_again_and_again_fails() {
    let refusal = ModelError::from_status(429, "slow down");
    let script = ScriptedModel::new().agent("", [Turn::new().fail_first(1_000, refusal).text("a")]);
    let told = told(RateLimited::new(script, RateLimiter::default()).stream(request(""))).await;
    assert_eq!(told.iter().filter(|told| told.starts_with("wait")).count(), REFUSALS as usize);
    assert_eq!(told.last().unwrap(), "error RateLimited: slow down (refused 11 times)");
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_its_rate_without_end_fails_within_two_minutes() {
    let refusal = ModelError::from_status(429, "slow down").with_retry_after(Duration::from_secs(1));
    let script = ScriptedModel::new().agent("", [Turn::new().fail_first(1_000, refusal).text("a")]);
    let begun = Instant::now();
    let told = told(Retry::new(RateLimited::new(script, RateLimiter::default())).stream(request(""))).await;
    assert_eq!(told.last().unwrap(), "error RateLimited: slow down (refused 11 times)");
    assert!((60..120).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

/// A service that refuses calls while this many are in progress.
#[derive(Clone, Default)]
struct Service {
    calls: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
    most: usize,
}

impl Model for Service {
    fn name(&self) -> &str {
        "service"
    }

    fn stream(&self, _: ModelRequest) -> ModelStream {
        let me = self.clone();
        Box::pin(futures_util::stream::once(async move {
            let before = me.calls.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(100)).await;
            me.calls.fetch_sub(1, Ordering::SeqCst);
            if before < me.most {
                return Ok(ModelDelta::Text("a".into()));
            }
            me.refused.fetch_add(1, Ordering::SeqCst);
            Err(ModelError::from_status(429, "too many").with_retry_after(Duration::from_secs(2)))
        }))
    }
}

/// A fleet of sixty calls at once at a service for four: without a limiter, most are refused four
/// times and fail.
#[tokio::test(start_paused = true)]
async fn a_fleet_recovers_from_refusals() {
    let failed = async |model: &dyn Model| {
        let calls = join_all((0..60).map(|number| told(model.stream(request(&number.to_string()))))).await;
        calls.iter().filter(|told| told.last().unwrap() != "a").count()
    };
    let service = || Service { most: 4, ..Service::default() };
    let (bare, limited) = (service(), service());
    let many = failed(&Retry::new(bare.clone())).await;
    let few = failed(&Retry::new(RateLimited::new(limited.clone(), RateLimiter::default()))).await;
    let refused = |service: &Service| service.refused.load(Ordering::SeqCst);
    assert_eq!((few, many > 20), (0, true), "{many} failed without a limiter");
    assert!(refused(&limited) < refused(&bare), "{} {}", refused(&limited), refused(&bare));
}

#[tokio::test(start_paused = true)]
async fn all_calls_fail_while_a_service_demands_a_long_wait() {
    let refusal = ModelError::from_status(429, "no more today").with_retry_after(Duration::from_secs(7_200));
    let model = ScriptedModel::new().agent("", [Turn::new().fail_first(1, refusal).text("a")]);
    let model = RateLimited::new(model, RateLimiter::default());
    assert_eq!(told(model.stream(request(""))).await, ["error RateLimited: no more today"]);
    let refused = "was not called: its service limits the rate of calls and accepts none for 7200 s";
    let told_now = told(model.stream(request(""))).await;
    assert!(told_now[0].ends_with(refused), "{told_now:?}");
    tokio::time::advance(Duration::from_secs(7_200)).await;
    assert_eq!(told(model.stream(request(""))).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn thousands_of_calls_wait_and_leave_nothing() {
    let limiter = RateLimiter::new(RatePolicy { calls: Some(8), ..RatePolicy::default() });
    let model = RateLimited::new(Service { most: usize::MAX, ..Service::default() }, limiter.clone());
    let calls = (0..3_000).map(|number| told(model.stream(request(&(number % 100).to_string()))));
    let calls = join_all(calls).await;
    assert!(calls.iter().all(|told| told.last().unwrap() == "a"));
    let shown = format!("{limiter:?}");
    assert!(shown.contains("waiting: {}") && shown.contains("unanswered: []"), "{shown}");
    assert!(shown.contains("calls: 0"), "{shown}");
}
