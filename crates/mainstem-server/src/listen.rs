//! Connections: taken, served, and ended without losing an answer.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long a client may take to say what it wants; whoever is slower is cut off.
const HEADERS: Duration = Duration::from_secs(10);

/// How many bytes its headers may have.
const HEADER_BYTES: usize = 64 << 10;

/// How many connections there can be at once; further ones wait to be taken.
const CONNECTIONS: usize = 1024;

/// How long to wait when the system has no more room for connections.
const FULL: Duration = Duration::from_millis(100);

/// Serves until the token is cancelled and every request that was taken is answered.
pub(crate) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let (graceful, connections) = (GracefulShutdown::new(), TaskTracker::new());
    // What else a client may speak would have to be found out first, and for that it could take its time.
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(HEADER_BYTES);
    loop {
        let (stream, place) = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            taken = take(&listener, &places) => taken,
        };
        let service = TowerToHyperService::new(router.clone());
        let (builder, watcher) = (builder.clone(), graceful.watcher());
        connections.spawn(async move {
            // The time for headers runs from their first byte on.
            let says_something = timeout(HEADERS, stream.readable()).await.is_ok();
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            // A client that left, or spoke no HTTP, is its own affair.
            if says_something && let Err(error) = watcher.watch(connection).await {
                tracing::debug!(%error, "a connection has failed");
            }
            drop(place);
        });
    }
    drop(listener);
    connections.close();
    graceful.shutdown().await;
    connections.wait().await;
}

/// The next connection, once there is room for it.
async fn take(listener: &TcpListener, places: &Arc<Semaphore>) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    let place = places.clone().acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Events are small, and late if they wait for more.
                let _ = stream.set_nodelay(true);
                return (stream, place);
            }
            Err(error) => {
                tracing::warn!(%error, "a connection can't be taken");
                sleep(FULL).await;
            }
        }
    }
}
