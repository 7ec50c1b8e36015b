//! Children of ours at servers of others: such a server as a process, a run with such a child, and
//! what it shows.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    time::Duration,
};

use futures_util::StreamExt;
use mainstem::{model::scripted::Turn, prelude::*};
use mainstem_testing::{laws, render};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::Folder;

/// A server of others. It ends when this process does, because it reads our pipe.
pub(crate) struct Process {
    /// What it prints when it is ready.
    pub(crate) said: String,
    _child: Child,
}

impl Process {
    /// Starts a server with a script of a folder, and waits for a line that begins like this;
    /// `None` if the packages are not installed.
    pub(crate) fn start(folder: &str, script: &str, ready: &str) -> Option<Self> {
        let mut command = Folder::find(folder)?.command(script);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let said = lines.find(|line| line.starts_with(ready)).expect("the server says that it is ready");
        Some(Self { said, _child: child })
    }
}

/// Returns a harness whose leader has one child, `far`, of this declaration.
pub(crate) fn harness(spec: AgentSpec) -> Harness {
    let spawn = Turn::new().call("agent_spawn", json!({ "agent_id": "far", "task": "go" }));
    let model = ScriptedModel::new().agent("main", [spawn, Turn::new().text("All done.")]);
    Harness::builder("main", model)
        .with_remote_host("127.0.0.1".parse().unwrap())
        .with_subagent(spec)
        .build()
        .unwrap()
}

/// Returns the events of a run.
pub(crate) async fn events(spec: AgentSpec) -> Vec<AgentEvent> {
    steered(spec, async |_, _| {}).await
}

/// Reads a run, calls a function with each event, and checks the laws.
pub(crate) async fn steered(
    spec: AgentSpec,
    mut steer: impl AsyncFnMut(&RunHandle, &AgentEvent),
) -> Vec<AgentEvent> {
    let harness = harness(spec);
    let mut run = harness.stream_events("go");
    let (handle, mut events) = (run.handle(), Vec::new());
    let read = async {
        while let Some(event) = run.next().await {
            steer(&handle, &event).await;
            events.push(event);
        }
    };
    tokio::time::timeout(Duration::from_secs(60), read).await.unwrap();
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events
}

/// Shows what happened below the leader, without times and ids.
pub(crate) fn shown(events: &[AgentEvent]) -> String {
    let below: Vec<_> = events.iter().filter(|event| event.depth() > 0).cloned().collect();
    let text = render(&below);
    let lines = text.lines().map(|line| {
        let line = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        let line =
            line.split_once('#').and_then(|(_, rest)| rest.split_once(' ')).map_or(line, |(_, line)| line);
        if line.starts_with("CUSTOM langgraph.run ") { "CUSTOM langgraph.run" } else { line }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the text that an agent says.
pub(crate) fn text(events: &[AgentEvent], agent: &str) -> String {
    let delta = |event: &AgentEvent| match &event.kind {
        EventKind::TextBlockDelta { delta, .. } if event.agent_id() == agent => Some(delta.clone()),
        _ => None,
    };
    events.iter().filter_map(delta).collect()
}

/// Returns how an agent has ended, and why.
pub(crate) fn end<'a>(events: &'a [AgentEvent], agent: &str) -> (Outcome, &'a str) {
    let kind =
        events.iter().rev().filter(|event| event.agent_id() == agent).find_map(|event| match &event.kind {
            EventKind::AgentEnd { outcome, error, .. } => {
                Some((*outcome, error.as_ref().map_or("", |error| error.message.as_str())))
            }
            _ => None,
        });
    kind.unwrap()
}

/// Sends a request with JSON to a server of others, with further headers.
pub(crate) async fn request(
    url: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: Option<&Value>,
) -> Value {
    let host = url.replace("http://", "");
    let body = body.map(Value::to_string).unwrap_or_default();
    let length = body.len();
    let mut stream = TcpStream::connect(&host).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap()
}
