//! A network that can be cut: a proxy before one server or several.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_util::task::TaskTracker;

/// Forwards connections to ports of the loopback, one after the other, until it is cut. It ends
/// with its runtime.
#[derive(Clone, Debug)]
pub struct Proxy {
    port: u16,
    state: Arc<watch::Sender<State>>,
}

#[derive(Debug)]
struct State {
    ports: Vec<u16>,
    is_cut: bool,
}

impl State {
    fn leads_to(&self, port: u16) -> bool {
        !self.is_cut && self.ports.contains(&port)
    }
}

impl Proxy {
    /// Listens at a port of its own, and forwards to others.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn before(ports: impl IntoIterator<Item = u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = listener.local_addr().expect("an address").port();
        let state = State { ports: ports.into_iter().collect(), is_cut: false };
        let state = Arc::new(watch::channel(state).0);
        let (states, tasks, turn) = (state.clone(), TaskTracker::new(), AtomicUsize::new(0));
        let connections = tasks.clone();
        tasks.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let turn = turn.fetch_add(1, Ordering::Relaxed);
                connections.spawn(forward(client, turn, states.subscribe()));
            }
        });
        Self { port: own, state }
    }

    /// Returns the port at which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Forwards to another port, too.
    pub fn add(&self, port: u16) {
        self.state.send_modify(|state| state.ports.push(port));
    }

    /// Forwards to a port no longer, and ends its connections.
    pub fn remove(&self, port: u16) {
        self.state.send_modify(|state| state.ports.retain(|other| *other != port));
    }

    /// Ends all connections, and every further one at once.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.is_cut = true);
    }

    /// Forwards again.
    pub fn heal(&self) {
        self.state.send_modify(|state| state.is_cut = false);
    }
}

/// Forwards to the first port from a turn on that takes the connection.
async fn forward(mut client: TcpStream, turn: usize, mut state: watch::Receiver<State>) {
    let mut ports = state.borrow().ports.clone();
    let first = turn % ports.len().max(1);
    ports.rotate_left(first);
    for port in ports {
        if !state.borrow().leads_to(port) {
            continue;
        }
        let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
        tokio::select! {
            _ = state.wait_for(|state| !state.leads_to(port)) => {}
            () = copy_both(&mut client, &mut server) => {}
        }
        return;
    }
}

/// Copies in both directions until the server closes its connection. A response that comes before
/// the request is read completely is forwarded, too.
async fn copy_both(client: &mut TcpStream, server: &mut TcpStream) {
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.split(), server.split());
    let up = async {
        let _ = copy(&mut from_client, &mut to_server).await;
        let _ = to_server.shutdown().await;
        pending::<()>().await;
    };
    let down = async {
        let _ = copy(&mut from_server, &mut to_client).await;
        let _ = to_client.shutdown().await;
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}
