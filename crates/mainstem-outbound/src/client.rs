//! The HTTP clients.

mod rootless;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{Client, ClientBuilder, redirect::Policy};
use rustls::{
    ClientConfig,
    crypto::{CryptoProvider, ring},
};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::Reach;

/// How long connecting may take; the answer itself has no limit here.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The `User-Agent` of requests.
pub const USER_AGENT: &str = concat!("mainstem/", env!("CARGO_PKG_VERSION"));

/// Builds a client: it connects within 10 s, sets `TCP_NODELAY`, follows no redirects and asks for
/// no compression, which would hold back what is streamed.
///
/// # Errors
/// If TLS is not available.
pub fn client() -> reqwest::Result<Client> {
    configured().build()
}

/// Builds the same client within a reach.
///
/// # Errors
/// If TLS is not available.
pub fn client_within(reach: &Reach) -> reqwest::Result<Client> {
    reach.limit(configured()).build()
}

fn configured() -> ClientBuilder {
    builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        // A compressed stream arrives in lumps.
        .no_gzip()
        // A redirected POST becomes a GET, and `api-key` would go to a stranger.
        .redirect(Policy::none())
}

/// Creates a builder of clients that have the process's TLS configuration: the root certificates
/// are read once. Installs the process's crypto provider.
///
/// On a machine without root certificates, such as a small container, `http` works, and requests
/// to `https` fail with an error that says what is missing.
pub fn builder() -> ClientBuilder {
    // Refused if one is installed already, which then serves as well.
    let _ = ring::default_provider().install_default();
    match tls() {
        Some(tls) => Client::builder().tls_backend_preconfigured(tls),
        // Building the client has the error.
        None => Client::builder(),
    }
}

/// Returns the process's TLS configuration; `None` if the crypto provider has no version of TLS.
fn tls() -> Option<ClientConfig> {
    static TLS: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(tls) = TLS.get() {
        return Some(tls.clone());
    }
    let provider =
        CryptoProvider::get_default().map_or_else(|| Arc::new(ring::default_provider()), Arc::clone);
    let versions =
        |provider| ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let Ok(verified) = versions(provider.clone()).ok()?.with_platform_verifier() else {
        // Not stored: the certificates may be there next time.
        return Some(offering_both(rootless::configuration(versions(provider).ok()?)));
    };
    Some(TLS.get_or_init(|| offering_both(verified.with_no_client_auth())).clone())
}

/// Offers both versions of HTTP.
fn offering_both(mut tls: ClientConfig) -> ClientConfig {
    tls.alpn_protocols = vec!["h2".into(), "http/1.1".into()];
    tls
}

#[cfg(test)]
mod tests;
