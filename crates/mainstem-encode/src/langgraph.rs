//! The event streams of LangGraph's API.

mod messages;
mod options;
mod outcome;
mod speaker;
mod thread;

pub use self::{
    options::{FrameId, LangGraphOptions, StreamMode},
    outcome::LangGraphOutcome,
    thread::LangGraphThread,
};

use std::{collections::HashMap, mem};

use bytes::{Bytes, BytesMut};
use mainstem_event::{AgentEvent, EventKind, EventSource, Outcome};
use mainstem_message::{ConfirmId, SessionId, ToolCall};
use mainstem_sse::Frame;
use serde_json::{Value, json};

use self::{
    messages::shown_name,
    speaker::{Said, Speaker},
};
use crate::{Encoder, foreign};

/// The most agents whose namespaces are remembered. The events of further ones are in the namespace
/// of the nearest agent above them that is.
const MAX_AGENTS: usize = 4_096;

/// Server-sent events as LangGraph's server writes them: `metadata` first, then frames of the
/// modes, then `end` or `error`. A child is in the namespace `tools:<call>` of the call that caused
/// it, below that of its parent.
///
/// Events that are no messages are frames of the mode `custom`, with the JSON of the event.
#[derive(Debug)]
pub struct LangGraph {
    options: LangGraphOptions,
    agents: HashMap<SessionId, Agent>,
    root: Speaker,
    /// The metadata of messages that were announced, for the mode `messages`.
    announced: Option<String>,
    frames: Vec<(String, Value)>,
    failure: Option<Value>,
}

/// An agent below the leader.
#[derive(Debug)]
struct Agent {
    namespace: String,
    speaker: Speaker,
    state: LangGraphThread,
}

impl LangGraph {
    /// Creates the encoder of a run's events, from the first on.
    pub fn new(options: LangGraphOptions) -> Self {
        let (agents, root, frames) = Default::default();
        Self { options, agents, root, announced: None, frames, failure: None }
    }

    fn has(&self, mode: StreamMode) -> bool {
        self.options.modes.contains(&mode)
    }

    fn frame(&mut self, mode: &str, namespace: &str, data: Value) {
        let event = if namespace.is_empty() { mode.to_owned() } else { format!("{mode}|{namespace}") };
        self.frames.push((event, data));
    }

    /// Takes in an event of a child.
    fn child(&mut self, source: &EventSource, event: &AgentEvent) {
        if !self.options.subgraphs {
            return;
        }
        if let EventKind::AgentStart { .. } = event.kind
            && self.agents.len() < MAX_AGENTS
        {
            let (speaker, state) = Default::default();
            let namespace = self.namespace(source);
            self.agents.insert(source.session_id.clone(), Agent { namespace, speaker, state });
        }
        let session = [&source.session_id, &source.parent_session_id];
        let Some(at) = session.into_iter().find(|session| self.agents.contains_key(*session)).cloned() else {
            return;
        };
        let Some(agent) = self.agents.get_mut(&at) else { return };
        let (namespace, said) = (agent.namespace.clone(), agent.speaker.apply(event));
        self.custom(&namespace, event);
        for said in said {
            self.say(&namespace, Some(&at), event, said);
        }
    }

    fn namespace(&self, source: &EventSource) -> String {
        let above = self.agents.get(&source.parent_session_id).map(|agent| agent.namespace.as_str());
        let call = source.parent_tool_call_id.as_ref().map(|call| call.as_str());
        let own = format!("tools:{}", call.unwrap_or(source.session_id.as_str()));
        match above {
            Some(above) => format!("{above}|{own}"),
            None => own,
        }
    }

    fn say(&mut self, namespace: &str, agent: Option<&SessionId>, event: &AgentEvent, said: Said) {
        match said {
            Said::Part(part) => {
                if self.has(StreamMode::Messages) {
                    self.partial(namespace, agent, event, "messages/partial", None);
                }
                self.tuple(namespace, agent, event, "model", part);
            }
            Said::Removed(message) => self.tuple(namespace, agent, event, "model", message),
            Said::Whole { node, message } => {
                if self.has(StreamMode::Messages) {
                    self.partial(namespace, agent, event, "messages/complete", Some(&message));
                }
                // An answer was said in parts.
                if node != "model" {
                    self.tuple(namespace, agent, event, node, message.clone());
                }
                if self.has(StreamMode::Updates) {
                    self.frame("updates", namespace, json!({ node: { "messages": [&message] } }));
                }
                self.remember(namespace, agent, message);
            }
            Said::Input(message) => self.remember(namespace, agent, message),
        }
    }

    /// Adds a message to a state, and shows the state.
    fn remember(&mut self, namespace: &str, agent: Option<&SessionId>, message: Value) {
        if !self.has(StreamMode::Values) {
            return;
        }
        let state = match agent {
            Some(agent) => self.agents.get_mut(agent).map(|agent| &mut agent.state),
            None => Some(&mut self.options.history),
        };
        let Some(state) = state else { return };
        state.push(message);
        let values = state.values();
        self.frame("values", namespace, values);
    }

    /// Shows a message as a whole: as far as it has come, or its end.
    fn partial(
        &mut self,
        namespace: &str,
        agent: Option<&SessionId>,
        event: &AgentEvent,
        name: &str,
        message: Option<&Value>,
    ) {
        let so_far = self.speaker(agent).and_then(Speaker::so_far);
        let Some(message) = message.cloned().or(so_far) else { return };
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        if self.announced.as_ref() != Some(&id) {
            let metadata = self.metadata(namespace, agent, event, "model");
            self.frame("messages/metadata", "", json!({ &id: { "metadata": metadata } }));
            self.announced = Some(id);
        }
        self.frame(name, "", json!([message]));
    }

    fn tuple(
        &mut self,
        namespace: &str,
        agent: Option<&SessionId>,
        event: &AgentEvent,
        node: &str,
        message: Value,
    ) {
        if self.has(StreamMode::MessagesTuple) {
            let metadata = self.metadata(namespace, agent, event, node);
            self.frame("messages", namespace, json!([message, metadata]));
        }
    }

    fn speaker(&self, agent: Option<&SessionId>) -> Option<&Speaker> {
        match agent {
            Some(agent) => self.agents.get(agent).map(|agent| &agent.speaker),
            None => Some(&self.root),
        }
    }

    fn metadata(&self, namespace: &str, agent: Option<&SessionId>, event: &AgentEvent, node: &str) -> Value {
        let model = self.speaker(agent).map_or("", Speaker::model);
        json!({
            "run_id": self.options.run,
            "thread_id": self.options.thread,
            "assistant_id": self.options.assistant,
            "graph_id": self.options.assistant,
            "langgraph_node": node,
            "langgraph_checkpoint_ns": namespace,
            "checkpoint_ns": namespace,
            "lc_agent_name": event.agent_id(),
            "ls_model_name": model,
        })
    }

    /// Shows an event that is not, or not only, a message.
    fn custom(&mut self, namespace: &str, event: &AgentEvent) {
        if self.has(StreamMode::Custom) && !is_message(&event.kind) {
            self.frame("custom", namespace, foreign::public(event));
        }
    }

    /// Shows a request for approval as an interrupt of the whole graph.
    fn interrupt(&mut self, id: &ConfirmId, calls: &[ToolCall]) {
        let interrupt = json!([interrupt(id, calls)]);
        if self.has(StreamMode::Updates) {
            self.frame("updates", "", json!({ "__interrupt__": interrupt }));
        }
        if self.has(StreamMode::Values) || !self.has(StreamMode::Updates) {
            let mut values = match self.has(StreamMode::Values) {
                true => self.options.history.values(),
                false => json!({}),
            };
            values["__interrupt__"] = interrupt;
            self.frame("values", "", values);
        }
    }

    /// Encodes the frames of an event that the client has not seen.
    fn flush(&mut self, seq: u64) -> Bytes {
        let frames = mem::take(&mut self.frames);
        let (count, mut bytes) = (frames.len() as u64, BytesMut::new());
        for (number, (event, data)) in (1..).zip(frames) {
            let frame = if number == count { u64::MAX } else { number };
            if self.options.position.is_some_and(|seen| FrameId { seq, frame } <= seen) {
                continue;
            }
            let id = if number == count { seq.to_string() } else { format!("{seq}-{number}") };
            bytes.extend_from_slice(&Frame::data(&data.to_string()).with_event(&event).with_id(&id).encode());
        }
        bytes.freeze()
    }
}

impl Encoder for LangGraph {
    fn media_type(&self) -> &'static str {
        "text/event-stream"
    }

    fn begin(&mut self) -> Bytes {
        if !self.options.announces {
            return Bytes::new();
        }
        let data = json!({ "run_id": self.options.run, "attempt": 1 }).to_string();
        Frame::data(&data).with_event("metadata").encode()
    }

    fn event(&mut self, event: &AgentEvent) -> Bytes {
        match (event.source(), event.reply_id()) {
            (Some(source), _) => self.child(source, event),
            (None, Some(_)) => {
                let said = self.root.apply(event);
                self.custom("", event);
                for said in said {
                    self.say("", None, event, said);
                }
                self.failure = self.failure.take().or_else(|| failure(&event.kind));
            }
            (None, None) => {
                self.custom("", event);
                self.failure = self.failure.take().or_else(|| failure(&event.kind));
            }
        }
        if let EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } = &event.kind {
            self.interrupt(confirm_id, tool_calls);
        }
        self.flush(event.seq)
    }

    fn keep_alive(&mut self) -> Bytes {
        Frame::comment("heartbeat").encode()
    }

    fn fail(&mut self, problem: &str) -> Bytes {
        let problem: Value = serde_json::from_str(problem).unwrap_or_default();
        let data = json!({ "error": problem["code"], "message": problem["detail"] }).to_string();
        Frame::data(&data).with_event("error").encode()
    }

    fn end(&mut self) -> Bytes {
        match &self.failure {
            Some(failure) => Frame::data(&failure.to_string()).with_event("error").encode(),
            None => Frame::data("null").with_event("end").encode(),
        }
    }
}

/// Returns `true` if the mode `messages` has all of an event. The parts of a result are in its
/// message, but that comes at its end.
fn is_message(kind: &EventKind) -> bool {
    use EventKind::*;
    matches!(
        kind,
        TextBlockStart { .. }
            | TextBlockDelta { .. }
            | TextBlockEnd { .. }
            | ThinkingBlockStart { .. }
            | ThinkingBlockDelta { .. }
            | ThinkingBlockEnd { .. }
            | DataBlockStart { .. }
            | DataBlockDelta { .. }
            | DataBlockEnd { .. }
            | ToolCallStart { .. }
            | ToolCallDelta { .. }
            | ToolCallEnd { .. }
            | RequireUserConfirm { .. }
            | HintBlock { .. }
    )
}

/// Returns why a run has failed.
fn failure(kind: &EventKind) -> Option<Value> {
    let (name, error) = match kind {
        EventKind::AgentEnd { outcome: Outcome::Success, .. } => return None,
        EventKind::AgentEnd { outcome, error, .. } => (outcome.as_str(), error.as_ref()),
        EventKind::RunCancelled { error, .. } => ("cancelled", Some(error)),
        _ => return None,
    };
    let name = if name == "cancelled" { "UserInterrupt" } else { error.map_or(name, |error| &error.code) };
    Some(json!({ "error": name, "message": error.map_or(name, |error| &error.message) }))
}

/// Returns a request for approval in the form of LangChain's middleware, which is answered with a
/// list of decisions.
pub fn interrupt(id: &ConfirmId, calls: &[ToolCall]) -> Value {
    let requests = calls.iter().map(|call| {
        let call = messages::Call {
            id: call.id.as_str().to_owned(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        };
        let (name, arguments) = call.shown();
        json!({ "name": name, "args": arguments, "description": format!("{name} requires approval") })
    });
    let configs = calls.iter().map(|call| {
        let decisions = if calls.len() == 1 {
            json!(["approve", "edit", "reject"])
        } else {
            json!(["approve", "reject"])
        };
        json!({ "action_name": shown_name(&call.name), "allowed_decisions": decisions })
    });
    let value = json!({
        "action_requests": requests.collect::<Vec<_>>(),
        "review_configs": configs.collect::<Vec<_>>(),
    });
    json!({ "id": id, "value": value })
}

#[cfg(test)]
mod tests;
