//! `GET /metrics`: figures for [Prometheus](https://prometheus.io/docs/specs/om/open_metrics_spec/), of the whole server.

use std::{
    fmt::Write,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::react::RunOutcome;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use crate::{app::App, caller::Caller, problem::Problem};

/// A request that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Route {
    method: String,
    /// As it is declared, without ids.
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct End {
    outcome: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Direction {
    direction: &'static str,
}

pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Route, Counter>,
    seconds: Histogram,
    runs: Family<End, Counter>,
    tokens: Family<Direction, Counter>,
    events: Counter<u64, AtomicU64>,
    active: Gauge,
    sessions: Gauge,
    sessions_limit: Gauge,
    evicted: Counter,
    refused: Counter,
    readers: Gauge,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        // From half a millisecond to eight seconds; streams count until their beginning.
        let seconds = Histogram::new(exponential_buckets(0.0005, 2.0, 15));
        let (requests, runs, tokens) = Default::default();
        let (events, active, sessions, readers) = Default::default();
        let (sessions_limit, evicted, refused) = Default::default();
        let mut metrics = Self {
            registry: Registry::with_prefix("mainstem"),
            requests,
            seconds,
            runs,
            tokens,
            events,
            active,
            sessions,
            sessions_limit,
            evicted,
            refused,
            readers,
        };
        let Self {
            registry,
            requests,
            seconds,
            runs,
            tokens,
            events,
            active,
            sessions,
            sessions_limit,
            evicted,
            refused,
            readers,
        } = &mut metrics;
        registry.register("http_requests", "Requests that were answered", requests.clone());
        registry.register("http_request_seconds", "Until an answer began", seconds.clone());
        registry.register("runs", "Runs that have ended", runs.clone());
        registry.register("tokens", "Tokens of runs that have ended, with all their agents", tokens.clone());
        registry.register("events_sent", "Events that readers were sent", events.clone());
        registry.register("runs_active", "Runs at work", active.clone());
        registry.register("sessions_open", "Sessions in memory", sessions.clone());
        registry.register("readers", "Readers that follow a session", readers.clone());
        registry.register("sessions_open_limit", "Sessions that can be in memory", sessions_limit.clone());
        registry.register("sessions_evicted", "Sessions closed to make room for others", evicted.clone());
        registry.register("sessions_refused", "Sessions not opened for want of room", refused.clone());
        metrics
    }

    /// A session was closed to make room for another.
    pub(crate) fn session_evicted(&self) {
        self.evicted.inc();
    }

    /// A session was not opened because there was no room for it.
    pub(crate) fn session_refused(&self) {
        self.refused.inc();
    }

    pub(crate) fn answered(&self, method: &str, route: &str, status: StatusCode, took: Duration) {
        let route = Route { method: method.to_owned(), route: route.to_owned(), status: status.as_u16() };
        self.requests.get_or_create(&route).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// A run has ended, or was dropped.
    pub(crate) fn ended(&self, outcome: Option<&RunOutcome>) {
        let how = outcome.map_or("dropped", |ended| ended.outcome.as_str()).to_owned();
        self.runs.get_or_create(&End { outcome: how }).inc();
        if let Some(ended) = outcome {
            let used = ended.usage.inclusive;
            self.tokens.get_or_create(&Direction { direction: "input" }).inc_by(used.input_tokens);
            self.tokens.get_or_create(&Direction { direction: "output" }).inc_by(used.output_tokens);
        }
    }

    pub(crate) fn sent(&self, events: u64) {
        self.events.inc_by(events);
    }
}

pub(crate) async fn get(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Problem> {
    if caller.tenant.is_some() {
        let detail = "the figures are those of the whole server, which a tenant's token does not show";
        return Err(Problem::new(StatusCode::FORBIDDEN, "operator_only", detail));
    }
    let metrics = &app.metrics;
    let (sessions, readers) = app.open_sessions();
    let set = |gauge: &Gauge, count: usize| gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    set(&metrics.active, app.live_runs());
    set(&metrics.sessions, sessions);
    set(&metrics.sessions_limit, app.session_shares.most());
    set(&metrics.readers, readers);
    let mut text = String::new();
    if encode(&mut text, &metrics.registry).is_err() {
        let _ = write!(text, "# EOF");
    }
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, media_type)], text).into_response())
}
