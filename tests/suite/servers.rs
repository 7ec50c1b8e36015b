//! Three servers that share a database, behind a balancer, in place of one.

#[expect(dead_code, reason = "its tests use what these do not")]
#[path = "../../crates/mainstem-server/tests/http/servers.rs"]
mod one;

use std::{cell::RefCell, sync::Arc};

use futures_util::future::join_all;
use mainstem::{journal::Journal, prelude::HarnessBuilder};
use mainstem_postgres::{Node, Settings};
use mainstem_server::Builder;
use mainstem_testing::{Postgres, Proxy};
use tokio_util::sync::CancellationToken;

const SERVERS: usize = 3;

thread_local! {
    /// The database that the latest servers of this thread's test have left, for those that follow
    /// them.
    static LEFT: RefCell<Option<Postgres>> = const { RefCell::new(None) };
}

/// Returns the journal of a further node, which the test reads and changes itself; the servers that
/// start next share its database.
pub(crate) async fn journal() -> Arc<dyn Journal> {
    let database = Postgres::start();
    let settings = migrated(&database).await;
    LEFT.set(Some(database));
    Arc::new(Node::join(settings.with_name("test")).await.unwrap().journal())
}

async fn migrated(database: &Postgres) -> Settings {
    let settings = Settings::parse(&database.url()).unwrap();
    mainstem_postgres::migrate(&settings).await.unwrap();
    settings
}

pub(crate) struct Servers {
    pub(crate) url: String,
    servers: Vec<one::Servers>,
    database: Option<Postgres>,
}

impl Servers {
    /// Serves until `stop` is cancelled. The database replaces the journal of the builder.
    pub(crate) async fn start(
        harness: HarnessBuilder,
        build: impl Fn(Builder) -> Builder,
        stop: CancellationToken,
    ) -> Self {
        let database = LEFT.take().unwrap_or_else(Postgres::start);
        let settings = migrated(&database).await;
        let balancer = Proxy::before([]).await;
        let mut servers = Vec::new();
        for number in 0..SERVERS {
            let node = Node::join(settings.clone().with_name(format!("node-{number}"))).await.unwrap();
            let harness = harness.clone().with_journal(node.journal()).with_task_store(node.tasks());
            let server = one::Servers::start(harness, &build, stop.clone()).await;
            let port = server.url.rsplit(':').next().unwrap();
            balancer.add(port.parse().unwrap());
            servers.push(server);
        }
        Self { url: format!("http://127.0.0.1:{}", balancer.port()), servers, database: Some(database) }
    }

    pub(crate) fn urls(&self) -> Vec<&str> {
        self.servers.iter().map(|one| &*one.url).collect()
    }

    /// Returns a client each of whose requests has a connection, and so a server, of its own.
    pub(crate) fn client(&self) -> reqwest::Client {
        reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap()
    }

    /// Returns how many runs are queued or active.
    pub(crate) fn live_runs(&self) -> usize {
        self.servers.iter().map(one::Servers::live_runs).sum()
    }

    pub(crate) async fn drain(&self) {
        join_all(self.servers.iter().map(one::Servers::drain)).await;
    }

    /// Waits until they have stopped, with their runs.
    pub(crate) async fn stopped(&mut self) {
        join_all(self.servers.iter_mut().map(one::Servers::stopped)).await;
        LEFT.set(self.database.take());
    }

    /// Closes their journals.
    pub(crate) async fn close(&self) {
        join_all(self.servers.iter().map(one::Servers::close)).await;
    }
}
