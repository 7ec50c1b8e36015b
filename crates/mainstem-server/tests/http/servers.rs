//! One server on the loopback. `tests/suite/servers.rs` has three in its place.

use std::{sync::Arc, time::Duration};

use mainstem::{
    journal::{Journal, MemoryJournal},
    prelude::{Harness, HarnessBuilder},
};
use mainstem_server::{Builder, Server};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Returns a journal for one server after the other, which the test reads and changes itself.
pub(crate) async fn journal() -> Arc<dyn Journal> {
    Arc::new(MemoryJournal::new())
}

pub(crate) struct Servers {
    pub(crate) url: String,
    server: Server,
    harness: Harness,
    serving: tokio::task::JoinHandle<()>,
}

impl Servers {
    /// Serves until `stop` is cancelled.
    pub(crate) async fn start(
        harness: HarnessBuilder,
        build: impl Fn(Builder) -> Builder,
        stop: CancellationToken,
    ) -> Self {
        let harness = harness.build().unwrap();
        let server = build(Server::new(harness.clone())).build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = server.clone();
        #[expect(clippy::disallowed_methods, reason = "ended by `stop`")]
        let serving = tokio::spawn(async move { served.serve(listener, stop).await.unwrap() });
        Self { url, server, harness, serving }
    }

    pub(crate) fn urls(&self) -> [&str; 1] {
        [&self.url]
    }

    pub(crate) fn client(&self) -> reqwest::Client {
        reqwest::Client::new()
    }

    /// Returns how many runs are queued or active.
    pub(crate) fn live_runs(&self) -> usize {
        self.server.live_runs()
    }

    pub(crate) async fn drain(&self) {
        self.server.drain().await;
    }

    /// Waits until it has stopped, with its runs.
    pub(crate) async fn stopped(&mut self) {
        (&mut self.serving).await.unwrap();
        self.harness.shutdown(Duration::from_secs(1)).await;
    }

    /// Closes the journal, so that another can have it.
    pub(crate) async fn close(&self) {
        self.harness.journal().unwrap().close().await.unwrap();
    }
}
