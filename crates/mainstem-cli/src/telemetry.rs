//! Tracing for operators: a server's log on stderr, and traces to an OpenTelemetry collector, if
//! one is configured.
//!
//! Neither has messages or tokens: spans have names, ids and counts.

use std::{collections::HashMap, io, time::Duration};

use anyhow::Context;
use mainstem::subagent::trust::shown_address;
use opentelemetry::{propagation::TextMapPropagator, trace::TracerProvider};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::{Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, filter::Targets, layer::SubscriberExt, util::SubscriberInitExt,
};

use crate::{args::Log, config::var, terminal::Terminal};

/// The variable with the filter of the log, in the syntax of `tracing_subscriber::EnvFilter`.
const FILTER: &str = "MAINSTEM_LOG";

/// The pool logs each of its connections that an outage of the database ends.
const USUAL: &str = "warn,mainstem=info,deadpool.postgres=error";

/// The variable with the collector's address, as
/// [OpenTelemetry](https://opentelemetry.io/docs/specs/otel/protocol/exporter/) specifies it; by
/// default nothing is sent.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The longest wait for the last spans.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Sends the remaining spans on drop.
#[derive(Debug)]
pub(crate) struct Telemetry(Option<SdkTracerProvider>);

/// Starts tracing for the rest of the process.
///
/// # Errors
/// The filter is invalid, or the collector's address is.
pub(crate) fn start(log: Log, terminal: Terminal) -> anyhow::Result<Telemetry> {
    let provider = var(ENDPOINT)
        .map(|endpoint| provider().with_context(|| format!("{ENDPOINT}={}", shown_address(&endpoint))));
    let provider = provider.transpose()?;
    let layers = [logger(log, terminal)?, provider.as_ref().map(exporter)];
    let layers: Vec<_> = layers.into_iter().flatten().collect();
    if !layers.is_empty() {
        Registry::default().with(layers).init();
    }
    Ok(Telemetry(provider))
}

impl Telemetry {
    /// Returns a span below that of a request's caller.
    pub(crate) fn request_span(&self) -> impl Fn(&str) -> Span + Send + Sync + 'static {
        let is_exported = self.0.is_some();
        move |parent| if is_exported { below(parent) } else { Span::none() }
    }
}

/// The header of W3C Trace Context.
const TRACE_PARENT: &str = "traceparent";

/// Returns the `traceparent` of the current span; `None` if traces are not exported.
pub(crate) fn trace_parent() -> Option<String> {
    let mut carrier = HashMap::new();
    TraceContextPropagator::new().inject_context(&Span::current().context(), &mut carrier);
    carrier.remove(TRACE_PARENT)
}

/// Returns a span below that of a `traceparent`; one that is not valid begins a trace.
fn below(parent: &str) -> Span {
    let span = tracing::info_span!(target: "mainstem_react", "request", otel.kind = "server");
    let carrier = HashMap::from([(TRACE_PARENT.to_owned(), parent.to_owned())]);
    // Fails if the span is not exported.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&carrier));
    span
}

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

fn logger(log: Log, terminal: Terminal) -> anyhow::Result<Option<BoxedLayer>> {
    let filter = var(FILTER).unwrap_or_else(|| USUAL.to_owned());
    let filter = EnvFilter::try_new(filter).context(FILTER)?;
    // It logs full addresses with their secrets; this program logs its failures itself.
    let filter = filter.add_directive("rmcp=off".parse()?);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    Ok(match log {
        Log::Off => None,
        Log::Text => Some(lines.compact().with_ansi(terminal.color).with_filter(filter).boxed()),
        Log::Json => Some(lines.json().flatten_event(true).with_span_list(false).with_filter(filter).boxed()),
    })
}

/// Returns the exporter, which reads its address and headers from the variables of OpenTelemetry.
fn provider() -> anyhow::Result<SdkTracerProvider> {
    // The call fails if a provider is installed, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary).build()?;
    let resource = match var("OTEL_SERVICE_NAME") {
        Some(name) => Resource::builder().with_service_name(name),
        None => Resource::builder().with_service_name("mainstem"),
    };
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build())
}

/// Exports the spans of agents, model calls and tool calls, without those of libraries.
fn exporter(provider: &SdkTracerProvider) -> BoxedLayer {
    let ours = Targets::new().with_target("mainstem_react", tracing::Level::INFO);
    let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("mainstem"));
    spans
        .with_target(false)
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_filter(ours)
        .boxed()
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(provider) = &self.0 {
            // A missing collector must not fail a command that succeeded.
            let _ = provider.shutdown_with_timeout(FLUSH_TIMEOUT);
        }
    }
}
