//! One line for people: `  12 reviewer  TOOL_CALL_START search (call-1)`.

use std::fmt::{self, Write};

use mainstem_message::ContentBlock;
use serde_json::Value;

use crate::{AgentEvent, ConfirmResult, Discarded, EventKind};

/// The longest text in a line; a longer one is cut with `…`.
const WIDTH: usize = 80;

impl fmt::Display for AgentEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(OneLine(f), "{:>4} {} {}", self.seq, self.agent_label(), self.kind)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = OneLine(f);
        line.write_str(self.name())?;
        self.fmt_fields(&mut line)
    }
}

/// Escapes control characters and those that change the reading direction: names and messages come
/// from models and servers, and a terminal would obey them.
struct OneLine<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for OneLine<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| match c {
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                write!(self.0, "{}", c.escape_unicode())
            }
            _ if c.is_control() => write!(self.0, "{}", c.escape_default()),
            _ => self.0.write_char(c),
        })
    }
}

impl EventKind {
    #[expect(clippy::too_many_lines, reason = "a table of all kinds")]
    fn fmt_fields(&self, f: &mut OneLine<'_, '_>) -> fmt::Result {
        match self {
            Self::AgentStart { name, input, .. } => {
                let text = input.iter().map(|message| message.text()).collect::<Vec<_>>().join("\n");
                write!(f, " {name} {}", Quoted(&text))
            }
            Self::AgentResult { result } => write!(f, " {}", Quoted(&result.text())),
            Self::AgentEnd { outcome, error, usage, .. } => {
                let (own, all) = (usage.own.total_tokens(), usage.inclusive.total_tokens());
                write!(f, " {} {own}/{all} tok", outcome.as_str())?;
                error.as_ref().map_or(Ok(()), |error| write!(f, " ({error})"))
            }
            Self::ModelCallStart { model_name, purpose: Some(purpose), .. } => {
                write!(f, " {model_name} for {}", purpose.as_str())
            }
            Self::ModelCallStart { model_name, iteration, .. } => write!(f, " {model_name} #{iteration}"),
            Self::ModelCallEnd { stop_reason, .. } => write!(f, " {stop_reason}"),
            Self::RateLimitWait { limit, ahead, wait_ms, refusal } => {
                write!(f, " {} behind {ahead}", limit.as_str())?;
                wait_ms.map_or(Ok(()), |wait| write!(f, ", in {wait} ms"))?;
                refusal.as_ref().map_or(Ok(()), |refusal| write!(f, " ({refusal})"))
            }
            Self::RateLimitPassed { waited_ms } => write!(f, " after {waited_ms} ms"),
            Self::ModelRetry { attempt, wait_ms, error, discarded } => {
                write!(f, " #{attempt} in {wait_ms} ms ({error}){}", TakenBack(discarded))
            }
            Self::ModelFallback { from, to, reason, discarded } => {
                write!(f, " {from} → {to} ({reason}){}", TakenBack(discarded))
            }
            Self::TextBlockEnd { discarded: true, .. }
            | Self::ThinkingBlockEnd { discarded: true, .. }
            | Self::DataBlockEnd { discarded: true, .. } => f.write_str(" discarded"),
            Self::ToolCallEnd { tool_call_id, tool_call_name, discarded: true, .. } => {
                write!(f, " {tool_call_name} ({tool_call_id}) discarded")
            }
            Self::TextBlockDelta { delta, .. }
            | Self::ThinkingBlockDelta { delta, .. }
            | Self::DataBlockDelta { delta, .. } => write!(f, " {}", Quoted(delta)),
            Self::DataBlockStart { media_type, .. } => write!(f, " {media_type}"),
            Self::ToolCallStart { tool_call_id, tool_call_name }
            | Self::ToolCallEnd { tool_call_id, tool_call_name, .. } => {
                write!(f, " {tool_call_name} ({tool_call_id})")
            }
            Self::ToolCallDelta { tool_call_id, delta }
            | Self::ToolResultTextDelta { tool_call_id, delta } => {
                write!(f, " {} ({tool_call_id})", Quoted(delta))
            }
            Self::ToolResultStart { tool_call_id, tool_call_name, input } => {
                write!(f, " {tool_call_name} {} ({tool_call_id})", Json(input))
            }
            Self::ToolResultEnd { tool_call_id, tool_call_name, state, .. } => {
                write!(f, " {tool_call_name} {} ({tool_call_id})", state.as_str())
            }
            Self::ToolResultDataDelta { tool_call_id, data } => write!(f, " {} ({tool_call_id})", Part(data)),
            Self::RequireUserConfirm { tool_calls: calls, .. }
            | Self::RequireExternalExecution { tool_calls: calls }
            | Self::AllToolsDenied { denied_tool_calls: calls } => {
                write!(f, " {}", calls.iter().map(|call| &*call.name).collect::<Vec<_>>().join(", "))
            }
            Self::UserConfirmResult { confirm_results: results, .. } => {
                let said = |result: &ConfirmResult| match result.confirmed {
                    true => "yes",
                    false if result.withdrawn => "withdrawn",
                    false => "no",
                };
                let all: Vec<_> =
                    results.iter().map(|r| format!("{} {}", r.tool_call.name, said(r))).collect();
                write!(f, " {}", all.join(", "))
            }
            Self::ExternalExecutionResult { tool_results: results } => {
                let all: Vec<_> =
                    results.iter().map(|r| format!("{} {}", r.name, r.state.as_str())).collect();
                write!(f, " {}", all.join(", "))
            }
            Self::RunCancelled { error } => write!(f, " {}", error.message),
            Self::StreamFallback { reason } => write!(f, " {reason}"),
            Self::HintBlock { hint_source, hint, .. } => write!(f, " {hint_source} {}", Quoted(hint)),
            Self::ExceedMaxIters { max_iters, current_iter } => write!(f, " {current_iter}/{max_iters}"),
            Self::TaskUpdated { task_id, from, to, error } => {
                write!(f, " {task_id} {} → {}", from.as_str(), to.as_str())?;
                error.as_ref().map_or(Ok(()), |error| write!(f, " ({error})"))
            }
            Self::MessageSent { agent_key, message, mode } => {
                write!(f, " {agent_key} {} {}", mode.as_str(), Quoted(&message.text()))
            }
            Self::AgentClosed { agent_key } => write!(f, " {agent_key}"),
            Self::PlanModeChanged { active } => f.write_str(if *active { " on" } else { " off" }),
            Self::StateCheckpoint { agent_key, messages } => {
                write!(f, " {agent_key} messages={}", messages.len())
            }
            Self::Gap { from_seq, to_seq, missed, reason, .. } => {
                write!(f, " {missed} missed ({from_seq}–{to_seq})")?;
                reason.as_ref().map_or(Ok(()), |reason| write!(f, ": {reason}"))
            }
            Self::Custom { name, value } => write!(f, " {name} {}", Json(value)),
            Self::TextBlockStart { .. }
            | Self::TextBlockEnd { .. }
            | Self::ThinkingBlockStart { .. }
            | Self::ThinkingBlockEnd { .. }
            | Self::DataBlockEnd { .. }
            | Self::Unknown { .. } => Ok(()),
        }
    }
}

/// Formats a text as a Rust string literal, cut to [`WIDTH`].
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(WIDTH) {
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

/// Formats a part of a result: its text, or its type.
struct Part<'a>(&'a ContentBlock);

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ContentBlock::Text { text, .. } => Quoted(text).fmt(f),
            ContentBlock::Data { media_type, .. } => f.write_str(media_type),
            _ => Ok(()),
        }
    }
}

/// Formats compact JSON, cut to [`WIDTH`].
struct Json<'a>(&'a Value);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        match text.char_indices().nth(WIDTH) {
            Some((end, _)) => write!(f, "{}…", &text[..end]),
            None => f.write_str(&text),
        }
    }
}

/// How many blocks and calls are taken back.
struct TakenBack<'a>(&'a Discarded);

impl fmt::Display for TakenBack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Discarded { blocks, tool_calls } = self.0;
        let counted = |count: usize, noun: &str| match count {
            0 => None,
            1 => Some(format!("1 {noun}")),
            many => Some(format!("{many} {noun}s")),
        };
        let parts = [counted(blocks.len(), "block"), counted(tool_calls.len(), "call")];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        if parts.is_empty() { Ok(()) } else { write!(f, ", takes back {}", parts.join(" and ")) }
    }
}

#[cfg(test)]
mod tests;
