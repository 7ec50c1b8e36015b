//! A proxy with faults.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
};

/// What a proxy does to connections.
#[derive(Clone, Copy)]
pub(crate) enum Fault {
    /// Closes each after this many bytes of responses.
    Cut(u64),
    /// Closes the first whose request begins a run or a reply once the server has it, without a
    /// response.
    LoseFirst,
    /// Closes the first whose request answers a question of AgentScope before the server has it.
    LoseAnswer,
    /// Refuses to stream.
    NoStream,
}

/// The requests that begin a run of LangGraph or a reply of AgentScope.
const BEGINNINGS: [&[u8]; 2] = [b"/runs/stream", b"POST /chat/"];

/// Returns a proxy with a fault.
pub(crate) async fn proxy(url: &str, fault: Fault) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (proxy, address) = (format!("http://{}", listener.local_addr().unwrap()), url.replace("http://", ""));
    let has_lost = Arc::<AtomicBool>::default();
    #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&address).await.unwrap();
            #[expect(clippy::disallowed_methods, reason = "ends with its connection")]
            tokio::spawn(pass(client, server, fault, has_lost.clone()));
        }
    });
    proxy
}

async fn pass(mut client: TcpStream, mut server: TcpStream, fault: Fault, has_lost: Arc<AtomicBool>) {
    let bytes = if let Fault::Cut(bytes) = fault { bytes } else { u64::MAX };
    let (mut from_client, mut to_client) = client.split();
    let (from_server, mut to_server) = server.split();
    let mut limited = from_server.take(bytes);
    let is_refused = tokio::select! {
        is_refused = send(&mut from_client, &mut to_server, fault, &has_lost) => is_refused,
        _ = tokio::io::copy(&mut limited, &mut to_client) => false,
    };
    if is_refused {
        let refusal = b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let _ = to_client.write_all(refusal).await;
    }
    let _ = to_client.shutdown().await;
}

/// Passes requests on until one of them meets the fault; returns `true` if it is refused.
async fn send(from: &mut ReadHalf<'_>, to: &mut WriteHalf<'_>, fault: Fault, has_lost: &AtomicBool) -> bool {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        let request = &bytes[..length];
        let has = |part: &[u8]| request.windows(part.len()).any(|window| window == part);
        let begins = BEGINNINGS.into_iter().any(has);
        if matches!(fault, Fault::NoStream) && (begins && has(b"/runs/stream")) {
            return true;
        }
        let answers = has(b"USER_CONFIRM_RESULT") && matches!(fault, Fault::LoseAnswer);
        if answers && !has_lost.swap(true, Ordering::AcqRel) {
            return false;
        }
        if to.write_all(request).await.is_err() {
            return false;
        }
        if begins && matches!(fault, Fault::LoseFirst) && !has_lost.swap(true, Ordering::AcqRel) {
            // The server has it.
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            return false;
        }
    }
    false
}
