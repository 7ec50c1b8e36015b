//! Opens the store that a URL names.

use std::{sync::Arc, time::Duration};

use object_store::{
    ClientOptions, ObjectStore, RetryConfig,
    aws::AmazonS3Builder,
    client::{HttpClient, HttpConnector},
    local::LocalFileSystem,
    prefix::PrefixStore,
};

use super::SessionFiles;

/// How long a request may be repeated. A call of a tool waits for it.
const RETRYING: Duration = Duration::from_secs(60);

/// How long the service may say nothing.
const SILENCE: Duration = Duration::from_secs(20);

/// Why a store can't be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It is neither a directory nor the URL of a bucket.
    #[error("{0} is not a store of files: expected a directory, or s3://BUCKET/PATH")]
    Url(String),
    /// The directory can't be created.
    #[error("can't create the directory {path}: {source}")]
    #[non_exhaustive]
    Directory {
        /// The directory.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The settings of the store are incomplete or wrong.
    #[error("{url}: {source}")]
    #[non_exhaustive]
    Settings {
        /// The URL.
        url: String,
        /// The cause.
        source: object_store::Error,
    },
}

impl SessionFiles {
    /// Opens a directory, which is created if it is missing, or a bucket of a service with the API
    /// of S3: `s3://BUCKET/PATH`. Sends no request.
    ///
    /// The settings of a bucket come from the environment variables of the AWS command line:
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, for another service
    /// `AWS_ENDPOINT_URL`, and `AWS_ALLOW_HTTP=true` for one without TLS. The service must
    /// have conditional writes (`If-None-Match`).
    ///
    /// # Errors
    /// The URL has another scheme, the directory can't be created, or a setting is missing.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let settings = |source| StoreError::Settings { url: url.to_owned(), source };
        let store: Arc<dyn ObjectStore> = match url.split_once("://") {
            Some(("s3", place)) => {
                let prefix = place.split_once('/').map_or("", |(_, prefix)| prefix);
                let retry = RetryConfig { max_retries: 3, retry_timeout: RETRYING, ..RetryConfig::default() };
                let bucket = AmazonS3Builder::from_env().with_url(url).with_retry(retry);
                let bucket = bucket.with_http_connector(Connector).build().map_err(settings)?;
                Arc::new(PrefixStore::new(bucket, prefix))
            }
            Some(_) => return Err(StoreError::Url(url.to_owned())),
            None => {
                std::fs::create_dir_all(url)
                    .map_err(|source| StoreError::Directory { path: url.to_owned(), source })?;
                let local = LocalFileSystem::new_with_prefix(url).map_err(settings)?;
                Arc::new(local.with_automatic_cleanup(true).with_fsync(true))
            }
        };
        Ok(Self::new(store))
    }
}

/// Connects with the process's TLS configuration.
#[derive(Debug)]
struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = mainstem_outbound::builder()
            .connect_timeout(mainstem_outbound::CONNECT_TIMEOUT)
            .read_timeout(SILENCE)
            .build();
        let client =
            client.map_err(|source| object_store::Error::Generic { store: "S3", source: source.into() })?;
        Ok(HttpClient::new(client))
    }
}
