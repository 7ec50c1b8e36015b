//! The HTTP clients.

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
    builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        // A compressed stream arrives in lumps.
        .no_gzip()
        // A redirected POST becomes a GET, and `api-key` would go to a stranger.
        .redirect(Policy::none())
        .build()
}

/// Creates a builder of clients that have the process's TLS configuration: the root certificates
/// are read once. Installs the process's crypto provider.
pub fn builder() -> ClientBuilder {
    // Refused if one is installed already, which then serves as well.
    let _ = ring::default_provider().install_default();
    match tls() {
        Some(tls) => Client::builder().tls_backend_preconfigured(tls),
        // Building the client reads the certificates once more, and has the error.
        None => Client::builder(),
    }
}

/// Returns the process's TLS configuration; `None` if the root certificates can't be read.
fn tls() -> Option<ClientConfig> {
    static TLS: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(tls) = TLS.get() {
        return Some(tls.clone());
    }
    let provider =
        CryptoProvider::get_default().map_or_else(|| Arc::new(ring::default_provider()), Arc::clone);
    let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
    let mut tls = tls.with_platform_verifier().ok()?.with_no_client_auth();
    tls.alpn_protocols = vec!["h2".into(), "http/1.1".into()];
    Some(TLS.get_or_init(|| tls).clone())
}

#[cfg(test)]
mod tests;
