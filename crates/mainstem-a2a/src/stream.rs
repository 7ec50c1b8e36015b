//! The stream of a task's updates, as server-sent events.

use a2a::{JsonRpcId, JsonRpcResponse, StreamResponse, Task};
use bytes::{Bytes, BytesMut};
use mainstem_encode::Encoder;
use mainstem_event::AgentEvent;
use mainstem_sse::Frame;
use serde_json::Value;

use crate::{Progress, error};

/// How a frame wraps an update.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the bindings of the protocol over HTTP")]
pub enum Framing {
    /// As the result of a JSON-RPC request.
    JsonRpc(JsonRpcId),
    /// As it is: HTTP+JSON.
    Plain,
}

/// The encoder of a task's stream: first the task, then its updates, to a state that is terminal or
/// interrupted.
#[derive(Debug)]
pub struct TaskStream {
    /// Until it is sent.
    task: Option<Task>,
    progress: Progress,
    framing: Framing,
    /// The number of requests that the reader knows.
    known: Option<usize>,
}

impl TaskStream {
    pub(crate) fn new(task: Task, progress: Progress, framing: Framing) -> Self {
        Self { task: Some(task), progress, framing, known: None }
    }

    pub(crate) fn resumed(self) -> Self {
        Self { known: Some(self.progress.requests), ..self }
    }

    fn json(&self, update: &StreamResponse) -> String {
        self.framing.result(serde_json::to_value(update).unwrap_or_default()).to_string()
    }
}

impl Framing {
    /// Returns the JSON of a result.
    pub fn result(&self, result: Value) -> Value {
        match self {
            Self::JsonRpc(id) => {
                serde_json::to_value(JsonRpcResponse::success(id.clone(), result)).unwrap_or_default()
            }
            Self::Plain => result,
        }
    }
}

impl Encoder for TaskStream {
    fn media_type(&self) -> &'static str {
        "text/event-stream"
    }

    fn begin(&mut self) -> Bytes {
        let task = self.task.take().map(StreamResponse::Task);
        task.map_or_else(Bytes::new, |task| Frame::data(&self.json(&task)).encode())
    }

    fn event(&mut self, event: &AgentEvent) -> Bytes {
        let (updates, id) = (self.progress.apply(event), event.seq.to_string());
        let mut bytes = BytesMut::new();
        for (left, update) in (0..updates.len()).rev().zip(&updates) {
            let json = self.json(update);
            let frame = Frame::data(&json);
            // A reader can go on behind an event only if it gets all of them.
            let has_event = left == 0 && self.progress.has_extension();
            bytes.extend(if has_event { frame.with_id(&id) } else { frame }.encode());
        }
        bytes.freeze()
    }

    fn keep_alive(&mut self) -> Bytes {
        Frame::comment("still here").encode()
    }

    fn fail(&mut self, problem: &str) -> Bytes {
        let problem: Value = serde_json::from_str(problem).unwrap_or_default();
        let text = problem["detail"].as_str().unwrap_or("the stream can't go on");
        let error = a2a::A2AError::internal(text);
        match &self.framing {
            Framing::JsonRpc(id) => Frame::data(&error::rpc(id.clone(), &error).to_string()).encode(),
            Framing::Plain => Frame::data(&error::rest(&error).to_string()).with_event("error").encode(),
        }
    }

    fn marks_end(&self) -> bool {
        true
    }

    fn is_over(&self) -> bool {
        let is_new = self.known != Some(self.progress.requests);
        self.progress.state.is_terminal() || (self.progress.is_interrupted() && is_new)
    }
}
