//! A log line and metrics for each request, by its route: never its path, body or token.

use std::{fmt, sync::Arc};

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::Response,
};
use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::{app::App, jobs::OfJob, relay};

/// The route of a request whose path is unknown, and the method of one with an unusual method.
const UNKNOWN: &str = "-";

/// Routes that programs ask every few seconds: they would fill a log.
const CHECKS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// What makes a span of a request's trace, if the program has set it.
#[derive(Clone, Default)]
pub(crate) struct RequestSpans(pub(crate) Option<Arc<SpanOf>>);

/// Returns the span for a `traceparent`.
type SpanOf = dyn Fn(&str) -> Span + Send + Sync;

impl RequestSpans {
    fn of(&self, request: &Request) -> Span {
        let parent = || request.headers().get("traceparent")?.to_str().ok();
        let span = self.0.as_ref().and_then(|span| Some(span(parent()?)));
        span.unwrap_or_else(Span::none)
    }
}

impl fmt::Debug for RequestSpans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestSpans").field("is_set", &self.0.is_some()).finish_non_exhaustive()
    }
}

pub(crate) async fn observe(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    // Jobs send their requests within the server, and log what becomes of them.
    if request.extensions().get::<OfJob>().is_some() {
        return next.run(request).await;
    }
    let begun = Instant::now();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = match request.method().as_str() {
        // A caller can invent others, and each would get a metric of its own.
        method @ ("GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "PATCH" | "OPTIONS") => method.to_owned(),
        _ => UNKNOWN.to_owned(),
    };
    let span = app.served.spans.of(&request);
    let response = next.run(request).instrument(span).await;
    let (status, took) = (response.status(), begun.elapsed());
    let route = route.as_ref().map_or(UNKNOWN, MatchedPath::as_str);
    app.metrics.answered(&method, route, status, took);
    let ms = took.as_micros() as f64 / 1000.0;
    let status = status.as_u16();
    if response.status().is_server_error() && !relay::drains(&response) {
        tracing::error!(method, route, status, ms, "request");
    } else if CHECKS.contains(&route) {
        tracing::debug!(method, route, status, ms, "request");
    } else {
        tracing::info!(method, route, status, ms, "request");
    }
    response
}
