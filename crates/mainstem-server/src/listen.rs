//! Accepts and serves connections; a shutdown waits for the responses.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::connection::{Connection, Guests};

/// How long a client may take to send its headers; the connection of a slower one is closed.
pub(crate) const HEADERS: Duration = Duration::from_secs(10);

/// The largest headers of a request, in bytes.
pub(crate) const HEADER_BYTES: usize = 64 << 10;

/// How long a client may take to read; a slower one is disconnected.
pub(crate) const WRITES: Duration = Duration::from_secs(30);

/// The pause after an error of `accept`, which may mean that no more files can be opened.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until the token is cancelled and all requests are answered.
pub(crate) async fn serve(listener: TcpListener, router: Router, guests: usize, stop: CancellationToken) {
    let guests = Arc::new(Guests::new(guests));
    let (graceful, connections) = (GracefulShutdown::new(), TaskTracker::new());
    // HTTP/1 only: to detect another protocol, the server would wait for the client's first bytes
    // without a timeout.
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(HEADER_BYTES);
    while let Some((stream, address)) = stop.run_until_cancelled(accept(&listener)).await {
        let connection = guests.enter(address.ip());
        let router = router.clone().layer(from_fn_with_state(connection.clone(), counted));
        let router = router.layer(Extension(connection.clone()));
        let (builder, watcher) = (builder.clone(), graceful.watcher());
        connections.spawn(async move {
            tokio::select! {
                biased;
                () = connection.closed() => {}
                () = serve_one(stream, &builder, router, watcher) => {}
            }
        });
    }
    drop(listener);
    connections.close();
    graceful.shutdown().await;
    connections.wait().await;
}

/// Counts a request; the response to the last one of a guest closes the connection.
async fn counted(State(connection): State<Connection>, request: Request, next: Next) -> Response {
    connection.count_request();
    let mut response = next.run(request).await;
    if connection.is_used_up() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Serves one connection to its end.
async fn serve_one(stream: TcpStream, builder: &http1::Builder, router: Router, watcher: Watcher) {
    // The time for headers runs from their first byte on.
    if timeout(HEADERS, stream.readable()).await.is_err() {
        return;
    }
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITES));
    let connection =
        builder.serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(router));
    // The client disconnected, or sent something other than HTTP.
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection has failed");
    }
}

/// Accepts the next connection.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                // Events are small; with Nagle's algorithm they would be delayed.
                let _ = stream.set_nodelay(true);
                return (stream, address);
            }
            Err(error) => {
                tracing::warn!(%error, "a connection can't be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
