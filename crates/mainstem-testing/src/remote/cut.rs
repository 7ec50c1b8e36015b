//! A proxy that loses its connections.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

/// Closes each connection after so many bytes of responses. Dropping it ends it.
pub(super) struct Proxy {
    pub(super) url: String,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(super) async fn start(url: &str, bytes: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (proxy, address) =
            (format!("http://{}", listener.local_addr().unwrap()), url.replace("http://", ""));
        #[expect(clippy::disallowed_methods, reason = "aborted when the proxy is dropped")]
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(pass(client, address.clone(), bytes));
            }
        });
        Self { url: proxy, task }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(mut client: TcpStream, address: String, bytes: u64) {
    let mut server = TcpStream::connect(address).await.unwrap();
    let (mut from_client, mut to_client) = client.split();
    let (from_server, mut to_server) = server.split();
    let mut limited = from_server.take(bytes);
    tokio::select! {
        _ = copy(&mut from_client, &mut to_server) => {}
        _ = copy(&mut limited, &mut to_client) => {}
    }
    let _ = to_client.shutdown().await;
}
