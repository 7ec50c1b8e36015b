//! The card of an agent: where it is, and which of its interfaces is used.

use mainstem_a2a::{
    extension::URI,
    sdk::{AgentCard, AgentInterface, TRANSPORT_PROTOCOL_HTTP_JSON, TRANSPORT_PROTOCOL_JSONRPC},
};
use reqwest::Url;

use crate::{RemoteError, http::Connection};

/// The path of a card.
const WELL_KNOWN: [&str; 2] = [".well-known", "agent-card.json"];

/// How an agent is reached.
#[derive(Clone, Debug)]
pub(super) struct Interface {
    pub(super) url: Url,
    pub(super) binding: Binding,
    pub(super) tenant: Option<String>,
    pub(super) is_streaming: bool,
    /// Whether the server has our extension.
    pub(super) has_events: bool,
}

/// A binding of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    JsonRpc,
    HttpJson,
}

/// Reads the card at the address of a connection: there, below it, or on its host.
///
/// # Errors
/// There is no card, or it is not one of this version.
pub(super) async fn find(connection: &Connection) -> Result<AgentCard, RemoteError> {
    let base = connection.url(&[]);
    if base.path().ends_with(".json") {
        return connection.get(base).await;
    }
    let found = connection.get(connection.url(&WELL_KNOWN)).await;
    let mut root = base.clone();
    root.set_path(&WELL_KNOWN.join("/"));
    match found {
        Err(RemoteError::Refused { .. }) if base.path() != "/" => connection.get(root).await,
        found => found,
    }
}

/// Chooses an interface: the first of the card that is spoken here. It has to be on the host of the
/// card, for the declaration has allowed that host, and its headers may have secrets.
///
/// # Errors
/// None is spoken here.
pub(super) fn interface(connection: &Connection, card: &AgentCard) -> Result<Interface, RemoteError> {
    let is_streaming = card.capabilities.streaming == Some(true);
    let extensions = card.capabilities.extensions.iter().flatten();
    let has_events = is_streaming && extensions.into_iter().any(|extension| extension.uri == URI);
    let mut refused = Vec::new();
    for offered in &card.supported_interfaces {
        match spoken(connection, offered) {
            Ok((url, binding)) => {
                let tenant = offered.tenant.clone().filter(|tenant| !tenant.is_empty());
                return Ok(Interface { url, binding, tenant, is_streaming, has_events });
            }
            Err(why) => refused.push(why),
        }
    }
    let offered = if refused.is_empty() { "none".to_owned() } else { refused.join("; ") };
    Err(connection.invalid(&format!("the card has no interface that can be used: {offered}")))
}

fn spoken(connection: &Connection, offered: &AgentInterface) -> Result<(Url, Binding), String> {
    let AgentInterface { url, protocol_binding, protocol_version, .. } = offered;
    let binding = match protocol_binding {
        name if name.eq_ignore_ascii_case(TRANSPORT_PROTOCOL_JSONRPC) => Binding::JsonRpc,
        name if name.eq_ignore_ascii_case(TRANSPORT_PROTOCOL_HTTP_JSON) => Binding::HttpJson,
        name => return Err(format!("{name} is not spoken here")),
    };
    if protocol_version != "1" && !protocol_version.starts_with("1.") {
        return Err(format!("{protocol_binding} is of version {protocol_version:?}, not 1.0"));
    }
    let url = connection.on_its_host(url).ok_or_else(|| format!("{protocol_binding} is on another host"))?;
    Ok((url, binding))
}
