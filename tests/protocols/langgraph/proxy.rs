//! A proxy with faults.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// What a proxy does to connections.
#[derive(Clone, Copy)]
pub(crate) enum Fault {
    /// Closes each after this many bytes of responses.
    Cut(u64),
    /// Closes the first whose request begins a run once the server has it, without a response.
    LoseFirst,
    /// Refuses to stream.
    NoStream,
}

/// Returns a proxy with a fault.
pub(crate) async fn proxy(url: &str, fault: Fault) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (proxy, address) = (format!("http://{}", listener.local_addr().unwrap()), url.replace("http://", ""));
    #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move {
        let mut has_lost = false;
        while let Ok((client, _)) = listener.accept().await {
            let (server, mut head) = (TcpStream::connect(&address).await.unwrap(), vec![0; 8192]);
            let mut client = client;
            let length = client.read(&mut head).await.unwrap();
            head.truncate(length);
            let begins = head.windows(12).any(|part| part == b"/runs/stream");
            let loses = begins && !has_lost && matches!(fault, Fault::LoseFirst);
            has_lost |= loses;
            #[expect(clippy::disallowed_methods, reason = "ends with its connection")]
            tokio::spawn(pass(client, server, head, fault, begins, loses));
        }
    });
    proxy
}

async fn pass(
    mut client: TcpStream,
    mut server: TcpStream,
    head: Vec<u8>,
    fault: Fault,
    begins: bool,
    loses: bool,
) {
    if begins && matches!(fault, Fault::NoStream) {
        let refusal = b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let _ = client.write_all(refusal).await;
        return;
    }
    if server.write_all(&head).await.is_err() {
        return;
    }
    if loses {
        let _ = server.read(&mut [0; 64]).await;
        return;
    }
    let bytes = if let Fault::Cut(bytes) = fault { bytes } else { u64::MAX };
    let (mut from_client, mut to_client) = client.split();
    let (from_server, mut to_server) = server.split();
    let mut limited = from_server.take(bytes);
    tokio::select! {
        _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
        _ = tokio::io::copy(&mut limited, &mut to_client) => {}
    }
    let _ = to_client.shutdown().await;
}
