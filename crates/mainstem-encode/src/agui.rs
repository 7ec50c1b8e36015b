//! [AG-UI](https://docs.ag-ui.com/spec/1.0) 1.0: the events of a run, for frontends.
//!
//! Each agent below the root is a subagent, whose id is its key and turn: `{agent_key}#{turn}`. A
//! frontend that announces no version of the protocol knows no subagents; for it, they are part of
//! the conversation. What has no place in AG-UI is a `CUSTOM` event, named `mainstem.` and our kind
//! in small letters.
//!
//! AG-UI's runs do not wait for answers. So a stream ends when its run has waited for a while, and
//! the next one of the same run goes on where it ended.

mod ending;
mod invocation;
mod questions;
mod results;
mod state;
mod translate;
mod wire;

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use bytes::Bytes;
use mainstem_event::{AgentEvent, EventSource, FleetState};
use mainstem_message::ReplyId;
use mainstem_sse::Frame;
use serde_json::Value;

use self::{
    ending::Ending,
    invocation::{Cause, Invocation},
    questions::Questions,
    state::SharedState,
    wire::{Body, Out},
};
pub use self::{
    questions::{Asked, tool_call_id, vendors_call_id},
    state::FLEET,
    wire::VERSION,
};
use crate::Encoder;

/// How long a stream may be silent while an answer is awaited, before it ends with the question.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a question waits at most while other agents go on.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// How a stream shows the agents below the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the three things a frontend can do with them")]
pub enum Children {
    /// As subagents of the protocol.
    Subagents,
    /// As part of the conversation, with the agents' names.
    Flatten,
    /// Only in the shared state.
    Hide,
}

/// What a frontend asked for.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "built by servers")]
pub struct Requested {
    /// The id of the conversation.
    pub thread_id: String,
    /// The id that the frontend gave to the run.
    pub run_id: String,
    /// The id of the run before.
    pub parent_run_id: Option<String>,
    /// Whether the frontend announced a version of the protocol.
    pub is_versioned: bool,
    /// How to show the agents below the root.
    pub children: Children,
    /// The shared state, as the frontend has it.
    pub state: Value,
    /// The ids of the tool calls whose results the frontend has.
    pub results: BTreeSet<String>,
}

/// Encodes a run, or the part of it that a request gets.
#[derive(Debug)]
pub struct Agui {
    requested: Requested,
    out: Out,
    state: SharedState,
    questions: Questions,
    live: HashMap<ReplyId, Invocation>,
    started: usize,
    /// The messages that a frontend is to have before the run's.
    messages: Option<Vec<Value>>,
    /// Events up to this number are known to the frontend.
    after: u64,
    has_begun: bool,
    ending: Option<Ending>,
    is_over: bool,
}

impl Agui {
    /// Creates an encoder of a run from its first event on. `fleet` is the state of the session
    /// before it.
    pub fn new(mut requested: Requested, fleet: FleetState) -> Self {
        let state = SharedState::new(requested.state.take(), fleet, 0);
        Self {
            requested,
            out: Out::default(),
            state,
            questions: Questions::default(),
            live: HashMap::new(),
            started: 0,
            messages: None,
            after: 0,
            has_begun: false,
            ending: None,
            is_over: false,
        }
    }

    /// Sets what is known of the run's questions at some point: those without an answer. The stream
    /// does not end with another one that was asked before.
    #[must_use]
    pub fn with_asked(mut self, asked: Asked) -> Self {
        self.questions.know(asked.seq, asked.open);
        self
    }

    /// Leaves out the events up to this number, which the frontend has.
    #[must_use]
    pub fn with_after(mut self, seq: u64) -> Self {
        self.after = seq;
        self
    }

    /// Replaces the frontend's messages first. A frontend that reads a run again has parts of the
    /// run's messages, to which their text would be added once more.
    #[must_use]
    pub fn with_messages(mut self, messages: Vec<Value>) -> Self {
        self.messages = Some(messages);
        self
    }

    /// Writes what a stream has before its first event.
    fn begin_events(&mut self) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        self.out.is_muted = false;
        let snapshot = self.state.snapshot();
        self.out.write(None, Body::StateSnapshot { snapshot: &snapshot });
        if let Some(messages) = self.messages.take() {
            self.out.write(None, Body::MessagesSnapshot { messages: &messages });
        }
        let Self { live, out, .. } = self;
        let mut shown = BTreeSet::new();
        for invocation in in_order(live) {
            invocation.keep_parent_of(&shown);
            invocation.show(out);
            shown.extend(invocation.tag.clone());
        }
    }

    /// Ends the stream with the open questions, if there are any and nothing is in between.
    fn pause(&mut self) {
        let is_calling = self.live.values().any(Invocation::is_calling);
        if self.is_over || self.questions.is_empty() || is_calling {
            return;
        }
        self.begin_events();
        self.finish_paused();
    }
}

impl Encoder for Agui {
    fn media_type(&self) -> &'static str {
        "text/event-stream"
    }

    fn begin(&mut self) -> Bytes {
        let Requested { thread_id, run_id, parent_run_id, is_versioned, .. } = &self.requested;
        let body = Body::RunStarted {
            thread_id,
            run_id,
            protocol_version: is_versioned.then_some(VERSION),
            parent_run_id: parent_run_id.as_deref(),
        };
        self.out.write(None, body);
        if self.after == 0 {
            self.begin_events();
        }
        self.out.take()
    }

    fn event(&mut self, event: &AgentEvent) -> Bytes {
        if self.is_over {
            return Bytes::new();
        }
        self.out.at(event.at);
        self.out.is_muted = event.seq <= self.after;
        self.questions.apply(event);
        if self.out.is_muted {
            self.state.skip(event);
            self.translate(event);
            return Bytes::new();
        }
        self.begin_events();
        self.translate(event);
        let patches = self.state.apply(event);
        if !patches.is_empty() {
            self.out.write(None, Body::StateDelta { delta: &patches });
        }
        let waited = self.questions.since().map(|since| event.at.millis_since(since));
        if waited.is_some_and(|waited| u128::from(waited) >= MAX_DELAY.as_millis()) {
            self.pause();
        }
        self.out.take()
    }

    fn keep_alive(&mut self) -> Bytes {
        self.pause();
        if self.is_over { self.out.take() } else { Frame::comment("still here").encode() }
    }

    fn fail(&mut self, problem: &str) -> Bytes {
        self.finish_failed(problem);
        self.out.take()
    }

    fn end(&mut self) -> Bytes {
        if !self.is_over {
            self.begin_events();
            self.finish();
        }
        self.out.take()
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn patience(&self) -> Option<Duration> {
        (!self.questions.is_empty()).then_some(PATIENCE)
    }

    fn marks_end(&self) -> bool {
        self.is_over
    }
}

/// Returns the id of a child's invocation.
pub(crate) fn subagent_id(source: &EventSource) -> String {
    format!("{}#{}", source.agent_key, source.turn)
}

/// Returns invocations in the order of their starts.
fn in_order(live: &mut HashMap<ReplyId, Invocation>) -> Vec<&mut Invocation> {
    let mut all: Vec<_> = live.values_mut().collect();
    all.sort_by_key(|invocation| invocation.order);
    all
}

#[cfg(test)]
mod tests;
