//! Limits on the rate of calls: the headers of each vendor hold calls back before they are refused,
//! and a fleet recovers from refusals.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use mainstem::{
    event::FleetState,
    message::{Allowance, RateLimits},
    model::{Model, ModelDelta, ModelError, ModelRequest, ModelStream, RatePolicy, scripted::Turn},
    prelude::*,
    provider::{Setup, provider},
};
use mainstem_testing::{ModelServer, laws, render};
use serde_json::{Map, Value, json};

/// Returns a model of this server as a user gets it, with all decorators.
fn model(row: &str, server: &ModelServer, rates: RatePolicy) -> Arc<dyn Model> {
    let row = provider(row).unwrap();
    let var = |name: &str| match name {
        name if name == row.base_url => Some(server.root_url()),
        name if name == row.key => Some("k".to_owned()),
        _ => None,
    };
    row.model("main", &Setup { rates, ..Setup::new(&var) }).unwrap()
}

async fn run(model: Arc<dyn Model>) -> Vec<AgentEvent> {
    let tool = |_, _: Map<String, Value>| async { Ok::<_, ToolError>("42") };
    let harness = Harness::builder("main", model).with_tool(tool_fn("look", "Looks", tool)).build().unwrap();
    let events: Vec<_> = harness.stream_events("go").collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events
}

/// The first answer leaves no requests for a second.
fn script() -> ScriptedModel {
    let limits = |left| {
        let mut limits = RateLimits::default();
        limits.requests = Some(Allowance::new(left).with_limit(1).with_reset_ms(1_000));
        Turn::new().delta(ModelDelta::RateLimits(Box::new(limits)))
    };
    ScriptedModel::new().agent("main", [limits(0).call("look", json!({})), limits(1).text("42 it is.")])
}

#[tokio::test]
async fn the_headers_of_each_vendor_hold_calls_back() {
    for row in ["openai", "responses", "anthropic"] {
        let server = ModelServer::start(script()).await.unwrap();
        let started = Instant::now();
        let events = run(model(row, &server, RatePolicy::default())).await;
        assert!(started.elapsed() > Duration::from_millis(900), "{row}: {:?}", started.elapsed());
        let told = events.iter().filter_map(|event| match &event.kind {
            EventKind::RateLimitWait { limit, ahead, wait_ms: Some(1..=1_000), .. } => {
                Some(format!("waits for {}, behind {ahead}", limit.as_str()))
            }
            EventKind::RateLimitPassed { waited_ms: 800.., .. } => Some("passed".to_owned()),
            EventKind::ModelCallEnd { rate_limits: Some(limits), .. } => {
                Some(format!("{} left", limits.requests.unwrap().remaining))
            }
            EventKind::ModelRetry { .. } => Some("refused".to_owned()),
            _ => None,
        });
        let expected = ["0 left", "waits for requests, behind 0", "passed", "1 left"];
        assert_eq!(told.collect::<Vec<_>>(), expected, "{row}\n{}", render(&events));
        let mut fleet = FleetState::default();
        events.iter().for_each(|event| fleet.apply(event));
        assert_eq!(fleet.rate_limits["main"].requests.unwrap().remaining, 1, "{row}");
    }
}

/// A service for four calls at a time.
#[derive(Clone, Default)]
struct Busy {
    calls: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
    script: Arc<ScriptedModel>,
}

impl Model for Busy {
    fn name(&self) -> &str {
        "busy"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let me = self.clone();
        let call = async move {
            let is_refused = me.calls.fetch_add(1, Ordering::SeqCst) >= 4;
            tokio::time::sleep(Duration::from_millis(20)).await;
            me.calls.fetch_sub(1, Ordering::SeqCst);
            if is_refused {
                me.refused.fetch_add(1, Ordering::SeqCst);
                let error = ModelError::from_status(429, "too many requests at once");
                return futures_util::stream::iter([Err(error.with_retry_after(Duration::from_millis(300)))])
                    .boxed();
            }
            me.script.stream(request)
        };
        Box::pin(futures_util::stream::once(call).flatten())
    }
}

/// A leader that calls sixteen children at once, all on one model.
fn fleet() -> ScriptedModel {
    let spawns: Vec<_> = (0..16)
        .map(|number| json!({ "agent_id": "general-purpose", "task": format!("part {number}") }))
        .collect();
    let spawn = Turn::new().call("agent_fanout", json!({ "spawns": spawns }));
    ScriptedModel::new()
        .agent_on("main", "part", [Turn::new().text("done")])
        .agent("main", [spawn, Turn::new().text("All done.")])
}

#[tokio::test]
async fn a_fleet_recovers_from_refusals() {
    let busy = Busy { script: Arc::new(fleet()), ..Busy::default() };
    let server = ModelServer::start(busy.clone()).await.unwrap();
    let events = run(model("openai", &server, RatePolicy::default())).await;
    let failed = events.iter().filter(
        |event| matches!(event.kind, EventKind::AgentEnd { outcome, .. } if outcome != Outcome::Success),
    );
    assert_eq!(failed.count(), 0, "{}", render(&events));
    let ended = events.iter().filter(|event| matches!(event.kind, EventKind::AgentEnd { .. })).count();
    assert_eq!(ended, 17);
    assert!(busy.refused.load(Ordering::SeqCst) > 0);
}

#[tokio::test]
async fn a_policy_limits_the_calls_at_the_same_time() {
    let busy = Busy { script: Arc::new(fleet()), ..Busy::default() };
    let server = ModelServer::start(busy.clone()).await.unwrap();
    let mut rates = RatePolicy::default();
    rates.calls = Some(4);
    let events = run(model("openai", &server, rates)).await;
    assert_eq!(busy.refused.load(Ordering::SeqCst), 0, "{}", render(&events));
    let waits = events.iter().filter(|event| matches!(event.kind, EventKind::RateLimitWait { .. }));
    assert_eq!(waits.count(), 12);
}
