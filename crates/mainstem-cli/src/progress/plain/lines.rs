//! Converts events to lines of text: text line by line, actions, and results.

use std::{collections::HashMap, sync::Arc};

use anstyle::AnsiColor;
use mainstem::message::{AgentKey, Message, SessionId, ToolCallId, ToolState};
use mainstem_event::{AgentEvent, EventKind, Outcome};

use super::line_buffer::LineBuffer;
use crate::{
    progress::{
        figures,
        glyphs::{self, Glyphs},
    },
    sanitize::REMINDER,
};

/// The most characters of a task, arguments or an error.
const SHORT: usize = 120;

/// Calls that are shown only if they fail; the children's own lines show the rest.
const DELEGATING: [&str; 3] = ["agent_spawn", "agent_fanout", "agent_send"];

/// A line, and the number of its agent.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) lane: usize,
    pub(super) text: String,
    pub(super) color: Option<AnsiColor>,
}

/// The state of each agent so far.
#[derive(Debug)]
pub(super) struct Lines {
    glyphs: Glyphs,
    lanes: HashMap<Option<AgentKey>, usize>,
    agents: Vec<AgentState>,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct AgentState {
    session: SessionId,
    name: String,
    buffer: LineBuffer,
    /// Running calls, with the beginning of their results.
    calls: HashMap<ToolCallId, String>,
    /// The last failure of the model that was shown, which is not repeated.
    failure: String,
}

impl AgentState {
    fn new(session: SessionId, name: String) -> Self {
        Self { session, name, buffer: LineBuffer::default(), calls: HashMap::new(), failure: String::new() }
    }
}

impl Lines {
    pub(super) fn new(glyphs: Glyphs) -> Self {
        Self { glyphs, lanes: HashMap::new(), agents: Vec::new(), lines: Vec::new() }
    }

    /// Returns the agent's name.
    pub(super) fn name(&self, lane: usize) -> &str {
        &self.agents[lane].name
    }

    /// Returns the lines of an event, and the lane that it ends.
    pub(super) fn event(&mut self, event: &AgentEvent) -> (Vec<Line>, Option<usize>) {
        if event.reply_id().is_none() {
            return (Vec::new(), None);
        }
        let lane = self.lane(event);
        self.add(event, lane);
        let is_over = matches!(event.kind, EventKind::AgentEnd { .. });
        (std::mem::take(&mut self.lines), is_over.then_some(lane))
    }

    fn lane(&mut self, event: &AgentEvent) -> usize {
        if let Some(lane) = self.lanes.get(&event.agent_key().cloned()) {
            return *lane;
        }
        let source = event.source();
        let session = source.map_or_else(|| event.session_id(), |source| &source.session_id).clone();
        let name = match (source, &event.kind) {
            (None, EventKind::AgentStart { name, .. }) => name,
            _ => event.agent_label(),
        };
        // Without a label, its number tells it apart, and its first line has its task.
        let label = source.and_then(|source| source.label.as_ref());
        let name = label.map_or_else(|| name.to_owned(), |label| format!("{name} {label}"));
        self.agents.push(AgentState::new(session, self.glyphs.line(&name)));
        self.lanes.insert(event.agent_key().cloned(), self.agents.len() - 1);
        self.agents.len() - 1
    }

    /// Returns the lane of the agent that started this one, if it is shown.
    fn parent(&self, event: &AgentEvent) -> Option<usize> {
        let parent = &event.source()?.parent_session_id;
        self.agents.iter().position(|agent| agent.session == *parent)
    }

    /// Adds the lines of an event.
    fn add(&mut self, event: &AgentEvent, lane: usize) {
        use EventKind::*;
        match &event.kind {
            AgentStart { input, .. } => self.add_start(event, lane, input),
            TextBlockDelta { delta, .. } => {
                let lines = self.agents[lane].buffer.push(delta);
                lines.iter().for_each(|line| self.text(event, lane, line));
            }
            TextBlockEnd { .. } => {
                let line = self.agents[lane].buffer.end();
                self.text(event, lane, &line);
            }
            ModelCallStart { purpose: Some(_), .. } => self.say(lane, "compacts its conversation", None),
            ToolCallStart { .. } | ModelCallStart { .. } => self.release(lane),
            ToolResultStart { .. } | ToolResultTextDelta { .. } | ToolResultEnd { .. } => {
                self.add_call(&event.kind, lane);
            }
            RateLimitWait { limit, ahead, wait_ms, refusal, .. } => {
                let waits = figures::rate_limit(*limit, *wait_ms, *ahead);
                let why = refusal.as_ref().map_or_else(String::new, |why| self.news(lane, &why.message));
                self.say(lane, &format!("{waits}{why}"), None);
            }
            ModelRetry { .. } | ModelFallback { .. } | StreamFallback { .. } | ExceedMaxIters { .. } => {
                if event.kind.taken_back().is_some() {
                    self.agents[lane].buffer.release();
                }
                self.add_warning(&event.kind, lane);
            }
            Custom { name, .. } if name == "delegating" => self.say(lane, "delegates", None),
            Custom { name, value } if name == "server_tool" => {
                let tool = value["tool"].as_str().unwrap_or_default();
                let call = format!("{tool} {}", value["input"]);
                let call = self.glyphs.short(&call, SHORT);
                self.say(lane, &format!("its vendor runs {call}"), None);
            }
            AgentEnd { outcome, error, usage, duration_ms, .. } => {
                if !matches!(outcome, Outcome::Success | Outcome::MaxIterations) {
                    let line = self.agents[lane].buffer.end();
                    self.text(event, lane, &line);
                    self.release(lane);
                }
                let error = error.as_ref().filter(|_| *outcome != Outcome::Cancelled);
                let why = error.map_or_else(String::new, |error| self.news(lane, &error.message));
                self.add_end(lane, *outcome, &why, *duration_ms, usage.own.total_tokens());
            }
            _ => {}
        }
    }

    fn add_start(&mut self, event: &AgentEvent, lane: usize, input: &[Arc<Message>]) {
        let texts = input.iter().map(|message| message.text());
        let task = texts.filter(|text| !text.starts_with(REMINDER)).collect::<Vec<_>>().join(" ");
        let task = self.glyphs.short(&task, SHORT);
        let by = self.parent(event).map(|parent| format!(" by #{}", parent + 1)).unwrap_or_default();
        let how = if task.is_empty() && !input.is_empty() { "resumed" } else { "started" };
        let colon = if task.is_empty() { "" } else { ": " };
        self.say(lane, &format!("{how}{by}{colon}{task}"), None);
    }

    /// Adds the beginning or the end of a tool call; its output is collected in between.
    fn add_call(&mut self, kind: &EventKind, lane: usize) {
        let calls = &mut self.agents[lane].calls;
        match kind {
            EventKind::ToolResultStart { tool_call_id, tool_call_name, input, .. } => {
                calls.insert(tool_call_id.clone(), String::new());
                if !DELEGATING.contains(&&**tool_call_name) {
                    let (tool, input) = (self.glyphs.tool, self.glyphs.short(&input.to_string(), SHORT));
                    self.say(lane, &format!("{tool} {tool_call_name} {input}"), Some(AnsiColor::Cyan));
                }
            }
            EventKind::ToolResultTextDelta { tool_call_id, delta } => {
                let output = calls.entry(tool_call_id.clone()).or_default();
                output.extend(delta.chars().take((4 * SHORT).saturating_sub(output.len())));
            }
            EventKind::ToolResultEnd { tool_call_id, tool_call_name, state, duration_ms, .. } => {
                let output = calls.remove(tool_call_id).unwrap_or_default();
                self.add_call_end(lane, tool_call_name, *state, *duration_ms, &output);
            }
            _ => {}
        }
    }

    /// Adds a warning about a model, or about a limit.
    fn add_warning(&mut self, kind: &EventKind, lane: usize) {
        let taken_back = kind.taken_back().map_or("", |_| " and its answer is taken back");
        let warning = match kind {
            EventKind::ModelRetry { attempt, wait_ms, error, .. } => {
                let (wait, why) = (figures::time(*wait_ms), self.news(lane, &error.message));
                format!("attempt {attempt} failed{taken_back}, next in {wait}{why}")
            }
            EventKind::ModelFallback { from, to, reason, .. } => {
                format!("{from} failed{taken_back}, {to} is asked: {reason}")
            }
            EventKind::StreamFallback { reason } => format!("the reply comes in one piece: {reason}"),
            EventKind::ExceedMaxIters { max_iters, .. } => format!("the limit of {max_iters} turns"),
            _ => return,
        };
        self.warn(lane, &warning);
    }

    fn say(&mut self, lane: usize, text: &str, color: Option<AnsiColor>) {
        let text = self.glyphs.text(text).trim_end().replace('\n', " ");
        self.lines.push(Line { lane, text, color });
    }

    fn warn(&mut self, lane: usize, text: &str) {
        let text = format!("{} {}", self.glyphs.warning, self.glyphs.short(text, 2 * SHORT));
        self.say(lane, &text, Some(AnsiColor::Yellow));
    }

    /// Returns `: ` and an error, unless it was shown as the agent's last one.
    fn news(&mut self, lane: usize, error: &str) -> String {
        if self.agents[lane].failure == error {
            return String::new();
        }
        error.clone_into(&mut self.agents[lane].failure);
        format!(": {error}")
    }

    /// The root's lines may be its reply, which is on stdout.
    fn text(&mut self, event: &AgentEvent, lane: usize, line: &str) {
        match event.is_root() {
            _ if line.trim().is_empty() => {}
            true => self.agents[lane].buffer.hold(line.to_owned()),
            false => self.say(lane, line, None),
        }
    }

    /// The lines were not its reply.
    fn release(&mut self, lane: usize) {
        for line in self.agents[lane].buffer.release() {
            self.say(lane, &line, None);
        }
    }

    fn add_call_end(&mut self, lane: usize, tool: &str, state: ToolState, millis: u64, output: &str) {
        let time = figures::time(millis);
        let Glyphs { ok, failed, cancelled, background, .. } = self.glyphs;
        let (text, color) = match state {
            ToolState::Success if DELEGATING.contains(&tool) => return,
            ToolState::Success => (format!("{ok} {tool} {time}"), AnsiColor::Green),
            // The child's own line has the reason.
            ToolState::Error if DELEGATING.contains(&tool) && has_cancelled(output) => {
                (format!("{cancelled} {tool} cancelled, {time}"), AnsiColor::Yellow)
            }
            ToolState::Error => {
                let output = if DELEGATING.contains(&tool) { error_of(output) } else { output };
                let output = self.glyphs.short(output, SHORT);
                (format!("{failed} {tool} failed, {time}: {output}"), AnsiColor::Red)
            }
            ToolState::Running => {
                (format!("{background} {tool} continues in the background"), AnsiColor::Cyan)
            }
            ToolState::Denied => (
                format!("{cancelled} {tool} denied: {}", self.glyphs.short(output, SHORT)),
                AnsiColor::Yellow,
            ),
            other => (format!("{cancelled} {tool} {}, {time}", other.as_str()), AnsiColor::Yellow),
        };
        self.say(lane, &text, Some(color));
    }

    /// Adds the end of an invocation; `tokens` are those of its own model calls.
    fn add_end(&mut self, lane: usize, outcome: Outcome, why: &str, millis: u64, tokens: u64) {
        let (glyph, word) = self.glyphs.ending(outcome);
        let (time, tokens) = (figures::time(millis), figures::tokens(tokens));
        let text = format!("{glyph} {word}, {time}, {tokens}{}", self.glyphs.short(why, 2 * SHORT));
        self.say(lane, &text, Some(glyphs::color(outcome)));
    }
}

/// Returns `true` for the result of a call whose children were all cancelled.
fn has_cancelled(output: &str) -> bool {
    let mut states = output.lines().filter_map(|line| line.strip_prefix("status: ")).peekable();
    states.peek().is_some() && states.all(|status| status == "cancelled")
}

/// Returns the error in the result of a call that delegates, without the ids before it.
fn error_of(output: &str) -> &str {
    output.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or(output)
}

#[cfg(test)]
mod tests;
