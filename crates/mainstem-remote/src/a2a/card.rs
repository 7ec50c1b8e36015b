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
/// The server has no card, or its card has another version.
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

#[cfg(test)]
mod tests {
    //! Which interface is used.

    use mainstem_outbound::Reach;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_interface_is_on_the_host_of_its_card() {
        let connection = Connection::at("https://host.example:8443/agents/far", &Reach::public()).unwrap();
        let check = |interfaces: Value, expected: Result<(&str, Binding), &str>| {
            let card = json!({ "name": "far", "version": "1", "capabilities": {}, "supportedInterfaces": interfaces });
            let found = interface(&connection, &serde_json::from_value(card).unwrap());
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!((found.url.as_str(), found.binding), expected),
                (Err(error), Err(expected)) => assert!(error.to_string().ends_with(expected), "{error}"),
                other => panic!("{other:?}"),
            }
        };
        let one = |url: &str, binding: &str, version: &str| json!({ "url": url, "protocolBinding": binding, "protocolVersion": version });
        let (good, rpc) = ("https://host.example:8443/rpc", "JSONRPC");
        check(json!([one(good, rpc, "1.0")]), Ok((good, Binding::JsonRpc)));
        check(
            json!([one(good, "GRPC", "1.0"), one(good, "HTTP+JSON", "1.1")]),
            Ok((good, Binding::HttpJson)),
        );
        check(json!([]), Err("the card has no interface that can be used: none"));
        check(json!([one(good, rpc, "0.3")]), Err("JSONRPC is of version \"0.3\", not 1.0"));
        let elsewhere = Err("JSONRPC is on another host");
        for url in [
            "https://evil.example:8443/rpc",
            "https://host.example/rpc",
            "http://host.example:8443/rpc",
            "https://evil@host.example:8443/rpc",
            "/rpc",
        ] {
            check(json!([one(url, rpc, "1.0")]), elsewhere);
        }
    }
}
