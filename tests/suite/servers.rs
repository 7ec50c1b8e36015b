//! Three servers that share a database, behind a balancer, in place of one.

use std::{cell::RefCell, time::Duration};

use futures_util::future::join_all;
use mainstem::prelude::{Harness, HarnessBuilder};
use mainstem_postgres::{Node, Settings};
use mainstem_server::{Builder, Server};
use mainstem_testing::{Postgres, Proxy};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) const SERVERS: usize = 3;

thread_local! {
    /// The database that the latest servers of this thread's test have left, for those that follow
    /// them.
    static LEFT: RefCell<Option<Postgres>> = const { RefCell::new(None) };
}

pub(crate) struct Servers {
    pub(crate) url: String,
    servers: Vec<One>,
    database: Option<Postgres>,
}

struct One {
    url: String,
    server: Server,
    harness: Harness,
    serving: tokio::task::JoinHandle<()>,
}

impl Servers {
    /// Serves until `stop` is cancelled. The journal of the builder gives way to the database.
    pub(crate) async fn start(
        harness: HarnessBuilder,
        build: impl Fn(Builder) -> Builder,
        stop: CancellationToken,
    ) -> Self {
        let database = LEFT.take().unwrap_or_else(Postgres::start);
        let settings = Settings::parse(&database.url()).unwrap();
        mainstem_postgres::migrate(&settings).await.unwrap();
        let balancer = Proxy::before([]).await;
        let mut servers = Vec::new();
        for number in 0..SERVERS {
            let node = Node::join(settings.clone().with_name(format!("node-{number}"))).await.unwrap();
            let harness = harness.clone().with_journal(node.journal()).with_task_store(node.tasks());
            let harness = harness.build().unwrap();
            let server = build(Server::new(harness.clone())).build().unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            balancer.add(port);
            let (served, stop) = (server.clone(), stop.clone());
            #[expect(clippy::disallowed_methods, reason = "ended by `stop`")]
            let serving = tokio::spawn(async move { served.serve(listener, stop).await.unwrap() });
            servers.push(One { url: format!("http://127.0.0.1:{port}"), server, harness, serving });
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
        self.servers.iter().map(|one| one.server.live_runs()).sum()
    }

    /// Waits until they have stopped, with their runs.
    pub(crate) async fn stopped(&mut self) {
        join_all(self.servers.iter_mut().map(One::stopped)).await;
        LEFT.set(self.database.take());
    }

    /// Closes their journals.
    pub(crate) async fn close(&self) {
        for one in &self.servers {
            one.harness.journal().unwrap().close().await.unwrap();
        }
    }
}

impl One {
    async fn stopped(&mut self) {
        (&mut self.serving).await.unwrap();
        self.harness.shutdown(Duration::from_secs(1)).await;
    }
}
