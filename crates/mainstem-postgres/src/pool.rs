//! Connections: a pool for requests, one for the writer, and one for the lease.

use std::{path::Path, sync::Arc, time::Duration};

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts,
};
use futures_util::stream::poll_fn;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::time::{error::Elapsed, timeout};
use tokio_postgres::Client;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{
    Error, Settings,
    error::{Failure, Result},
};

/// How long a request waits for a connection.
const WAIT: Duration = Duration::from_secs(10);

/// Set on every connection. The limits are the server's: a node that is paused or cut off within a
/// transaction must not hold its locks for longer than its lease.
const SESSION: &str = "SET search_path = mainstem;
    SET idle_in_transaction_session_timeout = '5s';
    SET lock_timeout = '5s';
    SET statement_timeout = '60s';
    SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;
    SET tcp_user_timeout = '10s'";

/// Set, too, on the connections of one that only reads.
const READ_ONLY: &str = "SET default_transaction_read_only = on";

/// How connections are made.
#[derive(Clone)]
pub(crate) struct Connector {
    settings: Settings,
    /// Also for connections without TLS, which don't use it.
    tls: MakeRustlsConnect,
}

impl Connector {
    pub(crate) fn new(settings: Settings) -> Result<Self, Error> {
        Ok(Self { tls: tls(&settings)?, settings })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Creates a pool; it connects when it is used, on the runtime of its user.
    pub(crate) fn pool(&self, connections: usize) -> Result<Pool, Error> {
        let recycle = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(self.settings.config.clone(), self.tls.clone(), recycle);
        let settings =
            if self.settings.only_reads { format!("{SESSION}; {READ_ONLY}") } else { SESSION.into() };
        let settings: Arc<str> = settings.into();
        let prepare = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
            let settings = settings.clone();
            Box::pin(async move { client.batch_execute(&settings).await.map_err(HookError::Backend) })
        });
        let timeouts = Timeouts { wait: Some(WAIT), create: Some(WAIT), recycle: Some(WAIT) };
        let pool = Pool::builder(manager).max_size(connections).post_create(prepare).timeouts(timeouts);
        let pool = pool.runtime(Runtime::Tokio1).build();
        pool.map_err(|error| Failure::permanent(error.to_string()).at("use", self.settings.place()))
    }

    /// Connects once, without a pool. `with` gets the client and what must be polled for it.
    pub(crate) async fn connect<T>(&self, with: impl AsyncFnOnce(Client, Messages) -> T) -> Result<T> {
        let connecting = self.settings.config.connect(self.tls.clone());
        let (client, mut connection) = timeout(WAIT, connecting).await.map_err(late)??;
        let messages = poll_fn(move |cx| connection.poll_message(cx));
        Ok(with(client, Box::pin(messages)).await)
    }
}

/// A connection, as messages from the server.
pub(crate) type Messages = futures_util::stream::BoxStream<
    'static,
    std::result::Result<tokio_postgres::AsyncMessage, tokio_postgres::Error>,
>;

pub(crate) fn late(_: Elapsed) -> Failure {
    Failure::transient("the database does not answer")
}

/// Takes a connection from a pool.
pub(crate) async fn get(pool: &Pool) -> Result<Object> {
    Ok(pool.get().await?)
}

fn tls(settings: &Settings) -> Result<MakeRustlsConnect, Error> {
    let failed = |error: rustls::Error| Error::Tls(error.to_string());
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(failed)?;
    let builder = match &settings.roots {
        _ if !settings.may_use_tls() => builder.with_root_certificates(RootCertStore::empty()),
        Some(file) => {
            let why = |why: String| Error::Tls(format!("sslrootcert={}: {why}", file.display()));
            builder.with_root_certificates(certificates(file).map_err(why)?)
        }
        None => builder.with_platform_verifier().map_err(failed)?,
    };
    Ok(MakeRustlsConnect::new(builder.with_no_client_auth()))
}

fn certificates(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| error.to_string())? {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() { Err("it has no certificate".to_owned()) } else { Ok(roots) }
}
