//! What one agent was told, said and did: a fold of its events to lines. Pure.

use mainstem::message::{Role, ToolCallId, ToolState};
use mainstem_event::{AgentEvent, EventKind, Outcome};
use ratatui::{
    style::Stylize,
    text::{Line, Span},
};

use crate::{
    fold::wrapped,
    markdown,
    progress::{figures, glyphs::Glyphs},
    sanitize,
};

/// The most lines of a thought, and of a tool's output.
const FOLDED: usize = 6;

/// The most bytes of a tool's output.
const OUTPUT: usize = 4096;

/// A transcript.
#[derive(Clone, Debug, Default)]
pub(super) struct Transcript {
    parts: Vec<Part>,
    /// The number of parts before the model's present call: a retry takes back what is behind them.
    before_call: usize,
    /// The lines of the parts that can't change, for a width.
    lines: Vec<Line<'static>>,
    width: usize,
    done: usize,
}

#[derive(Clone, Debug)]
enum Part {
    Input(String),
    Text(String),
    Thinking(String),
    Tool(Tool),
    Note(String),
    Error(String),
}

#[derive(Clone, Debug)]
struct Tool {
    id: ToolCallId,
    title: String,
    output: String,
    /// Absent while it runs.
    end: Option<(ToolState, u64)>,
}

impl Transcript {
    /// Applies an event of the agent.
    pub(super) fn event(&mut self, event: &AgentEvent) {
        use EventKind::*;
        match &event.kind {
            AgentStart { input, .. } => {
                for message in input.iter().filter(|message| message.role == Role::User) {
                    self.add(Part::Input(message.text()));
                }
            }
            ModelCallStart { .. } => self.before_call = self.parts.len(),
            ModelRetry { error, .. } => self.retry(event, &format!("attempt failed: {}", error.message)),
            ModelFallback { to, reason, .. } => {
                self.retry(event, &format!("goes on with {to}: {}", reason.message))
            }
            TextBlockStart { .. } => self.add(Part::Text(String::new())),
            TextBlockDelta { delta, .. } => self.open(|part| matches!(part, Part::Text(_)), delta),
            ThinkingBlockStart { .. } => self.add(Part::Thinking(String::new())),
            ThinkingBlockDelta { delta, .. } => self.open(|part| matches!(part, Part::Thinking(_)), delta),
            ToolResultStart { tool_call_id, tool_call_name, input, .. } => {
                let title = format!("{tool_call_name} {input}");
                self.add(Part::Tool(Tool {
                    id: tool_call_id.clone(),
                    title,
                    output: String::new(),
                    end: None,
                }));
            }
            ToolResultTextDelta { tool_call_id, delta } => {
                if let Some(tool) = self.tool(tool_call_id) {
                    let room = OUTPUT.saturating_sub(tool.output.len());
                    tool.output.push_str(&delta[..delta.floor_char_boundary(room)]);
                }
            }
            ToolResultEnd { tool_call_id, state, duration_ms, .. } => {
                if let Some(tool) = self.tool(tool_call_id) {
                    tool.end = Some((*state, *duration_ms));
                }
            }
            HintBlock { hint, .. } => self.add(Part::Input(hint.clone())),
            RequireUserConfirm { tool_calls, .. } => {
                let names: Vec<_> = tool_calls.iter().map(|call| &*call.name).collect();
                self.add(Part::Note(format!("asks whether to run {}", names.join(", "))));
            }
            StateCheckpoint { messages, .. } => {
                self.add(Part::Note(format!("the conversation has {} messages now", messages.len())));
            }
            AgentEnd { outcome, error, .. } if *outcome != Outcome::Success => {
                let why =
                    error.as_ref().map_or_else(|| outcome.as_str().to_owned(), |error| error.message.clone());
                self.add(Part::Error(why));
            }
            _ => {}
        }
    }

    /// Takes back what the failed attempt said.
    fn retry(&mut self, event: &AgentEvent, why: &str) {
        if event.kind.taken_back().is_some() {
            let before = self.before_call;
            let mut index = 0;
            self.parts.retain(|part| {
                index += 1;
                index <= before || !matches!(part, Part::Text(_) | Part::Thinking(_))
            });
            self.forget_lines();
        }
        self.add(Part::Note(why.to_owned()));
    }

    fn add(&mut self, part: Part) {
        self.parts.push(part);
    }

    fn open(&mut self, is_one: impl Fn(&Part) -> bool, delta: &str) {
        if let Some(Part::Text(text) | Part::Thinking(text)) =
            self.parts.iter_mut().rev().find(|part| is_one(part))
        {
            text.push_str(delta);
        }
    }

    fn tool(&mut self, id: &ToolCallId) -> Option<&mut Tool> {
        let index = self.parts.iter().rposition(|part| matches!(part, Part::Tool(tool) if tool.id == *id))?;
        if index < self.done {
            self.forget_lines();
        }
        match &mut self.parts[index] {
            Part::Tool(tool) => Some(tool),
            _ => None,
        }
    }

    fn forget_lines(&mut self) {
        self.lines.clear();
        self.done = 0;
    }

    /// Returns the lines for a width.
    pub(super) fn lines(&mut self, width: usize, glyphs: Glyphs) -> Vec<Line<'static>> {
        if self.width != width {
            self.forget_lines();
            self.width = width;
        }
        // What is still open may be the last text, or a tool.
        let is_open = |part: &Part| matches!(part, Part::Tool(tool) if tool.end.is_none());
        let last = self.parts.len().saturating_sub(1);
        let first_open = self.parts.iter().position(is_open).unwrap_or(last).min(last);
        while self.done < first_open {
            let lines = self.parts[self.done].lines(width, glyphs);
            self.lines.extend(lines);
            self.done += 1;
        }
        let rest = self.parts[self.done..].iter().flat_map(|part| part.lines(width, glyphs));
        self.lines.iter().cloned().chain(rest).collect()
    }
}

impl Part {
    /// Returns its lines, below an empty one.
    fn lines(&self, width: usize, glyphs: Glyphs) -> Vec<Line<'static>> {
        let lines: Vec<Line<'static>> = match self {
            Self::Input(text) => {
                folded(&format!("> {}", text.trim_end()), width).into_iter().map(|line| line.cyan()).collect()
            }
            Self::Text(text) if text.trim().is_empty() => return Vec::new(),
            Self::Text(text) => markdown::lines(text, width),
            Self::Thinking(text) => {
                let lines = folded(text.trim_end(), width.saturating_sub(2));
                quoted(lines, glyphs).into_iter().map(|line| line.dim().italic()).collect()
            }
            Self::Tool(tool) => tool.lines(width, glyphs),
            Self::Note(text) => folded(&format!("{} {text}", glyphs.warning), width)
                .into_iter()
                .map(|line| line.yellow())
                .collect(),
            Self::Error(text) => folded(&format!("{} {text}", glyphs.failed), width)
                .into_iter()
                .map(|line| line.red())
                .collect(),
        };
        lines.into_iter().chain([Line::default()]).collect()
    }
}

impl Tool {
    fn lines(&self, width: usize, glyphs: Glyphs) -> Vec<Line<'static>> {
        let (sign, time) = match self.end {
            None => (Span::from(glyphs.tool).cyan(), String::new()),
            Some((ToolState::Success, millis)) => (Span::from(glyphs.ok).green(), figures::time(millis)),
            Some((ToolState::Running, millis)) => {
                (Span::from(glyphs.background).cyan(), figures::time(millis))
            }
            Some((_, millis)) => (Span::from(glyphs.failed).red(), figures::time(millis)),
        };
        let title = glyphs.short(&self.title, width.saturating_sub(time.len() + 4));
        let head = Line::from(vec![sign, Span::from(format!(" {title} ")), Span::from(time).dim()]);
        let output = quoted(folded(self.output.trim_end(), width.saturating_sub(2)), glyphs);
        let output = if self.output.is_empty() { Vec::new() } else { output };
        [head].into_iter().chain(output.into_iter().map(|line| line.dim())).collect()
    }
}

/// Returns the first lines of foreign text, behind a bar, and the number of the others.
fn quoted(lines: Vec<Line<'static>>, glyphs: Glyphs) -> Vec<Line<'static>> {
    // A line that says that one is hidden has the room of that one.
    let shown = if lines.len() == FOLDED + 1 { FOLDED + 1 } else { FOLDED };
    let hidden = lines.len().saturating_sub(shown);
    let bar = move |line: Line<'static>| {
        let mut spans = vec![Span::from(format!("{} ", glyphs.quote))];
        spans.extend(line.spans);
        Line::from(spans)
    };
    let more = (hidden > 0).then(|| Line::from(format!("{} {hidden} more lines", glyphs.more)));
    lines.into_iter().take(shown).chain(more).map(bar).collect()
}

/// Returns foreign text in lines of a width, broken at blanks where there are some.
fn folded(text: &str, width: usize) -> Vec<Line<'static>> {
    let text = sanitize::clean(text).replace('\t', "    ");
    let lines = text.lines().flat_map(|line| wrapped(line, width.max(1)));
    lines.map(Line::from).collect()
}
