//! Parses hosts as Ollama's own clients parse `OLLAMA_HOST`.
//!
//! The sources are `envconfig.ConnectableHost` of Ollama itself and `_parse_host` of its Python
//! library.

use std::net::Ipv6Addr;

use mainstem_http::{ConfigError, Url, parse};

/// The host of Ollama's cloud.
pub(crate) const CLOUD: &str = "ollama.com";

/// The port of a host without a scheme.
const PORT: &str = ":11434";

/// Parses the base URL of a host.
pub(crate) fn base_url(host: &str) -> Result<Url, ConfigError> {
    let mut url = parse(&spelled_out(host.trim().trim_matches(['"', '\'']).trim()))?;
    connectable(&mut url)?;
    Ok(url)
}

/// Returns the URL. With a scheme, the port is that of the scheme.
fn spelled_out(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").map_or((None, host), |(scheme, rest)| (Some(scheme), rest));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match scheme {
        Some(scheme) => format!("{scheme}://{}{path}", with_port(authority, "")),
        None if authority == CLOUD => format!("https://{rest}"),
        None => format!("http://{}{path}", with_port(authority, PORT)),
    }
}

fn with_port(authority: &str, default: &str) -> String {
    if authority.parse::<Ipv6Addr>().is_ok() {
        return format!("[{authority}]{default}");
    }
    let host = if authority.is_empty() || authority.starts_with(':') { "127.0.0.1" } else { "" };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| is_port(port));
    format!("{host}{authority}{}", if has_port { "" } else { default })
}

/// Replaces the unspecified address, at which servers listen, by one that clients can connect to on
/// every system.
fn connectable(url: &mut Url) -> Result<(), ConfigError> {
    let loopback = match url.host_str() {
        Some("0.0.0.0") => "127.0.0.1",
        Some("[::]") => "[::1]",
        _ => return Ok(()),
    };
    url.set_host(Some(loopback)).map_err(|error| ConfigError::base_url(loopback, error.to_string()))
}

#[cfg(test)]
mod tests;
