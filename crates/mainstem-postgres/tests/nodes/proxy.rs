//! A network that can be cut: a proxy before the database.

use std::sync::Arc;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

pub(crate) struct Proxy {
    port: u16,
    is_up: Arc<watch::Sender<bool>>,
}

impl Proxy {
    /// Listens at a port of its own, and forwards to the database.
    pub(crate) async fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let is_up = Arc::new(watch::channel(true).0);
        let state = is_up.clone();
        #[expect(clippy::disallowed_methods, reason = "it ends with the runtime of the test")]
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, port, state.subscribe()));
            }
        });
        Self { port: own, is_up }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Ends all connections, and every further one at once.
    pub(crate) fn cut(&self) {
        self.is_up.send_replace(false);
    }

    pub(crate) fn heal(&self) {
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
