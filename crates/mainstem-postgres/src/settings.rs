//! How a node connects: the database's URL, its password, TLS, and the node's name and lease.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use percent_encoding::percent_decode_str;
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use crate::Error;

/// How long a node's lease lasts unless it is renewed. Another node takes a session over that much
/// later than its node's last sign of life.
pub const LEASE: Duration = Duration::from_secs(10);

/// The most connections for requests of one node; the writer and the lease have one each besides.
const CONNECTIONS: usize = 8;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long sent data may stay unacknowledged before a connection counts as lost.
const SILENCE: Duration = Duration::from_secs(10);

/// The database that a node joins, and as what.
///
/// ```
/// # use mainstem_postgres::Settings;
/// let settings = Settings::parse("postgres://fleet@db.example/agents?sslmode=require")?;
/// assert_eq!(settings.place(), "postgres://fleet@db.example:5432/agents");
/// # Ok::<(), mainstem_postgres::Error>(())
/// ```
#[derive(Clone)]
pub struct Settings {
    pub(crate) config: Config,
    /// A file with the certificates of the authorities that the server's may be from; by default
    /// those of the system.
    pub(crate) roots: Option<PathBuf>,
    pub(crate) place: String,
    pub(crate) name: String,
    pub(crate) lease: Duration,
    pub(crate) connections: usize,
    /// Whether it only reads, and is not a node.
    pub(crate) only_reads: bool,
}

impl Settings {
    /// Parses a URL as libpq has them (`postgres://user@host:port/database?sslmode=require`), or
    /// its form with keywords. `sslmode` is `disable`, `prefer` (TLS if the server has it) or
    /// `require`; with TLS the server's certificate and its name are always verified, so
    /// `verify-ca` and `verify-full` are the same as `require`. `sslrootcert` is a file with the
    /// certificates of authorities (PEM), which replace the system's; it means `require` unless
    /// there is a mode.
    ///
    /// # Errors
    /// [`Error::Settings`]. It does not contain the URL, which may have a password.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let is_tls = url.contains("sslrootcert=") && !url.contains("sslmode=");
        let (url, roots) = without_roots(url);
        let url = url.replace("sslmode=verify-full", "sslmode=require");
        let url = url.replace("sslmode=verify-ca", "sslmode=require");
        let mut config = Config::from_str(&url).map_err(|error| Error::Settings(error.to_string()))?;
        let Some(place) = place(&config) else {
            return Err(Error::Settings("it names no host".to_owned()));
        };
        if is_tls {
            config.ssl_mode(SslMode::Require);
        }
        config.application_name("mainstem").connect_timeout(CONNECT_TIMEOUT).tcp_user_timeout(SILENCE);
        config.keepalives_idle(SILENCE).keepalives_interval(Duration::from_secs(2)).keepalives_retries(3);
        let (name, lease, connections) = (host_name(), LEASE, CONNECTIONS);
        Ok(Self { config, roots, place, name, lease, connections, only_reads: false })
    }

    /// Sets the password, which replaces one in the URL.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.config.password(password);
        self
    }

    /// Sets the node's name, which operators see; by default that of the host.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets how long the node's lease lasts. All nodes of a database should have the same.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets how many connections serve requests; at least one. The node has two besides.
    #[must_use]
    pub fn with_connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// Returns `true` if there is a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// Returns the database as a URL without its password.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns `true` if a connection may use TLS.
    pub(crate) fn may_use_tls(&self) -> bool {
        self.config.get_ssl_mode() != SslMode::Disable
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, name, lease, connections, .. } = self;
        f.debug_struct("Settings")
            .field("place", place)
            .field("name", name)
            .field("lease", lease)
            .field("connections", connections)
            .finish_non_exhaustive()
    }
}

/// Takes `sslrootcert`, which the client does not know, out of a URL or its form with keywords.
/// `system` means the system's certificates, as in libpq.
fn without_roots(url: &str) -> (String, Option<PathBuf>) {
    const NAME: &str = "sslrootcert=";
    let (head, parameters, separator) = match (url.contains("://"), url.split_once('?')) {
        (true, Some((head, query))) => (format!("{head}?"), query, '&'),
        (true, None) => return (url.to_owned(), None),
        (false, _) => (String::new(), url, ' '),
    };
    let (roots, others): (Vec<_>, Vec<_>) =
        parameters.split(separator).partition(|parameter| parameter.starts_with(NAME));
    let roots = roots.last().map(|parameter| match separator {
        '&' => percent_decode_str(&parameter[NAME.len()..]).decode_utf8_lossy().into_owned(),
        _ => parameter[NAME.len()..].trim_matches('\'').to_owned(),
    });
    let rest = others.join(&separator.to_string());
    (head + &rest, roots.filter(|file| file != "system").map(PathBuf::from))
}

/// Returns the database without its password; `None` if no host is named.
fn place(config: &Config) -> Option<String> {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        #[cfg(unix)]
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => config.get_hostaddrs().first()?.to_string(),
    };
    let port = config.get_ports().first().unwrap_or(&5432);
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let database = config.get_dbname().or_else(|| config.get_user()).unwrap_or_default();
    Some(format!("postgres://{user}{host}:{port}/{database}"))
}

fn host_name() -> String {
    let name = std::env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    let name = name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    name.unwrap_or_else(|| "node".to_owned())
}

#[cfg(test)]
mod tests;
