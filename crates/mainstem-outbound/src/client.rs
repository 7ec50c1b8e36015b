//! The HTTP client.

use std::time::Duration;

use reqwest::{Client, redirect::Policy};

/// How long connecting may take; the answer itself has no limit here.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Builds a client, and installs the process's crypto provider: it connects within 10 s, sets
/// `TCP_NODELAY`, follows no redirects and asks for no compression, which would hold back what is
/// streamed.
///
/// # Errors
/// If TLS is not available.
pub fn client() -> reqwest::Result<Client> {
    // Refused if one is installed already, which then serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("mainstem/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        // A compressed stream arrives in lumps.
        .no_gzip()
        // A redirected POST becomes a GET, and `api-key` would go to a stranger.
        .redirect(Policy::none())
        .build()
}
