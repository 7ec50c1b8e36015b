//! A server on the loopback, with a scripted fleet behind it, and a client.

use std::time::Duration;

use mainstem::{
    model::{Model, scripted::Turn},
    prelude::{AgentSpec, Harness, HarnessBuilder, ScriptedModel, ToolError, tool_fn},
};
use mainstem_server::{Builder, Server, Tokens};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) const TOKEN: &str = "the-token-of-the-harness";

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Ended when dropped.
pub(crate) struct Rig {
    pub(crate) url: String,
    pub(crate) stop: CancellationToken,
    pub(crate) server: Server,
    harness: Harness,
    serving: tokio::task::JoinHandle<()>,
    client: reqwest::Client,
}

impl Rig {
    pub(crate) async fn start(harness: Harness, build: impl FnOnce(Builder) -> Builder) -> Self {
        let tokens = Tokens::new().with_token(TOKEN, None).unwrap();
        let server = build(Server::new(harness.clone()).with_tokens(tokens)).build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, served) = (CancellationToken::new(), server.clone());
        let stopped = stop.clone();
        #[expect(clippy::disallowed_methods, reason = "ended when the rig is dropped")]
        let serving = tokio::spawn(async move { served.serve(listener, stopped).await.unwrap() });
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { url, stop, server, harness, serving, client: reqwest::Client::new() }
    }

    pub(crate) async fn of(model: ScriptedModel) -> Self {
        Self::start(fleet(model).build().unwrap(), |builder| builder).await
    }

    /// Ends it as a process ends, so that another can have its journal.
    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        self.client = reqwest::Client::new();
        (&mut self.serving).await.unwrap();
        self.harness.shutdown(ms(1000)).await;
        self.harness.journal().unwrap().close().await.unwrap();
    }

    /// Ends it; its journal stays open for another.
    pub(crate) async fn stop_now(mut self) {
        self.stop.cancel();
        self.client = reqwest::Client::new();
        (&mut self.serving).await.unwrap();
        self.harness.shutdown(ms(1000)).await;
    }

    /// A request with the harness's token.
    pub(crate) fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        self.stranger(method, path).bearer_auth(TOKEN)
    }

    /// A request without any.
    pub(crate) fn stranger(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.ask(Method::GET, path).send().await.unwrap()
    }

    pub(crate) async fn get_json(&self, path: &str) -> Value {
        let response = self.get(path).await;
        assert_eq!(response.status(), 200, "{path}");
        response.json().await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Response {
        self.ask(Method::POST, path).json(&body).send().await.unwrap()
    }

    /// Begins a run and waits for its end.
    pub(crate) async fn run(&self, session: &str, input: &str) -> Value {
        let request =
            self.ask(Method::POST, &format!("/v1/sessions/{session}/runs")).header("prefer", "wait=30");
        let response = request.json(&json!({ "input": input })).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.json().await.unwrap()
    }

    /// Returns the figure of a line of `/metrics`; 0 if the line is absent.
    pub(crate) async fn figure(&self, name: &str) -> u64 {
        let figures = self.get("/metrics").await.text().await.unwrap();
        let line = figures.lines().find_map(|line| line.strip_prefix(&format!("mainstem_{name} ")));
        line.map_or(0, |value| value.parse().unwrap())
    }

    /// The key of a session's first child.
    pub(crate) async fn kid(&self, session: &str) -> String {
        let agents = self.get_json(&format!("/v1/sessions/{session}/agents")).await;
        agents["items"][0]["agent_key"].as_str().unwrap_or_else(|| panic!("{agents}")).to_owned()
    }

    /// All that an address sends, as frames.
    pub(crate) async fn frames(&self, path: &str, after: Option<u64>) -> Vec<String> {
        let mut request = self.ask(Method::GET, path).header("accept", "text/event-stream");
        if let Some(after) = after {
            request = request.header("last-event-id", after.to_string());
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{path} after {after:?}");
        frames(&response.text().await.unwrap())
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(crate) fn frames(text: &str) -> Vec<String> {
    text.split_terminator("\n\n").map(str::to_owned).collect()
}

/// The events of frames, without what begins and ends a stream.
pub(crate) fn events(frames: &[String]) -> Vec<&String> {
    frames.iter().filter(|frame| frame.starts_with("id: ")).collect()
}

/// `main`, which can spawn `kid`, look, and write if a person lets it.
pub(crate) fn fleet(model: impl Model) -> HarnessBuilder {
    let tool = |name: &str| {
        tool_fn(name, "Does it", |_, _: Map<String, Value>| async { Ok::<_, ToolError>("done") })
    };
    Harness::builder("main", model)
        .with_tool(tool("look"))
        .with_tool(tool("write"))
        .with_subagent(AgentSpec::new("kid", "A kid"))
        .with_permissions(
            mainstem::policy::RuleSet::default()
                .with_pattern(mainstem::policy::Effect::Ask, "write")
                .unwrap(),
        )
}

/// A turn that spawns `kid`.
pub(crate) fn spawn(turn: Turn, task: &str) -> Turn {
    turn.call("agent_spawn", json!({ "agent_id": "kid", "task": task }))
}
