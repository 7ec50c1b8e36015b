//! A network that can be cut: a proxy before a server.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_util::task::TaskTracker;

/// Forwards connections to a port of the loopback, until it is cut. It ends with its runtime.
#[derive(Clone, Debug)]
pub struct Proxy {
    port: u16,
    is_up: Arc<watch::Sender<bool>>,
}

impl Proxy {
    /// Listens at a port of its own, and forwards to another.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = listener.local_addr().expect("an address").port();
        let is_up = Arc::new(watch::channel(true).0);
        let (state, tasks) = (is_up.clone(), TaskTracker::new());
        let connections = tasks.clone();
        tasks.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(forward(client, port, state.subscribe()));
            }
        });
        Self { port: own, is_up }
    }

    /// Returns the port at which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends all connections, and every further one at once.
    pub fn cut(&self) {
        self.is_up.send_replace(false);
    }

    /// Forwards again.
    pub fn heal(&self) {
        self.is_up.send_replace(true);
    }
}

async fn forward(mut client: TcpStream, port: u16, mut is_up: watch::Receiver<bool>) {
    let forwarding = async {
        let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
        copy_bidirectional(&mut client, &mut server).await
    };
    tokio::select! {
        _ = is_up.wait_for(|is_up| !is_up) => {}
        _ = forwarding => {}
    }
}
