//! Requests to the server: whatever is asked, the server does not fail, and a refusal says why.

use std::{
    collections::BTreeSet,
    sync::{LazyLock, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{Request, header},
    response::Response,
};
use http_body_util::BodyExt;
use mainstem::{
    model::scripted::Turn,
    prelude::{Harness, ScriptedModel},
};
use mainstem_server::{Builder, Protocol, Server, Tokens};
use serde_json::Value;
use tokio::{runtime::Runtime, time::timeout};
use tower::ServiceExt;

use crate::{fuzz, input::Input};

const TOKEN: &str = "the-token-of-the-harness";

/// A server answers this many requests before the next one takes its place, so that sessions do not
/// pile up.
const REQUESTS: usize = 500;

/// A request that takes longer hangs, on a busy machine too. None may: what a request can wait for
/// is a run, which ends at once.
const PATIENCE: Duration = Duration::from_secs(20);

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
});

static ROUTER: Mutex<(usize, Option<Router>)> = Mutex::new((0, None));

fn router() -> Router {
    let mut current = ROUTER.lock().unwrap_or_else(PoisonError::into_inner);
    let (answered, router) = &mut *current;
    *answered += 1;
    if *answered % REQUESTS == 0 {
        *router = None;
    }
    router.get_or_insert_with(start).clone()
}

/// A server with a session `s` in which a run has ended.
fn start() -> Router {
    const RUN: &str =
        "POST /v1/sessions/s/runs\ncontent-type: application/json\nprefer: wait=1\n\n{\"input\":\"go\"}";
    RUNTIME.block_on(async {
        let model = ScriptedModel::new().agent("main", [Turn::new().text("Hi.")]);
        let harness = Harness::builder("main", model).build().unwrap();
        let tokens = Tokens::new().with_token(TOKEN, None).unwrap();
        let server = Server::new(harness).with_tokens(tokens);
        let all = [
            Protocol::A2a,
            Protocol::AgUi,
            Protocol::AgentProtocol,
            Protocol::LangGraph,
            Protocol::Fleet,
            Protocol::Mcp,
        ];
        let server = all.into_iter().fold(server, Builder::with_protocol);
        let router = server.build().unwrap().router();
        let response = router.clone().oneshot(request(RUN.as_bytes()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        router
    })
}

/// A request as text: method and path, headers, a blank line, the body. `None` if HTTP itself has
/// no such request.
fn request(bytes: &[u8]) -> Option<Request<Body>> {
    let end = bytes.windows(2).position(|two| two == b"\n\n").unwrap_or(bytes.len());
    let body = bytes.get(end + 2..).unwrap_or_default().to_vec();
    let mut lines = bytes[..end].split(|byte| *byte == b'\n');
    let first = lines.next()?;
    let space = first.iter().position(|byte| *byte == b' ')?;
    let mut request = Request::builder().method(&first[..space]).uri(&first[space + 1..]);
    request =
        request.header(header::HOST, "localhost").header(header::AUTHORIZATION, format!("Bearer {TOKEN}"));
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        request = request.header(&line[..colon], line[colon + 1..].trim_ascii());
    }
    request.body(Body::from(body)).ok()
}

fn check(input: &Input) {
    let Some(request) = request(&input.bytes) else { return };
    let is_head = request.method() == "HEAD";
    let router = router();
    RUNTIME.block_on(async { assert_answered(answer(router, request).await, is_head).await });
}

async fn answer(router: Router, request: Request<Body>) -> Response {
    let asked = timeout(PATIENCE, router.oneshot(request)).await;
    asked.unwrap_or_else(|_| panic!("no answer within {PATIENCE:?}")).unwrap()
}

async fn assert_answered(response: Response, is_head: bool) {
    let status = response.status().as_u16();
    assert!(status < 500, "{response:?}");
    if status < 400 || is_head {
        return;
    }
    let media_type = response.headers().get(header::CONTENT_TYPE).cloned();
    let media_type = media_type.as_ref().map(|value| value.to_str().unwrap()).unwrap_or_default();
    if matches!(media_type, "application/json" | "application/a2a+json") {
        return assert_told(response).await;
    }
    let is_text = media_type.starts_with("text/plain");
    assert!(is_text || media_type == "application/problem+json", "{media_type}: {response:?}");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    if is_text {
        return assert!(!body.is_empty(), "MCP's SDK says why");
    }
    let problem: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(problem["status"], status, "{problem}");
    for member in ["title", "detail", "code"] {
        assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {problem}");
    }
}

/// A refusal in the form of another protocol has a code and a message (Agent2Agent), or a text
/// (LangGraph, AgentScope).
async fn assert_told(response: Response) {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let told = serde_json::from_slice::<Value>(&body).unwrap();
    let is_told = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
    let error = &told["error"];
    let is_coded = error["code"].is_i64() && is_told(&error["message"]);
    assert!(is_coded || is_told(&told["detail"]) || is_told(error), "{told}");
}

#[test]
fn the_corpus_reaches_the_handlers() {
    let statuses: BTreeSet<_> = crate::corpus::read("http")
        .iter()
        .map(|(name, bytes)| {
            let request = request(bytes).unwrap_or_else(|| panic!("{name} is not a request"));
            let router = start();
            RUNTIME.block_on(answer(router, request)).status().as_u16()
        })
        .collect();
    for status in [200, 204, 400, 404, 405, 415] {
        assert!(statuses.contains(&status), "{status} is not in {statuses:?}");
    }
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "no answer within 20s")]
async fn a_request_that_hangs_fails() {
    let hangs = Router::new().fallback(std::future::pending::<()>);
    answer(hangs, request(b"GET /v1/tasks/t/wait\nprefer: wait=60\n\n").unwrap()).await;
}

#[test]
fn http() {
    fuzz!("http", check);
}
