//! `GET /metrics`: figures for
//! [Prometheus](https://prometheus.io/docs/specs/om/open_metrics_spec/), of the whole server.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::{Harness, event::Rollup, journal::Figures, message::Usage, react::RunOutcome};
use mainstem_api::Code;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Metric, Registry},
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
    spent: Spent,
    events: Counter<u64, AtomicU64>,
    encoded: Counter<u64, AtomicU64>,
    active: Gauge,
    sessions: Gauge,
    sessions_limit: Gauge,
    evicted: Counter,
    refused: Counter,
    taken_over: Counter,
    readers: Gauge,
    jobs: Gauge,
    /// Of a journal that counts.
    journal: Option<JournalMetrics>,
}

impl Metrics {
    /// With those of a journal, if it has figures.
    pub(crate) fn new(journal: Option<Figures>) -> Self {
        let mut registry = Registry::with_prefix("mainstem");
        // From half a millisecond to eight seconds; streams count until their beginning.
        let seconds = Histogram::new(exponential_buckets(0.0005, 2.0, 15));
        let to = &mut registry;
        Self {
            requests: registered(to, "http_requests", "Requests that were answered", Family::default()),
            seconds: registered(to, "http_request_seconds", "Until an answer began", seconds),
            runs: registered(to, "runs", "Runs that have ended", Family::default()),
            spent: Spent::new(to),
            events: registered(to, "events_sent", "Events that readers were sent", Counter::default()),
            encoded: registered(
                to,
                "events_encoded",
                "Events that were encoded for readers",
                Counter::default(),
            ),
            active: registered(to, "runs_active", "Runs that are active", Gauge::default()),
            sessions: registered(to, "sessions_open", "Sessions in memory", Gauge::default()),
            jobs: registered(to, "jobs_active", "Jobs that this server runs", Gauge::default()),
            journal: journal.map(|_| JournalMetrics::new(to)),
            readers: registered(to, "readers", "Readers that follow a session", Gauge::default()),
            sessions_limit: registered(
                to,
                "sessions_open_limit",
                "Sessions that can be in memory",
                Gauge::default(),
            ),
            evicted: registered(
                to,
                "sessions_evicted",
                "Sessions closed to make room for others",
                Counter::default(),
            ),
            refused: registered(
                to,
                "sessions_refused",
                "Sessions not opened for want of room",
                Counter::default(),
            ),
            taken_over: registered(
                to,
                "sessions_taken_over",
                "Sessions taken over from nodes that have ended in a run",
                Counter::default(),
            ),
            registry,
        }
    }

    /// A session was not opened because there was no room for it.
    pub(crate) fn session_refused(&self) {
        self.refused.inc();
    }

    /// A session was taken over from a node that has ended.
    pub(crate) fn taken_over(&self) {
        self.taken_over.inc();
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
            self.spent.add(&ended.usage);
        }
    }

    pub(crate) fn encoded(&self) {
        self.encoded.inc();
    }

    pub(crate) fn sent(&self, events: u64) {
        self.events.inc_by(events);
    }
}

/// What runs that have ended have used, with all their agents.
struct Spent {
    tokens: Family<Direction, Counter>,
    dollars: Counter<f64, AtomicU64>,
    /// Runs whose cost is unknown.
    unpriced: Counter,
}

impl Spent {
    fn new(to: &mut Registry) -> Self {
        let tokens = "Tokens of runs that have ended, with all their agents";
        let dollars = "Cost of runs that have ended, with all their agents, as far as it is known";
        let unpriced = "Runs that have ended and whose cost is unknown";
        Self {
            tokens: registered(to, "tokens", tokens, Family::default()),
            dollars: registered(to, "cost_dollars", dollars, Counter::default()),
            unpriced: registered(to, "runs_of_unknown_cost", unpriced, Counter::default()),
        }
    }

    fn add(&self, usage: &Rollup) {
        let used = usage.inclusive;
        self.tokens.get_or_create(&Direction { direction: "input" }).inc_by(used.input_tokens);
        self.tokens.get_or_create(&Direction { direction: "output" }).inc_by(used.output_tokens);
        match usage.inclusive_cost {
            Some(millionths) => _ = self.dollars.inc_by(Duration::from_micros(millionths).as_secs_f64()),
            None if used == Usage::default() => {}
            None => _ = self.unpriced.inc(),
        }
    }
}

/// The figures of a journal that has them.
struct JournalMetrics {
    waiting: Gauge,
    commits: Counter,
    events: Counter,
    seconds: Counter<f64, AtomicU64>,
    failures: Counter,
    connections: Gauge,
    lease: Gauge<f64, AtomicU64>,
}

impl JournalMetrics {
    fn new(to: &mut Registry) -> Self {
        let counter = |to: &mut Registry, name, help| registered(to, name, help, Counter::default());
        Self {
            waiting: registered(
                to,
                "journal_events_waiting",
                "Events that wait to be committed",
                Gauge::default(),
            ),
            commits: counter(to, "journal_commits", "Transactions that were committed"),
            events: counter(to, "journal_events", "Events that were committed"),
            seconds: registered(
                to,
                "journal_commit_seconds",
                "How long the commits took, in all",
                Counter::default(),
            ),
            failures: counter(to, "journal_failures", "Sessions whose record has failed"),
            connections: registered(
                to,
                "journal_connections",
                "Connections to the database, without that of the lease",
                Gauge::default(),
            ),
            lease: registered(
                to,
                "journal_lease_seconds",
                "How long the lease of this node still lasts",
                Gauge::default(),
            ),
        }
    }

    fn set(&self, figures: &Figures) {
        let count = |counter: &Counter, count| counter.inner().store(count, Ordering::Relaxed);
        let set = |gauge: &Gauge, count| gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        set(&self.waiting, figures.waiting);
        set(&self.connections, figures.connections);
        count(&self.commits, figures.commits);
        count(&self.events, figures.events);
        count(&self.failures, figures.failures);
        self.seconds.inner().store(figures.time.as_secs_f64().to_bits(), Ordering::Relaxed);
        self.lease.set(figures.lease.unwrap_or_default().as_secs_f64());
    }
}

/// Returns the figures of a harness's journal, if it has any.
pub(crate) fn figures(harness: &Harness) -> Option<Figures> {
    harness.journal()?.figures()
}

/// Registers a metric and returns it.
fn registered<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

pub(crate) async fn get(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Problem> {
    if caller.tenant.is_some() {
        let detail = "the figures are those of the whole server, which a tenant's token does not show";
        return Err(Problem::new(Code::OperatorOnly, detail));
    }
    let metrics = &app.metrics;
    let store = app.harness.sessions().store();
    let set = |gauge: &Gauge, count: usize| gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    set(&metrics.active, app.live_runs());
    set(&metrics.sessions, store.len());
    set(&metrics.sessions_limit, store.limit().map_or(0, |shares| shares.most()));
    set(&metrics.readers, app.readers.count());
    set(&metrics.jobs, app.active_jobs.load(Ordering::Relaxed));
    if let Some((journal, figures)) = metrics.journal.as_ref().zip(figures(&app.harness)) {
        journal.set(&figures);
    }
    metrics.evicted.inner().store(store.evicted(), Ordering::Relaxed);
    let mut text = String::new();
    if encode(&mut text, &metrics.registry).is_err() {
        let _ = write!(text, "# EOF");
    }
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, media_type)], text).into_response())
}
