//! Remote agents: whatever a server sends, its agent is a child that ends once,
//! in a lawful timeline, and its caller goes on.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use mainstem::{event::Outcome, model::scripted::Turn, prelude::*, spec::Protocol};
use mainstem_testing::{laws, render};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::input::Input;

/// The line between the stream of an input and the state that the server has.
const STATE: &[u8] = b"\n=== state\n";

/// What a server sends: the parts of the present input, each once.
#[derive(Clone, Default)]
pub(crate) struct Sent(Arc<Mutex<Parts>>);

#[derive(Default)]
struct Parts {
    stream: Vec<Vec<u8>>,
    state: Option<Vec<u8>>,
}

impl Sent {
    fn set(&self, input: &Input) {
        let end = input.bytes.windows(STATE.len()).position(|part| part == STATE);
        let state = end.map(|end| input.bytes[end + STATE.len()..].to_vec());
        let mut left = end.unwrap_or(input.bytes.len());
        let stream = input.pieces().map(|piece| {
            let piece = &piece[..piece.len().min(left)];
            left -= piece.len();
            piece.to_vec()
        });
        *self.0.lock().unwrap() = Parts { stream: stream.collect(), state };
    }

    /// Returns the stream; a reader that comes back finds nothing more.
    pub(crate) fn stream(&self) -> Response {
        let pieces = std::mem::take(&mut self.0.lock().unwrap().stream);
        let body = stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
        ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(body)).into_response()
    }

    /// Returns the stream as a body, with each place of a name replaced; `None` if it was sent.
    pub(crate) fn replaced(&self, name: &[u8], value: &[u8]) -> Option<Body> {
        let pieces = std::mem::take(&mut self.0.lock().unwrap().stream);
        if pieces.is_empty() {
            return None;
        }
        let (sent, mut left) = (pieces.concat(), Vec::new());
        let mut rest = &sent[..];
        while let Some(at) = rest.windows(name.len()).position(|part| part == name) {
            left.extend_from_slice(&rest[..at]);
            left.extend_from_slice(value);
            rest = &rest[at + name.len()..];
        }
        left.extend_from_slice(rest);
        let chunk = left.len().div_ceil(pieces.len()).max(1);
        let chunks: Vec<_> = left.chunks(chunk).map(|chunk| Ok::<_, Infallible>(chunk.to_vec())).collect();
        Some(Body::from_stream(stream::iter(chunks)))
    }

    /// Returns the state; a reader that comes back finds another one.
    pub(crate) fn state(&self, otherwise: &str) -> Vec<u8> {
        self.0.lock().unwrap().state.take().unwrap_or_else(|| otherwise.as_bytes().to_vec())
    }
}

/// A server of a protocol, and a caller of its agent.
pub(crate) struct Far {
    runtime: Runtime,
    harness: Harness,
    sent: Sent,
}

impl Far {
    /// Starts a server. `routes` gets its address.
    pub(crate) fn start(protocol: Protocol, path: &str, routes: impl FnOnce(&str, Sent) -> Router) -> Self {
        let (runtime, sent) = (Runtime::new().unwrap(), Sent::default());
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = routes(&url, sent.clone());
        runtime.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let spawn = json!({ "agent_id": "far", "task": "go" });
        let turns = [Turn::new().call("agent_spawn", spawn), Turn::new().text("All done.")];
        let far = AgentSpec::new("far", "Far away")
            .with_url(format!("{url}{path}"))
            .with_header("X-User-ID", "fuzz")
            .with_protocol(protocol);
        let harness = Harness::builder("main", ScriptedModel::new().agent("main", turns))
            .with_remote_host("127.0.0.1".parse().unwrap())
            .with_subagent(far)
            .build()
            .unwrap();
        Self { runtime, harness, sent }
    }

    /// Runs the agent, allows what it asks, and checks the timeline. Returns how the agent has
    /// ended.
    pub(crate) fn check(&self, input: &Input) -> Outcome {
        self.sent.set(input);
        let events: Vec<_> = self.runtime.block_on(async {
            let mut run = self.harness.stream_events("go");
            let (handle, mut events) = (run.handle(), Vec::new());
            while let Some(event) = run.next().await {
                if let EventKind::RequireUserConfirm { confirm_id, .. } = &event.kind {
                    let _ = handle.confirm(confirm_id, Decision::Allow);
                }
                events.push(event);
            }
            events
        });
        laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
        let far = events.iter().filter(|event| event.agent_id() == "far" && event.depth() == 1);
        let ends = far.filter_map(|event| match &event.kind {
            EventKind::AgentEnd { outcome, .. } => Some(*outcome),
            _ => None,
        });
        let ends: Vec<_> = ends.collect();
        assert_eq!(ends.len(), 1, "{}", render(&events));
        assert!(events.last().unwrap().kind.to_string().contains("success"), "{}", render(&events));
        ends[0]
    }
}
