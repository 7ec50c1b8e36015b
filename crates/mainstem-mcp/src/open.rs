//! Opens a connection to a declared server.

use std::sync::Arc;

use mainstem_outbound::{Secrets, client_within};
use mainstem_tool::unless;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rmcp::{
    RoleClient,
    model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion, SubscriptionFilter},
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService, Subscription},
    transport::{
        IntoTransport, StreamableHttpClientTransport, Transport,
        streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError},
    },
};

use crate::{
    Server,
    call::Calls,
    notifications::{Listener, Observed},
    process::{self, Process, Stderr},
    server::Reach,
};

/// A server after the handshake.
pub(crate) struct Connection {
    pub(crate) service: RunningService<RoleClient, ClientConfig>,
    /// Subscribes to changes at a server of the newest protocol.
    pub(crate) subscription: Option<Subscription>,
}

/// A server's process, if it has one. It outlives the connection, to report how it ended.
#[derive(Default)]
pub(crate) struct Local {
    pub(crate) process: Option<Process>,
    pub(crate) stderr: Stderr,
}

impl Local {
    /// Ends the process, and returns how it ended, with the end of its stderr.
    pub(crate) async fn end(&mut self, name: &str, calls: &Calls) -> String {
        let Some(process) = self.process.take() else { return String::new() };
        // Its stderr is read meanwhile: a full pipe would block its exit.
        let ended = unless(self.stderr.drain(name, calls), process.end()).await.flatten();
        let mut farewell = ended.map_or_else(String::new, |status| format!(" ({status})"));
        let words = self.stderr.stderr_tail(name, calls).await;
        if !words.is_empty() {
            farewell.push_str(&format!("; it said last: {words}"));
        }
        farewell
    }
}

/// Starts or reaches a server, and performs the handshake.
///
/// # Errors
/// The reason, which may hold secrets; `local` may have more of it by then.
pub(crate) async fn open(
    name: &str,
    server: &Server,
    calls: &Calls,
    local: &mut Local,
    listener: Arc<dyn Listener>,
) -> Result<Connection, String> {
    let mut secrets = Secrets::default();
    let known = |secrets: Secrets| drop(calls.secrets.set(secrets));
    match &server.reach {
        Reach::Command { program, args, env, dir } => {
            let mut expand = |text: &String| expand(&mut secrets, text);
            let args = args.iter().map(&mut expand).collect::<Result<Vec<_>, _>>()?;
            let env = env.iter().map(|(name, value)| Ok((name.clone(), expand(value)?)));
            let env = env.collect::<Result<_, String>>()?;
            let program = expand(program)?;
            known(secrets);
            let started = process::start(&program, &args, &env, dir.as_deref());
            let (process, pipes, stderr) = started.map_err(|error| unstarted(server, &program, &error))?;
            *local = Local { process: Some(process), stderr };
            let greeting = greet(IntoTransport::<RoleClient, _, _>::into_transport(pipes), listener);
            let greeted = unless(local.stderr.drain(name, calls), greeting).await;
            greeted.unwrap_or_else(|| Err("reading its stderr ended".to_owned()))
        }
        Reach::Http { url, headers } => {
            let url = expand(&mut secrets, url)?;
            let parsed = reqwest::Url::parse(&url).ok();
            parsed.iter().for_each(|url| secrets.add_url(url));
            let mut config = StreamableHttpClientTransportConfig::with_uri(url);
            let headers = header_map(&mut secrets, headers)?.into_iter();
            config.custom_headers = headers.filter_map(|(name, value)| Some((name?, value))).collect();
            known(secrets);
            if let Some((reach, url)) = server.within.as_ref().zip(parsed) {
                reach.check(&url).map_err(|error| format!("{server}: {error}"))?;
            }
            let client = server.within.as_ref().map_or_else(mainstem_outbound::client, client_within);
            let client = client.map_err(|error| error.to_string())?;
            let greeting = greet(StreamableHttpClientTransport::with_client(client, config), listener);
            greeting.await.map_err(|why| format!("{server}: {why}"))
        }
    }
}

fn unstarted(server: &Server, program: &str, error: &std::io::Error) -> String {
    let hint = if program.contains(' ') { "; write the arguments into `args`" } else { "" };
    format!("`{server}` does not start: {error}{hint}")
}

async fn greet<T>(transport: T, listener: Arc<dyn Listener>) -> Result<Connection, String>
where
    T: Transport<RoleClient> + 'static,
{
    let us = Implementation::new("mainstem", env!("CARGO_PKG_VERSION"));
    let us = ClientConfig::new(ClientCapabilities::default(), us);
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    let service = us.serve_with_lifecycle(Observed::new(transport, listener), lifecycle).await;
    let service = service.map_err(why)?;
    let subscription = subscribe(&service).await;
    Ok(Connection { service, subscription })
}

/// Subscribes to changes: servers of the newest protocol announce them only to subscribers. Without
/// a subscription the tools stay as they are.
async fn subscribe(service: &RunningService<RoleClient, ClientConfig>) -> Option<Subscription> {
    let info = service.peer_info()?;
    let tells = info.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true));
    if info.protocol_version.has_initialize() || !tells {
        return None;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let subscribed = service.listen(filter).await;
    subscribed.inspect_err(|error| tracing::debug!("no news of tools: {}", chain(error))).ok()
}

fn expand(secrets: &mut Secrets, text: &str) -> Result<String, String> {
    let var = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    secrets.expand(text, var).map_err(|error| error.to_string())
}

fn header_map(
    secrets: &mut Secrets,
    headers: &std::collections::BTreeMap<String, String>,
) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let value = expand(secrets, value)?;
        secrets.add_header(&value);
        let header = HeaderName::try_from(name.as_str())
            .map_err(|_| format!("{name:?} is not a valid header name"))?;
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            format!("the value of header {name} has characters that are not allowed in headers")
        })?;
        value.set_sensitive(true);
        map.insert(header, value);
    }
    Ok(map)
}

/// Returns why the handshake failed, without the names of rmcp's types.
fn why(error: ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => match root(&*error.error) {
            pipe if pipe.contains("Broken pipe") => "it ended before it was greeted".to_owned(),
            why => why,
        },
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => why(*fallback),
        ClientInitializeError::JsonRpcError(said) => {
            format!("it refuses the greeting: {} ({})", said.message, said.code.0)
        }
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
        other => chain(&other),
    }
}

/// Returns the innermost cause: the outer ones only say that something failed.
pub(crate) fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = match error.downcast_ref() {
        // This type does not return it as its source.
        Some(StreamableHttpError::<reqwest::Error>::Client(error)) => error,
        _ => error,
    };
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Returns an error with its causes, each once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let (mut text, mut source) = (error.to_string(), error.source());
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = cause.source();
    }
    text
}
