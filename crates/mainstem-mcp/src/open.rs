//! From a declaration to a connection.

use std::sync::Arc;

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
    process::{self, Process, Stderr},
    server::Reach,
    tap::{Listener, Tap},
    vars::Vars,
};

/// A server that has been greeted.
pub(crate) struct Connection {
    pub(crate) service: RunningService<RoleClient, ClientConfig>,
    /// Keeps a server of the newest protocol telling of changes.
    pub(crate) subscription: Option<Subscription>,
}

/// A server's process, if it has one. Outlives the connection, to tell how it ended.
#[derive(Default)]
pub(crate) struct Local {
    pub(crate) process: Option<Process>,
    pub(crate) stderr: Stderr,
}

impl Local {
    /// Ends the process, and tells how it ended and what it said last.
    pub(crate) async fn end(&mut self, name: &str, calls: &Calls) -> String {
        let Some(process) = self.process.take() else { return String::new() };
        // Who writes farewells must not wait for them to be read.
        let ended = unless(self.stderr.drain(name, calls), process.end()).await.flatten();
        let mut farewell = ended.map_or_else(String::new, |status| format!(" ({status})"));
        let words = self.stderr.last_words(name, calls).await;
        if !words.is_empty() {
            farewell.push_str(&format!("; it said last: {words}"));
        }
        farewell
    }
}

/// Starts or reaches a server, and greets it.
///
/// # Errors
/// Why that did not work, in words that may hold secrets; what is in `local` by then may know more.
pub(crate) async fn open(
    name: &str,
    server: &Server,
    calls: &Calls,
    local: &mut Local,
    listener: Arc<dyn Listener>,
) -> Result<Connection, String> {
    let mut vars = Vars::default();
    let known = |vars: Vars| drop(calls.vars.set(vars));
    match &server.reach {
        Reach::Command { program, args, env, dir } => {
            let mut expand = |text: &String| expand(&mut vars, text);
            let args = args.iter().map(&mut expand).collect::<Result<Vec<_>, _>>()?;
            let env = env.iter().map(|(name, value)| Ok((name.clone(), expand(value)?)));
            let env = env.collect::<Result<_, String>>()?;
            let program = expand(program)?;
            known(vars);
            let started = process::start(&program, &args, &env, dir.as_deref());
            let (process, pipes, stderr) = started.map_err(|error| unstarted(server, &program, &error))?;
            *local = Local { process: Some(process), stderr };
            let greeting = greet(IntoTransport::<RoleClient, _, _>::into_transport(pipes), listener);
            let greeted = unless(local.stderr.drain(name, calls), greeting).await;
            greeted.unwrap_or_else(|| Err("its stderr was read to an end that does not exist".to_owned()))
        }
        Reach::Http { url, headers } => {
            let url = expand(&mut vars, url)?;
            let parsed = reqwest::Url::parse(&url).ok();
            parsed.iter().for_each(|url| vars.secrets.add_url(url));
            let mut config = StreamableHttpClientTransportConfig::with_uri(url);
            let headers = header_map(&mut vars, headers)?.into_iter();
            config.custom_headers = headers.filter_map(|(name, value)| Some((name?, value))).collect();
            known(vars);
            let client = mainstem_outbound::client().map_err(|error| error.to_string())?;
            let greeting = greet(StreamableHttpClientTransport::with_client(client, config), listener);
            greeting.await.map_err(|why| format!("{server}: {why}"))
        }
    }
}

fn unstarted(server: &Server, program: &str, error: &std::io::Error) -> String {
    let hint =
        if program.contains(' ') { "; what stands behind the program belongs into `args`" } else { "" };
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
    let service = us.serve_with_lifecycle(Tap::new(transport, listener), lifecycle).await;
    let service = service.map_err(why)?;
    let subscription = subscribe(&service).await;
    Ok(Connection { service, subscription })
}

/// Servers of the newest protocol tell of changes only to those who ask for it. One that can't be
/// asked has the tools that it has.
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

fn expand(vars: &mut Vars, text: &str) -> Result<String, String> {
    let var = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    vars.expand(text, var).map_err(|error| error.to_string())
}

fn header_map(
    vars: &mut Vars,
    headers: &std::collections::BTreeMap<String, String>,
) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let value = expand(vars, value)?;
        vars.secrets.add_header(&value);
        let header =
            HeaderName::try_from(name.as_str()).map_err(|_| format!("{name:?} is no name of a header"))?;
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| format!("the value of header {name} has characters that no header may have"))?;
        value.set_sensitive(true);
        map.insert(header, value);
    }
    Ok(map)
}

/// Why there is no greeting, without the names of rmcp's types.
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

/// The innermost cause: the others only say that something failed.
pub(crate) fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = match error.downcast_ref() {
        // It does not call this its source.
        Some(StreamableHttpError::<reqwest::Error>::Client(error)) => error,
        _ => error,
    };
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// An error with its causes, each said once.
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
