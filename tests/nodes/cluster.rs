//! Three servers in processes of their own, a database, and a balancer before the servers.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use mainstem_postgres::{Node, Settings};
use mainstem_testing::{Postgres, Proxy};
use tempfile::TempDir;
use tokio::{
    task::block_in_place,
    time::{sleep, timeout},
};

use crate::notices::Silenced;

/// The lease of the servers, short so that a test sees many ends of it.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

pub(crate) struct Cluster {
    pub(crate) database: Postgres,
    pub(crate) servers: Vec<Server>,
    balancer: Proxy,
    /// The files of sessions: a store for all, and a workspace for each server.
    _files: TempDir,
}

/// A server, and the network between it and the database.
pub(crate) struct Server {
    command: Command,
    process: Child,
    port: u16,
    network: Proxy,
    balancer: Proxy,
}

impl Cluster {
    pub(crate) async fn start(servers: usize) -> Self {
        Self::with_tokens(servers, "").await
    }

    /// Starts servers whose runs have this long to end when they are told to stop.
    pub(crate) async fn with_grace(servers: usize, grace: Duration) -> Self {
        let grace = grace.as_millis().to_string();
        Self::with(servers, LEASE, "", |command| _ = command.env("GRACE_MS", &grace)).await
    }

    /// Starts servers with an agent `far` at this address.
    pub(crate) async fn with_far(servers: usize, url: &str) -> Self {
        Self::with(servers, LEASE, "", |command| _ = command.env("FAR", url)).await
    }

    /// Starts servers that close the runs of those that have ended.
    pub(crate) async fn that_close(servers: usize) -> Self {
        Self::with(servers, LEASE, "", |command| _ = command.env("CLOSE_LOST", "1")).await
    }

    /// Starts servers with these tokens, in the form of a token file.
    pub(crate) async fn with_tokens(servers: usize, tokens: &str) -> Self {
        Self::with(servers, LEASE, tokens, |_| ()).await
    }

    /// Starts servers with the lease that they have unless another is set.
    pub(crate) async fn with_long_lease(servers: usize) -> Self {
        Self::with(servers, mainstem_postgres::LEASE, "", |_| ()).await
    }

    /// Starts servers that the database tells nothing, so that they have to ask.
    pub(crate) async fn without_notices(servers: usize) -> (Self, Silenced) {
        let cluster = Self::start(servers).await;
        let silenced = Silenced::before(cluster.database.port()).await;
        for server in &cluster.servers {
            // Connections that exist end, and are made again.
            server.network.remove(cluster.database.port());
            server.network.add(silenced.port());
        }
        (cluster, silenced)
    }

    async fn with(servers: usize, lease: Duration, tokens: &str, set: impl Fn(&mut Command)) -> Self {
        let (database, files) = (Postgres::start(), tempfile::tempdir().unwrap());
        // The tables, once.
        mainstem_postgres::migrate(&Settings::parse(&database.url()).unwrap()).await.unwrap();
        let balancer = Proxy::before([]).await;
        let mut started = Vec::new();
        for number in 0..servers {
            let network = Proxy::before([database.port()]).await;
            let url = database.url_at(network.port());
            let mut command = command(&url, &format!("node-{number}"), lease, tokens, files.path());
            set(&mut command);
            started.push(Server::start(command, network, balancer.clone()));
        }
        Self { database, servers: started, balancer, _files: files }
    }

    /// Returns the address that clients use.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.balancer.port())
    }

    /// Returns the address of one server.
    pub(crate) fn address_of(&self, server: usize) -> String {
        format!("http://127.0.0.1:{}", self.servers[server].port)
    }

    /// Joins the database as a further node, to read what is recorded.
    pub(crate) async fn join(&self) -> Node {
        Node::join(Settings::parse(&self.database.url()).unwrap()).await.unwrap()
    }

    /// Stops the database for good; a replica, which has followed it for a time, takes its place.
    pub(crate) async fn fail_over(&mut self, time: Duration) {
        let replica = block_in_place(|| self.database.replicate());
        sleep(time).await;
        self.database.stop();
        let promoted = block_in_place(|| replica.promote());
        let stopped = std::mem::replace(&mut self.database, promoted);
        for server in &self.servers {
            server.network.add(self.database.port());
            server.network.remove(stopped.port());
        }
    }
}

impl Server {
    fn start(mut command: Command, network: Proxy, balancer: Proxy) -> Self {
        let (process, port) = spawn(&mut command);
        balancer.add(port);
        Self { command, process, port, network, balancer }
    }

    /// Kills the process; the balancer finds out for itself.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts a process that was killed or has stopped.
    pub(crate) fn start_again(&mut self) {
        self.leave_balancer();
        (self.process, self.port) = spawn(&mut self.command);
        self.balancer.add(self.port);
    }

    /// Ends the connections that the balancer has with it; no others follow.
    pub(crate) fn leave_balancer(&self) {
        self.balancer.remove(self.port);
    }

    /// Asks the process to stop.
    pub(crate) fn terminate(&self) {
        self.leave_balancer();
        self.signal("TERM");
    }

    /// Asks the process to stop, and waits for that.
    pub(crate) async fn stop(&mut self) {
        self.terminate();
        let ended = async {
            while self.process.try_wait().unwrap().is_none() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(20), ended).await.expect("it stops");
    }

    /// Stops the process in whatever it does; requests that it gets wait.
    pub(crate) fn pause(&self) {
        self.signal("STOP");
    }

    pub(crate) fn resume(&self) {
        self.signal("CONT");
        self.leave_balancer();
        self.balancer.add(self.port);
    }

    /// The network between it and the database.
    pub(crate) fn network(&self) -> &Proxy {
        &self.network
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.process.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The command of a server. `MAINSTEM_NEIGHBOUR` is the program of another version, which every
/// second server runs.
fn command(url: &str, name: &str, lease: Duration, tokens: &str, files: &Path) -> Command {
    let own = env!("CARGO_BIN_EXE_node").into();
    let neighbour = std::env::var_os("MAINSTEM_NEIGHBOUR").filter(|_| name.ends_with(['1', '3']));
    let mut command = Command::new(neighbour.unwrap_or(own));
    command.args([url, name, &lease.as_millis().to_string(), tokens]);
    command.arg(files.join("store")).arg(files.join(name));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Starts a server. Returns its port, too.
fn spawn(command: &mut Command) -> (Child, u16) {
    let mut process = command.spawn().unwrap();
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    // It connects through a proxy of this process.
    block_in_place(|| stdout.read_line(&mut line).unwrap());
    (process, line.trim().parse().unwrap())
}
