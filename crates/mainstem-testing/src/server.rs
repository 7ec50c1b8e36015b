//! A model behind HTTP: speaks OpenAI's chat completions to whoever asks, and tells what it saw.

mod http;
mod wire;

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use mainstem_model::Model;
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{sleep, timeout},
};

/// A server on the loopback that answers `POST …/chat/completions` with the deltas of a [`Model`], usually a scripted one, as they come.
///
/// The scripts' agent is the `model` of the request. Dropping the server ends it, with every connection.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    requests: Mutex<Vec<Value>>,
    answering: AtomicUsize,
    cut: AtomicUsize,
}

impl ModelServer {
    /// Serves a model.
    ///
    /// # Errors
    /// No port on the loopback.
    pub async fn start(model: impl Model) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        #[expect(clippy::disallowed_methods, reason = "aborted when the server is dropped")]
        let task = tokio::spawn(accept(listener, Arc::new(model), shared.clone()));
        Ok(Self { address, shared, task })
    }

    /// What to set as base URL.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The bodies of the requests so far, in the order of their arrival.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.requests().clone()
    }

    /// How many answers are being sent.
    pub fn answering(&self) -> usize {
        self.shared.answering.load(Ordering::SeqCst)
    }

    /// How many answers the client cut off by closing its connection.
    pub fn cut(&self) -> usize {
        self.shared.cut.load(Ordering::SeqCst)
    }

    /// Waits until no answer is being sent; `false` if that takes longer.
    pub async fn is_quiet_within(&self, limit: Duration) -> bool {
        let quiet = async {
            while self.answering() > 0 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(limit, quiet).await.is_ok()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn requests(&self) -> std::sync::MutexGuard<'_, Vec<Value>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, model: Arc<dyn Model>, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, model.clone(), shared.clone()));
        while connections.try_join_next().is_some() {}
    }
}

/// Answers the requests of a connection, one after the other, until the client leaves.
async fn serve(mut stream: TcpStream, model: Arc<dyn Model>, shared: Arc<Shared>) {
    _ = stream.set_nodelay(true);
    let mut read = Vec::new();
    while let Ok(Some(body)) = http::read_request(&mut stream, &mut read).await {
        shared.requests().push(body.clone());
        shared.answering.fetch_add(1, Ordering::SeqCst);
        let sent = tokio::select! {
            biased;
            sent = answer(&model, &body, http::Writer(&stream)) => sent.is_ok(),
            () = http::left(&stream) => false,
        };
        shared.answering.fetch_sub(1, Ordering::SeqCst);
        if !sent {
            shared.cut.fetch_add(1, Ordering::SeqCst);
            return;
        }
    }
}

async fn answer(model: &Arc<dyn Model>, body: &Value, to: http::Writer<'_>) -> io::Result<()> {
    let mut deltas = model.stream(wire::request(body));
    let mut begun = false;
    while let Some(delta) = deltas.next().await {
        let chunk = match delta {
            Ok(delta) => wire::chunk(&delta),
            Err(error) if !begun => {
                return to.refuse(error.status().unwrap_or(500), &wire::refusal(&error)).await;
            }
            // What a real server does when it fails in the middle: it hangs up.
            Err(_) => return Err(io::ErrorKind::ConnectionAborted.into()),
        };
        if !std::mem::replace(&mut begun, true) {
            to.begin().await?;
        }
        if let Some(chunk) = chunk {
            to.event(&chunk.to_string()).await?;
        }
    }
    to.event("[DONE]").await?;
    to.end().await
}
