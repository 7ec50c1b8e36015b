//! The cassette's side of a connection.

use std::sync::Arc;

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::router::Router;

/// Accepts connections until the cassette ends, and closes them with it.
pub(super) async fn accept(listener: TcpListener, router: Arc<Router>) {
    let stop = router.stop.clone();
    let mut connections = JoinSet::new();
    stop.run_until_cancelled(async {
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(serve(stream, router.clone()));
            while connections.try_join_next().is_some() {}
        }
    })
    .await;
}

/// Handles the requests of a connection until one side leaves.
async fn serve(stream: TcpStream, router: Arc<Router>) {
    _ = stream.set_nodelay(true);
    let service = service_fn(|request| router.clone().handle(request));
    // An error is a cut, or a client that left.
    _ = http1::Builder::new().auto_date_header(false).serve_connection(TokioIo::new(stream), service).await;
}
