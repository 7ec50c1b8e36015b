//! What tracing is told, for operators: a server's log on stderr, and traces to an OpenTelemetry
//! collector, if one is named.
//!
//! Neither says what is said, nor by which token: spans have names, ids and counts.

use std::{io, time::Duration};

use anyhow::Context;
use mainstem::subagent::trust::shown_address;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing_subscriber::{
    EnvFilter, Layer, Registry, filter::Targets, layer::SubscriberExt, util::SubscriberInitExt,
};

use crate::{args::Log, config::var, terminal::Terminal};

/// Says what is logged, in the syntax of `tracing_subscriber::EnvFilter`.
const FILTER: &str = "MAINSTEM_LOG";

const USUAL: &str = "warn,mainstem=info";

/// Names the collector, as
/// [OpenTelemetry](https://opentelemetry.io/docs/specs/otel/protocol/exporter/) has it; without it
/// nothing is sent.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// How long the last spans may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Sends what is left when it is dropped.
#[derive(Debug)]
pub(crate) struct Telemetry(Option<SdkTracerProvider>);

/// Begins to tell, for as long as the process lives.
///
/// # Errors
/// What is to be logged can't be read; there can't be a collector at that address.
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

type Boxed = Box<dyn Layer<Registry> + Send + Sync>;

fn logger(log: Log, terminal: Terminal) -> anyhow::Result<Option<Boxed>> {
    let filter = var(FILTER).unwrap_or_else(|| USUAL.to_owned());
    let filter = EnvFilter::try_new(filter).context(FILTER)?;
    // It writes addresses whole, with the secrets in them; what fails there is logged by us.
    let filter = filter.add_directive("rmcp=off".parse()?);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    Ok(match log {
        Log::Off => None,
        Log::Text => Some(lines.compact().with_ansi(terminal.color).with_filter(filter).boxed()),
        Log::Json => Some(lines.json().flatten_event(true).with_span_list(false).with_filter(filter).boxed()),
    })
}

/// Where it goes and with which headers is said by the variables of OpenTelemetry, which the
/// exporter reads.
fn provider() -> anyhow::Result<SdkTracerProvider> {
    // Refused if one is installed already, which then serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary).build()?;
    let resource = match var("OTEL_SERVICE_NAME") {
        Some(name) => Resource::builder().with_service_name(name),
        None => Resource::builder().with_service_name("mainstem"),
    };
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build())
}

/// The spans of agents, model calls and tool calls; those of libraries are their own affair.
fn exporter(provider: &SdkTracerProvider) -> Boxed {
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
            // A collector that is not there must not fail what was done.
            let _ = provider.shutdown_with_timeout(PATIENCE);
        }
    }
}
