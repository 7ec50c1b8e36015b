//! A model behind HTTP: answers in the API of the requested endpoint, and records the requests.

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
use mainstem_model::{Model, ModelDelta};
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{sleep, timeout},
};

use self::http::Request;

/// A server on the loopback that streams the deltas of a [`Model`], usually a scripted one.
///
/// The requested endpoint selects the API: `…/chat/completions` and `…/responses` of OpenAI,
/// `…/messages` of Anthropic, `…/models/{model}:streamGenerateContent` of Gemini, `/api/chat` of
/// Ollama. The scripts' agent is the requested model. [`ModelDelta::RateLimits`] before all others
/// are headers of the response. Dropping the server ends it, with every
/// connection.
///
/// ```
/// use mainstem_testing::{ModelServer, model::{ScriptedModel, scripted::Turn}};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let script = ScriptedModel::new().agent("gpt-4o-mini", [Turn::new().text("Hello.")]);
/// let server = ModelServer::start(script).await?;
/// // A provider with this base URL gets the script's answers.
/// assert!(server.base_url().starts_with("http://127.0.0.1:"));
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    requests: Mutex<Vec<Request>>,
    connections: AtomicUsize,
    answering: AtomicUsize,
    cut: AtomicUsize,
}

impl ModelServer {
    /// Serves a model.
    ///
    /// # Errors
    /// If the loopback has no free port.
    pub async fn start(model: impl Model) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        #[expect(clippy::disallowed_methods, reason = "aborted when the server is dropped")]
        let task = tokio::spawn(accept(listener, Arc::new(model), shared.clone()));
        Ok(Self { address, shared, task })
    }

    /// Returns the base URL for OpenAI's APIs.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the base URL for the other vendors: scheme, host and port.
    pub fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the bodies of the requests so far, in the order of their arrival.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.requests().iter().map(Request::json).collect()
    }

    /// Returns the bodies of the requests so far as they were sent, byte for byte.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.shared.requests().iter().map(|request| request.body.clone()).collect()
    }

    /// Returns the number of connections that clients have opened.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Returns the number of responses that are being sent.
    pub fn answering(&self) -> usize {
        self.shared.answering.load(Ordering::SeqCst)
    }

    /// Returns the number of responses that clients cut off by closing their connections.
    pub fn cut(&self) -> usize {
        self.shared.cut.load(Ordering::SeqCst)
    }

    /// Waits until no response is being sent; returns `false` if that takes longer.
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
    fn requests(&self) -> std::sync::MutexGuard<'_, Vec<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, model: Arc<dyn Model>, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        shared.connections.fetch_add(1, Ordering::SeqCst);
        connections.spawn(serve(stream, model.clone(), shared.clone()));
        while connections.try_join_next().is_some() {}
    }
}

/// Answers the requests of a connection, one after the other, until the client leaves.
async fn serve(mut stream: TcpStream, model: Arc<dyn Model>, shared: Arc<Shared>) {
    _ = stream.set_nodelay(true);
    let mut read = Vec::new();
    while let Ok(Some(request)) = http::read_request(&mut stream, &mut read).await {
        shared.requests().push(request.clone());
        shared.answering.fetch_add(1, Ordering::SeqCst);
        let sent = tokio::select! {
            biased;
            sent = answer(&model, &request, http::Writer(&stream)) => sent.is_ok(),
            () = http::left(&stream) => false,
        };
        shared.answering.fetch_sub(1, Ordering::SeqCst);
        if !sent {
            shared.cut.fetch_add(1, Ordering::SeqCst);
            return;
        }
    }
}

async fn answer(model: &Arc<dyn Model>, request: &Request, to: http::Writer<'_>) -> io::Result<()> {
    let mut dialect = wire::of(&request.path);
    let mut deltas = model.stream(dialect.request(&request.path, &request.json()));
    let (mut begun, mut headers) = (false, String::new());
    while let Some(delta) = deltas.next().await {
        let delta = match delta {
            // Limits are reported in the head.
            Ok(ModelDelta::RateLimits(limits)) if !begun => {
                headers = dialect.rate_limits(&limits);
                continue;
            }
            Ok(delta) => delta,
            Err(error) if !begun => {
                return to.refuse(&error, &dialect.refusal(&error)).await;
            }
            // A real server that fails in the middle closes the connection, too.
            Err(_) => return Err(io::ErrorKind::ConnectionAborted.into()),
        };
        if !std::mem::replace(&mut begun, true) {
            to.begin(dialect.media_type(), &headers).await?;
            to.frames(&dialect.begin()).await?;
        }
        to.frames(&dialect.frames(&delta)).await?;
    }
    to.end(&dialect.end()).await
}
