//! Three servers in processes of their own, a database, and a balancer before the servers.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering},
    },
    time::Duration,
};

use mainstem_postgres::{Node, Settings};
use mainstem_testing::{Postgres, Proxy};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_util::task::TaskTracker;

/// The lease of the servers, short so that a test sees many ends of it.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

pub(crate) struct Cluster {
    pub(crate) database: Postgres,
    pub(crate) servers: Vec<Server>,
    balancer: u16,
}

/// A server, and the network between it and the database.
pub(crate) struct Server {
    name: String,
    network: Proxy,
    url: String,
    tokens: &'static str,
    process: Child,
    place: Arc<Place>,
}

/// Where the balancer finds a server.
struct Place {
    port: AtomicU16,
    is_up: AtomicBool,
}

impl Cluster {
    pub(crate) async fn start(servers: usize) -> Self {
        Self::with_tokens(servers, "").await
    }

    /// Starts servers with these tokens, in the form of a token file.
    pub(crate) async fn with_tokens(servers: usize, tokens: &'static str) -> Self {
        let database = Postgres::start();
        // The tables, once.
        mainstem_postgres::migrate(&Settings::parse(&database.url()).unwrap()).await.unwrap();
        let mut started = Vec::new();
        for number in 0..servers {
            let network = Proxy::before(database.port()).await;
            let url = database.url_at(network.port());
            started.push(Server::start(format!("node-{number}"), network, url, tokens));
        }
        let balancer = balance(started.iter().map(|server| server.place.clone()).collect()).await;
        Self { database, servers: started, balancer }
    }

    /// Returns the address that clients use.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.balancer)
    }

    /// Returns the address of one server.
    pub(crate) fn address_of(&self, server: usize) -> String {
        format!("http://127.0.0.1:{}", self.servers[server].place.port.load(Ordering::Relaxed))
    }

    /// Joins the database as a further node, to read what is recorded.
    pub(crate) async fn join(&self) -> Node {
        Node::join(Settings::parse(&self.database.url()).unwrap()).await.unwrap()
    }
}

impl Server {
    fn start(name: String, network: Proxy, url: String, tokens: &'static str) -> Self {
        let (process, port) = spawn(&url, &name, tokens);
        let place = Arc::new(Place { port: AtomicU16::new(port), is_up: AtomicBool::new(true) });
        Self { name, network, url, tokens, process, place }
    }

    /// Kills the process, and starts another.
    pub(crate) fn kill(&mut self) {
        self.set_up(false);
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn start_again(&mut self) {
        let port;
        (self.process, port) = spawn(&self.url, &self.name, self.tokens);
        self.place.port.store(port, Ordering::Relaxed);
        self.set_up(true);
    }

    /// Asks the process to stop, and waits for that.
    pub(crate) async fn stop(&mut self) {
        self.set_up(false);
        self.signal("TERM");
        let ended = async {
            while self.process.try_wait().unwrap().is_none() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(20), ended).await.expect("it stops");
    }

    pub(crate) fn pause(&self) {
        self.set_up(false);
        self.signal("STOP");
    }

    pub(crate) fn resume(&self) {
        self.signal("CONT");
        self.set_up(true);
    }

    /// The network between it and the database.
    pub(crate) fn network(&self) -> &Proxy {
        &self.network
    }

    fn set_up(&self, is_up: bool) {
        self.place.is_up.store(is_up, Ordering::Relaxed);
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

fn spawn(url: &str, name: &str, tokens: &str) -> (Child, u16) {
    let node = env!("CARGO_BIN_EXE_node");
    let mut command = Command::new(node);
    command
        .args([url, name, &LEASE.as_millis().to_string(), tokens])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (process, line.trim().parse().unwrap())
}

/// Forwards each connection to the next server that is up. The connections of one that goes down
/// end, as a health check would end them.
async fn balance(places: Vec<Arc<Place>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tasks, turn, places) = (TaskTracker::new(), Arc::new(AtomicUsize::new(0)), Arc::new(places));
    let connections = tasks.clone();
    tasks.spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let number = turn.fetch_add(1, Ordering::Relaxed);
            connections.spawn(forward(client, number, places.clone()));
        }
    });
    port
}

async fn forward(mut client: TcpStream, number: usize, places: Arc<Vec<Arc<Place>>>) {
    for place in (0..places.len()).map(|next| &places[(number + next) % places.len()]) {
        let is_up = || place.is_up.load(Ordering::Relaxed);
        let connecting = TcpStream::connect(("127.0.0.1", place.port.load(Ordering::Relaxed)));
        if !is_up() {
            continue;
        }
        let Ok(mut server) = connecting.await else { continue };
        let down = async {
            while is_up() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            _ = copy_bidirectional(&mut client, &mut server) => {}
            () = down => {}
        }
        return;
    }
}
