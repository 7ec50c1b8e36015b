//! The event streams of [Arbiter](https://github.com/tylerreckart/arbiter): a fleet on one
//! connection, a slot for each turn.

mod gate;

use std::{collections::BTreeMap, sync::Arc};

use bytes::{Bytes, BytesMut};
use mainstem_event::{AgentEvent, EventKind, Outcome, Rollup};
use mainstem_message::{Failure, Message, ToolState, Usage};
use mainstem_sse::Frame;
use serde_json::{Value, json};

use self::gate::Gate;
use crate::Encoder;

/// The longest part of the input in `request_received`, in bytes.
const MAX_MESSAGE: usize = 200;

/// Server-sent events as Arbiter sends them: `request_received`; for each turn of an agent
/// `stream_start`, its `text`, `tool_call`s and `token_usage`, and `stream_end`; `done` last. Every
/// event but the first and the last has its `stream_id`; 0 is the agent that leads the run.
///
/// The prose of the leading agent in a model call that calls tools is one status line, unless it is
/// longer than a remark; an answer is live from there on. [`with_gate`](Self::with_gate) turns that
/// off.
#[derive(Debug)]
pub struct Fleet {
    gate: Option<Gate>,
    /// The open turns.
    open: BTreeMap<u64, Turn>,
    /// The answer of the leading agent.
    content: String,
    out: BytesMut,
    seq: u64,
}

/// An open turn.
#[derive(Debug)]
struct Turn {
    agent: Arc<str>,
    depth: u16,
    /// The model of its latest call.
    model: Arc<str>,
    /// The characters of text that the present attempt of the call has shown.
    shown: usize,
}

impl Fleet {
    /// Creates an encoder for the events of a session from one of its runs on.
    pub fn new() -> Self {
        let (open, content, out) = Default::default();
        Self { gate: Some(Gate::default()), open, content, out, seq: 0 }
    }

    /// Sets whether the prose of a model call that calls tools becomes a status line; `true` by
    /// default.
    #[must_use]
    pub fn with_gate(mut self, gate: bool) -> Self {
        self.gate = gate.then(Gate::default);
        self
    }

    fn send(&mut self, event: &str, data: &Value) {
        let (data, id) = (data.to_string(), self.seq.to_string());
        self.out.extend_from_slice(&Frame::data(&data).with_event(event).with_id(&id).encode());
    }

    /// Sends an event of a turn: `data` with its agent, stream and depth. A turn whose beginning is
    /// before the stream's, or that went on after `done`, gets a slot first.
    fn send_of(&mut self, of: &AgentEvent, event: &str, mut data: Value) {
        if !self.open.contains_key(&stream_id(of)) {
            self.open(of);
            self.send_of(of, "stream_start", json!({ "resumed": true }));
        }
        data["agent"] = of.agent_id().into();
        data["stream_id"] = stream_id(of).into();
        data["depth"] = of.depth().into();
        self.send(event, &data);
    }

    fn text(&mut self, of: &AgentEvent, delta: &str) {
        if !delta.is_empty() {
            self.send_of(of, "text", json!({ "delta": delta }));
            if let Some(turn) = self.open.get_mut(&stream_id(of)) {
                turn.shown += delta.chars().count();
            }
        }
    }

    fn encode(&mut self, of: &AgentEvent) {
        use EventKind::*;
        match &of.kind {
            AgentStart { input, .. } => self.start(of, input),
            ModelCallStart { model_name, purpose: Some(_), .. } => {
                if let Some(turn) = self.open.get_mut(&stream_id(of)) {
                    turn.model = model_name.clone();
                }
            }
            ModelCallStart { model_name, .. } => self.model_call(of, model_name),
            TextBlockDelta { delta, .. } => match self.gate.as_mut().filter(|_| of.is_root()) {
                Some(gate) => {
                    let text = gate.text(delta);
                    self.text(of, &text);
                }
                None => self.text(of, delta),
            },
            ToolCallStart { tool_call_name, .. } if of.is_root() => {
                if let Some(gate) = &mut self.gate {
                    gate.call(tool_call_name);
                }
            }
            ModelRetry { error, .. } | ModelFallback { reason: error, .. } => self.retry(of, error),
            ModelCallEnd { usage, .. } => self.model_call_end(of, *usage),
            ToolResultEnd { tool_call_id, tool_call_name, state, duration_ms, .. } => {
                let ok = matches!(state, ToolState::Success | ToolState::Running);
                let more = json!({ "tool": tool_call_name, "ok": ok, "id": tool_call_id, "state": state, "duration_ms": duration_ms });
                self.send_of(of, "tool_call", more);
            }
            AgentResult { result } if of.is_root() => self.content = result.text(),
            AgentResult { result } => {
                self.send_of(of, "sub_agent_response", json!({ "content": result.text() }));
            }
            AgentEnd { outcome, error, usage, duration_ms, .. } => {
                self.end_of(of, *outcome, error.as_ref(), usage, *duration_ms);
            }
            RunCancelled { error, .. } => {
                self.request_received(of, &[]);
                let failed = Ended { outcome: Outcome::Cancelled, error: Some(error), duration_ms: 0 };
                self.done(of, &failed, &Rollup::default());
            }
            RequireUserConfirm { confirm_id, tool_calls, .. } => {
                self.send_of(
                    of,
                    "input_required",
                    json!({ "confirm_id": confirm_id, "tool_calls": tool_calls }),
                );
            }
            UserConfirmResult { confirm_id, .. } => {
                self.send_of(of, "input_received", json!({ "confirm_id": confirm_id }));
            }
            Gap { from_seq, to_seq, missed, .. } => {
                self.send("gap", &json!({ "from_seq": from_seq, "to_seq": to_seq, "missed": missed }));
            }
            _ => {}
        }
    }

    fn start(&mut self, of: &AgentEvent, input: &[Arc<Message>]) {
        if of.is_root() {
            self.content.clear();
            self.request_received(of, input);
        }
        self.open(of);
        let mut more = json!({});
        if let Some(source) = of.source() {
            more = json!({ "agent_key": source.agent_key, "label": source.label, "title": source.title, "tool_call_id": source.parent_tool_call_id });
        }
        self.send_of(of, "stream_start", more);
    }

    fn request_received(&mut self, of: &AgentEvent, input: &[Arc<Message>]) {
        let message = input.last().map(|message| shortened(&message.text())).unwrap_or_default();
        let received = json!({
            "request_id": of.run_id(),
            "conversation_id": of.session_id(),
            "agent": of.agent_id(),
            "message": message,
        });
        self.send("request_received", &received);
    }

    fn open(&mut self, of: &AgentEvent) {
        let turn = Turn { agent: of.agent_id().into(), depth: of.depth(), model: "".into(), shown: 0 };
        self.open.insert(stream_id(of), turn);
    }

    fn model_call(&mut self, of: &AgentEvent, model: &Arc<str>) {
        if let Some(turn) = self.open.get_mut(&stream_id(of)) {
            (turn.model, turn.shown) = (model.clone(), 0);
        }
        if !of.is_root() {
            self.send_of(of, "agent_start", json!({}));
        } else if let Some(gate) = &mut self.gate {
            gate.begin();
        }
    }

    /// Tells that the last characters of the stream's text are taken back, because the model call
    /// is repeated. Text that the gate holds was not shown.
    fn retry(&mut self, of: &AgentEvent, error: &Failure) {
        if of.kind.taken_back().is_none() {
            return;
        }
        if let Some(gate) = self.gate.as_mut().filter(|_| of.is_root()) {
            gate.begin();
        }
        let shown = self.open.get_mut(&stream_id(of)).map_or(0, |turn| std::mem::take(&mut turn.shown));
        self.send_of(of, "text_discarded", json!({ "characters": shown, "error": error }));
    }

    fn model_call_end(&mut self, of: &AgentEvent, usage: Option<Usage>) {
        if of.is_root() {
            self.release(of);
        }
        let Some(usage) = usage else { return };
        let model = self.open.get(&stream_id(of)).map(|turn| turn.model.clone());
        let more = json!({
            "model": model,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "cache_create_tokens": usage.cache_write_tokens,
        });
        self.send_of(of, "token_usage", more);
    }

    /// Sends what the gate holds of the leading agent's model call, which is over.
    fn release(&mut self, of: &AgentEvent) {
        let Some(released) = self.gate.as_mut().map(Gate::end) else { return };
        match released.remark {
            Some(remark) => {
                self.send_of(of, "text", json!({ "delta": released.text, "withheld": remark }));
            }
            None => self.text(of, &released.text),
        }
    }

    fn end_of(
        &mut self,
        of: &AgentEvent,
        outcome: Outcome,
        error: Option<&Failure>,
        usage: &Rollup,
        duration_ms: u64,
    ) {
        if of.is_root() {
            self.release(of);
            self.detach(of);
        }
        let ok = outcome == Outcome::Success;
        self.send_of(of, "stream_end", json!({ "ok": ok, "outcome": outcome, "error": error }));
        self.open.remove(&stream_id(of));
        if of.is_root() {
            self.done(of, &Ended { outcome, error, duration_ms }, usage);
        }
    }

    /// Ends the slots of turns that continue in the background: `done` is the last event.
    fn detach(&mut self, of: &AgentEvent) {
        let own = self.open.remove(&stream_id(of));
        for (stream_id, Turn { agent, depth, .. }) in std::mem::take(&mut self.open) {
            let end = json!({ "agent": agent, "stream_id": stream_id, "depth": depth, "ok": true, "detached": true });
            self.send("stream_end", &end);
        }
        self.open.extend(own.map(|turn| (stream_id(of), turn)));
    }

    fn done(&mut self, of: &AgentEvent, ended: &Ended<'_>, usage: &Rollup) {
        let total = usage.inclusive;
        let done = json!({
            "ok": ended.outcome == Outcome::Success,
            "content": std::mem::take(&mut self.content),
            "input_tokens": total.input_tokens,
            "output_tokens": total.output_tokens,
            "request_id": of.run_id(),
            "conversation_id": of.session_id(),
            "duration_ms": ended.duration_ms,
            "error": ended.error.map(|error| &error.message),
            "error_code": ended.error.map(|error| ended.code(error)),
        });
        self.send("done", &done);
    }
}

/// How a run has ended.
struct Ended<'a> {
    outcome: Outcome,
    error: Option<&'a Failure>,
    duration_ms: u64,
}

impl Ended<'_> {
    /// Returns the code of a failure; Arbiter has one for all cancels.
    fn code<'a>(&self, error: &'a Failure) -> &'a str {
        if self.outcome == Outcome::Cancelled { "cancelled" } else { &error.code }
    }
}

impl Default for Fleet {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder for Fleet {
    fn media_type(&self) -> &'static str {
        "text/event-stream"
    }

    fn event(&mut self, event: &AgentEvent) -> Bytes {
        self.seq = event.seq;
        self.encode(event);
        self.out.split().freeze()
    }

    fn keep_alive(&mut self) -> Bytes {
        Frame::comment("").encode()
    }

    fn fail(&mut self, problem: &str) -> Bytes {
        let problem: Value = serde_json::from_str(problem).unwrap_or_default();
        self.send("error", &json!({ "message": problem["detail"] }));
        let done =
            json!({ "ok": false, "content": "", "error": problem["detail"], "error_code": problem["code"] });
        self.send("done", &done);
        self.out.split().freeze()
    }

    fn marks_end(&self) -> bool {
        true
    }
}

fn stream_id(event: &AgentEvent) -> u64 {
    event.source().map_or(0, |source| source.stream_id)
}

fn shortened(text: &str) -> String {
    let cut = text.floor_char_boundary(MAX_MESSAGE);
    if cut == text.len() { text.to_owned() } else { format!("{}…", &text[..cut]) }
}

#[cfg(test)]
mod tests;
