//! What stdout gets: the result, in one of four forms. Pure; [`Stdout`] writes it.

mod stdout;

use bytes::Bytes;
use mainstem::{
    encode::{Encoder, Sse},
    message::{AgentKey, StopReason},
};
use mainstem_event::{AgentEvent, Diagnostics, FleetState, Outcome, fleet::AgentState};
use serde::Serialize;

pub(crate) use self::stdout::Stdout;
use crate::{args::Format, run::Texts, sanitize, terminal::Terminal};

/// The output format. Control sequences are removed from text and escaped in JSON, also for a pipe,
/// because its output is often shown in a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    format: Format,
    terminal: Terminal,
}

/// How a run ended.
pub(crate) struct Ending<'a> {
    pub(crate) run_id: &'a str,
    pub(crate) outcome: Outcome,
    pub(crate) reply: Option<String>,
    /// Why the last answer of the root ended.
    pub(crate) stop: Option<StopReason>,
    pub(crate) error: Option<mainstem::message::Failure>,
    /// In millionths of a dollar, if all prices are known.
    pub(crate) cost: Option<u64>,
    pub(crate) fleet: &'a FleetState,
    /// The latest reply of each agent.
    pub(crate) replies: &'a Texts,
    /// What the agents without a reply have said last.
    pub(crate) partial: &'a Texts,
    /// Present with `--diagnostics`.
    pub(crate) diagnostics: Option<Diagnostics>,
}

impl Output {
    pub(crate) fn new(format: Format, terminal: Terminal) -> Self {
        Self { format, terminal }
    }

    /// Returns the text before the first event.
    pub(crate) fn begin(self) -> Option<Bytes> {
        (self.format == Format::Sse).then(|| encoder().begin())
    }

    /// Returns the text of an event.
    pub(crate) fn event(self, event: &AgentEvent) -> Option<Bytes> {
        match self.format {
            Format::Text | Format::Json => None,
            Format::Ndjson => Some(json(&event.to_json())),
            Format::Sse => Some(encoder().event(event)),
        }
    }

    /// Returns the text of the run's end.
    pub(crate) fn end(self, ending: &Ending<'_>) -> Option<Bytes> {
        match self.format {
            Format::Text => ending.reply.as_deref().map(|reply| self.terminal.reply(reply).into()),
            Format::Json => Some(json(&Summary::new(ending).to_json())),
            Format::Ndjson => None,
            Format::Sse => Some(encoder().end()),
        }
    }
}

/// Server-sent events without control characters.
fn encoder() -> impl Encoder {
    Sse::with(|event: &AgentEvent| sanitize::escape_json(&event.to_json()))
}

fn json(json: &str) -> Bytes {
    (sanitize::escape_json(json) + "\n").into()
}

/// The object of `--output json`, with names in the case of events.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    run_id: &'a str,
    session_id: Option<&'a str>,
    outcome: Outcome,
    reply: Option<&'a str>,
    stop_reason: Option<&'a StopReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_reply: Option<&'a str>,
    error: Option<&'a mainstem::message::Failure>,
    usage: mainstem::message::Usage,
    /// The usage of all agents that ended before the run.
    cost_micros: Option<u64>,
    agents: Vec<Agent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnostics: Option<&'a Diagnostics>,
}

/// An agent of the fleet, with its reply.
#[derive(Serialize)]
struct Agent<'a> {
    #[serde(flatten)]
    state: &'a AgentState,
    reply: Option<&'a str>,
    #[serde(rename = "partialReply", skip_serializing_if = "Option::is_none")]
    partial: Option<&'a str>,
}

impl<'a> Summary<'a> {
    fn new(ending: &'a Ending<'a>) -> Self {
        let Ending { run_id, outcome, fleet, replies, partial, .. } = *ending;
        let agents = fleet.agents.iter().map(|state| Agent {
            state,
            reply: text(replies, state.key()),
            partial: text(partial, state.key()),
        });
        Self {
            run_id,
            session_id: fleet.session_id.as_ref().map(|id| id.as_str()),
            outcome,
            reply: ending.reply.as_deref(),
            stop_reason: ending.stop.as_ref(),
            partial_reply: text(partial, None).filter(|_| ending.reply.is_none()),
            error: ending.error.as_ref(),
            usage: fleet.usage,
            cost_micros: ending.cost,
            agents: agents.collect(),
            diagnostics: ending.diagnostics.as_ref(),
        }
    }

    fn to_json(&self) -> String {
        // Strings, numbers and lists always serialize.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Returns the text of an agent.
fn text<'a>(texts: &'a Texts, agent: Option<&AgentKey>) -> Option<&'a str> {
    texts.get(&agent.cloned()).map(String::as_str)
}

#[cfg(test)]
mod tests;
