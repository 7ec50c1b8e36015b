//! A vendor that speaks HTTP/2 over TLS: the calls of a fleet share its connections.

use std::{
    net::SocketAddr,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{Version, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::post,
    serve::Listener,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Barrier, Mutex},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::support::mainstem;

/// As many children as run at a time by default.
const CHILDREN: usize = 16;

/// Accepts connections over TLS, and counts them.
struct Tls {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
    connections: Arc<AtomicUsize>,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (tcp, address) = self.tcp.accept().await.unwrap();
            if let Ok(tls) = self.acceptor.accept(tcp).await {
                self.connections.fetch_add(1, Ordering::SeqCst);
                return (tls, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

/// Returns a configuration with a certificate that it signs itself, as `cert.pem` of the folder.
fn configuration(folder: &Path, protocols: &[&str]) -> ServerConfig {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"]).current_dir(folder);
    openssl.args(["-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/CN=localhost"]);
    openssl.args([
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ]);
    let made = openssl.args(["-keyout", "key.pem", "-out", "cert.pem"]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let cert = CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = versions.with_no_client_auth().with_single_cert(vec![cert], key).unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

/// What the handler shares: the versions of requests, and where the children wait for each other.
struct Shared {
    versions: Mutex<Vec<Version>>,
    together: Barrier,
}

/// Answers as OpenAI does: the root starts all children, which answer once all have asked.
async fn answer(State(shared): State<Arc<Shared>>, version: Version, body: Bytes) -> impl IntoResponse {
    shared.versions.lock().await.push(version);
    let request: Value = serde_json::from_slice(&body).unwrap();
    let messages = request["messages"].as_array().unwrap();
    let text = |text: &str| json!({ "content": text });
    let delta = match messages.iter().any(|message| message["role"] == "tool") {
        _ if messages[0]["content"].as_str().unwrap().contains("You are a subagent") => {
            shared.together.wait().await;
            text("Fine.")
        }
        true => text("All are fine."),
        false => {
            let arguments = json!({ "agent_id": "kid", "task": "Look." }).to_string();
            let call = |index: usize| {
                let function = json!({ "name": "agent_spawn", "arguments": arguments });
                json!({ "index": index, "id": format!("call_{index}"), "type": "function", "function": function })
            };
            json!({ "tool_calls": (0..CHILDREN).map(call).collect::<Vec<_>>() })
        }
    };
    let is_call = delta.get("tool_calls").is_some();
    let reason = if is_call { "tool_calls" } else { "stop" };
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        format!("data: {}\n\n", json!({ "id": "c", "object": "chat.completion.chunk", "choices": [choice] }))
    };
    let end = chunk(json!({}), reason.into());
    ([(CONTENT_TYPE, "text/event-stream")], format!("{}{end}data: [DONE]\n\n", chunk(delta, Value::Null)))
}

/// Runs a fleet whose children call the vendor at the same time; returns the versions of HTTP, and
/// how many connections there were.
async fn fleet(protocols: &[&str]) -> (Vec<Version>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(configuration(folder.path(), protocols)));
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, connections) = (tcp.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let listener = Tls { tcp, acceptor, connections: connections.clone() };
    let shared = Arc::new(Shared { versions: Mutex::default(), together: Barrier::new(CHILDREN) });
    let routes = Router::new().route("/v1/chat/completions", post(answer)).with_state(shared.clone());
    let cert = folder.path().join("cert.pem");
    let run = tokio::task::spawn_blocking(move || {
        let url = format!("https://localhost:{}/v1", address.port());
        let cli = mainstem("run -m openai:m --progress quiet go").env("OPENAI_BASE_URL", &url);
        let cli = cli.env("OPENAI_API_KEY", "a-key").env("SSL_CERT_FILE", cert.to_str().unwrap());
        cli.file("subagents/kid.md", "---\ndescription: A kid\n---\n").run()
    });
    let done = tokio::select! {
        done = run => done.unwrap(),
        served = axum::serve(listener, routes) => panic!("{served:?}"),
    };
    assert_eq!((done.code, &*done.stdout), (Some(0), "All are fine.\n"), "{done:?}");
    let versions = shared.versions.lock().await.clone();
    (versions, connections.load(Ordering::SeqCst))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_shares_the_connections_of_http_2() {
    let requests = CHILDREN + 2;
    let (versions, connections) = fleet(&["h2", "http/1.1"]).await;
    assert_eq!(versions, vec![Version::HTTP_2; requests]);
    assert_eq!(connections, 1);
    // A vendor that speaks HTTP/1.1 alone has a connection for each call at a time.
    let (versions, connections) = fleet(&["http/1.1"]).await;
    assert_eq!(versions, vec![Version::HTTP_11; requests]);
    assert!((CHILDREN..=requests).contains(&connections), "{connections}");
}
