//! A model server that answers every request with the bytes of the current input.

use std::{
    convert::Infallible,
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Body, extract::State, http::header, response::Response};
use futures_util::stream;
use tokio::{net::TcpListener, runtime::Runtime, time::timeout};

/// An answer that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// A response; each piece is one chunk of HTTP, so that the client reads it by itself.
#[derive(Clone, Default)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) media_type: &'static str,
    pub(super) pieces: Vec<Vec<u8>>,
}

/// The server, on the loopback.
pub(super) struct Server {
    runtime: Runtime,
    reply: Arc<Mutex<Reply>>,
    pub(super) url: String,
}

impl Server {
    pub(super) fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let reply = Arc::default();
        let router = Router::new().fallback(say).with_state(Arc::clone(&reply));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async { axum::serve(listener, router).await.unwrap() });
        Self { runtime, reply, url }
    }

    /// Waits for a client that gets this reply.
    pub(super) fn answer<T>(&self, reply: Reply, client: impl Future<Output = T>) -> T {
        *self.reply.lock().unwrap() = reply;
        self.runtime.block_on(async { timeout(PATIENCE, client).await.unwrap() })
    }
}

async fn say(State(reply): State<Arc<Mutex<Reply>>>) -> Response {
    let Reply { status, media_type, pieces } = reply.lock().unwrap().clone();
    let pieces = pieces.into_iter().filter(|piece| !piece.is_empty()).map(Ok::<_, Infallible>);
    let response = Response::builder().status(status).header(header::CONTENT_TYPE, media_type);
    response.body(Body::from_stream(stream::iter(pieces))).unwrap()
}
