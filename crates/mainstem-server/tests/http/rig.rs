//! What serves a scripted fleet, and a client.

use std::time::Duration;

use mainstem::{
    event::AgentEvent,
    model::{Model, scripted::Turn},
    prelude::{AgentSpec, Harness, HarnessBuilder, ScriptedModel, ToolError, tool_fn},
};
use mainstem_server::{Builder, Tokens};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Map, Value, json};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::servers::Servers;

pub(crate) const TOKEN: &str = "the-token-of-the-harness";

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Ended when dropped.
pub(crate) struct Rig {
    pub(crate) url: String,
    pub(crate) stop: CancellationToken,
    servers: Servers,
    client: reqwest::Client,
}

impl Rig {
    pub(crate) async fn start(harness: HarnessBuilder, build: impl Fn(Builder) -> Builder) -> Self {
        let tokens = Tokens::new().with_token(TOKEN, None).unwrap();
        let with_tokens = |builder: Builder| build(builder.with_tokens(tokens.clone()));
        let stop = CancellationToken::new();
        let servers = Servers::start(harness, with_tokens, stop.clone()).await;
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { url: servers.url.clone(), stop, client: servers.client(), servers }
    }

    pub(crate) async fn of(model: ScriptedModel) -> Self {
        Self::start(fleet(model), |builder| builder).await
    }

    /// Returns how many runs are queued or active.
    pub(crate) fn live_runs(&self) -> usize {
        self.servers.live_runs()
    }

    /// Lets it begin no more runs, and waits for the active ones.
    pub(crate) async fn drain(&self) {
        self.servers.drain().await;
    }

    /// Ends it as a process ends, so that another can have its journal.
    pub(crate) async fn end(mut self) {
        self.stopped().await;
        self.servers.close().await;
    }

    /// Ends it; its journal stays open for another.
    pub(crate) async fn stop_now(mut self) {
        self.stopped().await;
    }

    async fn stopped(&mut self) {
        self.stop.cancel();
        // Its connections would keep the server from stopping.
        self.client = self.servers.client();
        self.servers.stopped().await;
    }

    /// A request with the harness's token.
    pub(crate) fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        self.stranger(method, path).bearer_auth(TOKEN)
    }

    /// A request without any.
    pub(crate) fn stranger(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.url.strip_prefix("http://").unwrap()).await.unwrap()
    }

    /// A request that begins, with more to come.
    pub(crate) fn head(&self, line: &str, more: &str) -> String {
        format!("{line} HTTP/1.1\r\nHost: {}\r\n{more}\r\n", self.url.strip_prefix("http://").unwrap())
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

    /// Returns the ids of each page of a list.
    pub(crate) async fn pages_of(&self, path: &str) -> Vec<Vec<String>> {
        let (mut pages, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get_json(&format!("{path}{cursor}")).await;
            let ids =
                page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned());
            pages.push(ids.collect());
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return pages,
            }
        }
    }

    /// Begins a run and waits for its end.
    pub(crate) async fn run(&self, session: &str, input: &str) -> Value {
        let request =
            self.ask(Method::POST, &format!("/v1/sessions/{session}/runs")).header("prefer", "wait=30");
        let response = request.json(&json!({ "input": input })).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.json().await.unwrap()
    }

    /// Returns the figure of a line of `/metrics`, of all servers together; 0 if the line is
    /// absent.
    pub(crate) async fn figure(&self, name: &str) -> u64 {
        let mut sum = 0;
        for url in self.servers.urls() {
            let request = self.client.get(format!("{url}/metrics")).bearer_auth(TOKEN);
            let figures = request.send().await.unwrap().text().await.unwrap();
            let line = figures.lines().find_map(|line| line.strip_prefix(&format!("mainstem_{name} ")));
            sum += line.map_or(0, |value| value.parse::<u64>().unwrap());
        }
        sum
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

/// The events of a stream of frames.
pub(crate) fn parsed(text: &str) -> Vec<AgentEvent> {
    let frames = frames(text);
    let data = events(&frames).into_iter().map(|frame| frame.split_once("data: ").unwrap().1);
    data.map(|json| serde_json::from_str(json).unwrap()).collect()
}

/// Says the number of each turn.
pub(crate) fn says(count: usize) -> ScriptedModel {
    ScriptedModel::new().agent("main", (0..count).map(|number| Turn::new().text(format!("{number}"))))
}
