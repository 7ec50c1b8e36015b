//! Connections: taken, served, and ended without losing an answer.

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

/// How many bytes its headers may have.
pub(crate) const HEADER_BYTES: usize = 64 << 10;

/// How long a client may take to read what it is sent; a slower one is cut off.
pub(crate) const WRITES: Duration = Duration::from_secs(30);

/// How long to wait when the system has no more room for connections.
const FULL: Duration = Duration::from_millis(100);

/// Serves until the token is cancelled and every request that was taken is answered.
pub(crate) async fn serve(listener: TcpListener, router: Router, guests: usize, stop: CancellationToken) {
    let guests = Arc::new(Guests::new(guests));
    let (graceful, connections) = (GracefulShutdown::new(), TaskTracker::new());
    // What else a client may speak would have to be found out first, and for that it could take its
    // time.
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(HEADER_BYTES);
    while let Some((stream, address)) = stop.run_until_cancelled(take(&listener)).await {
        let connection = guests.enter(address.ip());
        let router = router.clone().layer(from_fn_with_state(connection.clone(), counted));
        let router = router.layer(Extension(connection.clone()));
        let (builder, watcher) = (builder.clone(), graceful.watcher());
        connections.spawn(async move {
            tokio::select! {
                biased;
                () = connection.closed() => {}
                () = talk(stream, &builder, router, watcher) => {}
            }
        });
    }
    drop(listener);
    connections.close();
    graceful.shutdown().await;
    connections.wait().await;
}

/// Answers a request; the last one of a guest ends the connection.
async fn counted(State(connection): State<Connection>, request: Request, next: Next) -> Response {
    connection.ask();
    let mut response = next.run(request).await;
    if connection.is_used_up() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Serves one connection to its end.
async fn talk(stream: TcpStream, builder: &http1::Builder, router: Router, watcher: Watcher) {
    // The time for headers runs from their first byte on.
    if timeout(HEADERS, stream.readable()).await.is_err() {
        return;
    }
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITES));
    let connection =
        builder.serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(router));
    // A client that left, or spoke no HTTP, is its own affair.
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection has failed");
    }
}

/// The next connection.
async fn take(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                // Events are small, and late if they wait for more.
                let _ = stream.set_nodelay(true);
                return (stream, address);
            }
            Err(error) => {
                tracing::warn!(%error, "a connection can't be taken");
                sleep(FULL).await;
            }
        }
    }
}
