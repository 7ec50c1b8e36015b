//! Declarations without a protocol: a server is asked which one it has.

use std::sync::{Arc, Mutex};

use axum::{
    extract::Request,
    http::StatusCode,
    middleware::{Next, from_fn},
    response::IntoResponse,
};
use mainstem::{model::scripted::Turn, prelude::*};
use mainstem_server::{Protocol, Server, Tokens};
use mainstem_testing::{laws, render};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    anywhere::TOKEN,
    chain::{child_end, remote, scripts},
    speaks::Speaks,
    support::ms,
};

/// A server whose requests are noted.
struct Noted {
    url: String,
    paths: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl Noted {
    /// Serves a protocol, with `/v1` or without it.
    async fn start(harness: Harness, protocol: Option<Protocol>) -> Self {
        Self::start_with(harness, protocol, StatusCode::NOT_FOUND).await
    }

    /// Answers so below `/v1` if another protocol is served.
    async fn start_with(harness: Harness, protocol: Option<Protocol>, status: StatusCode) -> Self {
        let tokens = Tokens::new().with_token(TOKEN, None).unwrap();
        let server = Server::new(harness).with_tokens(tokens);
        let server =
            protocol.into_iter().fold(server, |server, one| server.with_protocol(one)).build().unwrap();
        let paths = Arc::<Mutex<Vec<String>>>::default();
        let (noted, is_other) = (paths.clone(), protocol.is_some());
        let note = move |request: Request, next: Next| {
            let path = request.uri().path().to_owned();
            noted.lock().unwrap().push(path.clone());
            async move {
                match is_other && path.starts_with("/v1") {
                    true => (status, "no such page").into_response(),
                    false => next.run(request).await,
                }
            }
        };
        let router = server.router().layer(from_fn(note));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        #[expect(clippy::disallowed_methods, reason = "aborted by the test")]
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, paths, serving }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Runs an agent at this address in two turns.
async fn two_turns(url: &str, header: &str) -> String {
    let spawn = json!({ "agent_id": "far", "task": "look", "label": "one" });
    let send = json!({ "label": "one", "message": "and?" });
    let turns = [
        Turn::new().call("agent_spawn", spawn),
        Turn::new().call("agent_send", send),
        Turn::new().text("Done."),
    ];
    let spec = AgentSpec::new("far", "Far away").with_url(url).with_header("Authorization", header);
    let builder = Harness::builder("main", ScriptedModel::new().agent("main", turns)).with_subagent(spec);
    let harness = builder.with_remote_host("127.0.0.1".parse().unwrap()).build().unwrap();
    let events: Vec<_> = harness.stream_events("go").collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    render(&events)
}

fn far() -> Harness {
    let far = ScriptedModel::new().agent("far", [Turn::new().text("Hello."), Turn::new().text("Again.")]);
    Harness::builder("far", far).build().unwrap()
}

const HEADER: &str = "Bearer ${MAINSTEM_TEST_TOKEN:-the-token-of-the-harness}";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_asked_once_which_protocol_it_has() {
    let check = async |protocol: Option<Protocol>, below: &str, probe: &str, used: &str| {
        let server = Noted::start(far(), protocol).await;
        let text = two_turns(&format!("{}{below}", server.url), HEADER).await;
        let has_worked = text.contains("AGENT_RESULT \"Hello.\"") && text.contains("AGENT_RESULT \"Again.\"");
        assert!(has_worked, "{text}");
        let paths = server.paths.lock().unwrap().clone();
        assert_eq!(paths.iter().filter(|path| *path == probe).count(), 1, "{paths:?}");
        assert!(paths.iter().any(|path| path.ends_with(used)), "{used}: {paths:?}");
    };
    check(None, "", "/v1/agents", "/runs").await;
    check(Some(Protocol::LangGraph), "/lg", "/lg/info", "/runs/stream").await;
    check(Some(Protocol::AgentProtocol), "", "/tasks/no-such-task", "/tasks").await;
    check(Some(Protocol::A2a), "", "/v1/agents", "/a2a").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_leads_to_a_private_address_is_out_of_reach() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    let protocols = [Speaks::Mainstem, Speaks::AgentScope, Speaks::A2a, Speaks::LangGraph];
    let checked = protocols.into_iter().map(Some).chain([None]).map(async |speaks| {
        let second = speaks.map_or_else(|| remote("second", &url), |speaks| speaks.declared("second", &url));
        let main = scripts("main", ScriptedModel::new());
        let first = Harness::builder("main", main).with_subagent(second).build().unwrap();
        let all: Vec<_> = first.stream_events("go").collect().await;
        let (outcome, why) = child_end(&all, "second");
        assert!(outcome == Outcome::Error && why.contains("which is not public"), "{speaks:?}: {why}");
    });
    futures_util::future::join_all(checked).await;
    let connected = tokio::time::timeout(ms(10), listener.accept()).await;
    assert!(connected.is_err(), "nothing connects");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_fails_has_not_said_which_protocol_it_has() {
    let server = Noted::start_with(far(), Some(Protocol::A2a), StatusCode::INTERNAL_SERVER_ERROR).await;
    let text = two_turns(&server.url, HEADER).await;
    assert!(text.contains("500 Internal Server Error"), "{text}");
    let paths = server.paths.lock().unwrap().clone();
    assert!(paths.iter().all(|path| path.starts_with("/v1/")), "{paths:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_known_protocol_says_so_and_one_that_denies_is_not_another() {
    let check = async |url: &str, header: &str, expected: &str| {
        let text = two_turns(url, header).await;
        assert!(text.contains(expected), "{expected:?}: {text}");
    };
    let server = Noted::start(far(), Some(Protocol::Fleet)).await;
    check(&server.url, HEADER, "no protocol that is known here (mainstem, a2a, langgraph, agentscope)").await;
    let server = Noted::start(far(), None).await;
    check(&server.url, "Bearer ${NONE:-wrong-token}", "invalid token").await;
    let paths = server.paths.lock().unwrap().clone();
    assert!(paths.iter().all(|path| path.starts_with("/v1/")), "{paths:?}");
}
