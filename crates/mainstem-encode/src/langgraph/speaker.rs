//! The messages of one invocation, from its events.

use std::collections::HashMap;

use mainstem_event::{AgentEvent, EventKind};
use mainstem_message::{DataSource, Message, ToolState};
use serde_json::{Value, json};

use super::messages::{self, Answer, Call};
use crate::foreign::addressed;

/// What an event says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    /// A part of an answer.
    Part(Value),
    /// A whole message, of a node. An answer was said in parts.
    Whole { node: &'static str, message: Value },
    /// The input of an invocation.
    Input(Value),
    /// A message that was begun and is taken back.
    Removed(Value),
}

/// The nodes of an agent's graph.
const MODEL: &str = "model";
const TOOLS: &str = "tools";
const HINT: &str = "hint";

/// Gathers the messages of one invocation.
#[derive(Debug, Default)]
pub(super) struct Speaker {
    answers: u32,
    answer: Option<Answer>,
    /// The open data block: its media type and what has come.
    data: Option<(String, String)>,
    results: HashMap<String, Content>,
    model: String,
}

#[derive(Debug, Default)]
struct Content {
    text: String,
    blocks: Vec<Value>,
}

impl Speaker {
    /// Returns what an event of the invocation says.
    pub(super) fn apply(&mut self, event: &AgentEvent) -> Vec<Said> {
        use EventKind::*;
        match &event.kind {
            AgentStart { input, .. } => input
                .iter()
                .enumerate()
                .map(|(place, message)| Said::Input(input_of(event, place, message)))
                .collect(),
            ModelCallStart { purpose: Some(_), .. } => Vec::new(),
            ModelCallStart { model_name, .. } => {
                self.model = model_name.to_string();
                self.begin(event);
                Vec::new()
            }
            TextBlockDelta { delta, .. } => self.part(event, |answer| {
                answer.text.push_str(delta);
                answer.text_part(delta)
            }),
            ThinkingBlockDelta { delta, .. } => self.part(event, |answer| {
                answer.thinking.push_str(delta);
                answer.thinking_part(delta)
            }),
            DataBlockStart { media_type, .. } => {
                self.data = Some((media_type.clone(), String::new()));
                Vec::new()
            }
            DataBlockDelta { delta, .. } => {
                if let Some((_, data)) = &mut self.data {
                    data.push_str(delta);
                }
                Vec::new()
            }
            DataBlockEnd { .. } => self.end_data(event),
            ToolCallStart { tool_call_id, tool_call_name } => {
                self.call(event, tool_call_id.as_str(), tool_call_name)
            }
            ToolCallDelta { tool_call_id, delta } => self.arguments(tool_call_id.as_str(), delta),
            ToolCallEnd { tool_call_id, .. } => self.end_call(tool_call_id.as_str()),
            ModelRetry { .. } | ModelFallback { .. } => self.take_back(),
            ModelCallEnd { usage, stop_reason, .. } => {
                if let Some(answer) = &mut self.answer {
                    (answer.usage, answer.stop) = (*usage, Some(stop_reason.clone()));
                }
                self.end()
            }
            AgentEnd { .. } => self.end(),
            HintBlock { block_id, hint_source, hint } => {
                let id = format!("{}-{block_id}", reply(event));
                let message = messages::said(&id, Some(hint_source), &Message::user(hint.as_str()), event);
                vec![Said::Whole { node: HINT, message }]
            }
            kind => self.result(event, kind),
        }
    }

    /// Returns the name of the model that was called last.
    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// Returns the answer that is being said, as a whole.
    pub(super) fn so_far(&self) -> Option<Value> {
        self.answer.as_ref().map(Answer::whole)
    }

    fn begin(&mut self, event: &AgentEvent) -> &mut Answer {
        self.answers += 1;
        let id = format!("{}-{}", reply(event), self.answers);
        self.answer.insert(Answer::new(id, &self.model))
    }

    fn part(&mut self, event: &AgentEvent, part: impl FnOnce(&mut Answer) -> Value) -> Vec<Said> {
        if self.answer.is_none() {
            self.begin(event);
        }
        self.answer.as_mut().map(|answer| Said::Part(part(answer))).into_iter().collect()
    }

    fn end_data(&mut self, event: &AgentEvent) -> Vec<Said> {
        let Some((media_type, data)) = self.data.take() else { return Vec::new() };
        let block = messages::data(&media_type, &DataSource::Base64(data));
        self.part(event, |answer| {
            answer.data.push(block.clone());
            answer.data_part(block)
        })
    }

    fn call(&mut self, event: &AgentEvent, id: &str, name: &str) -> Vec<Said> {
        let call = Call { id: id.to_owned(), name: name.to_owned(), arguments: String::new() };
        let is_renamed = call.is_renamed();
        let said = self.part(event, |answer| {
            answer.calls.push(call);
            answer.call_part(answer.calls.len() - 1, Some(name), "")
        });
        if is_renamed { Vec::new() } else { said }
    }

    fn arguments(&mut self, id: &str, delta: &str) -> Vec<Said> {
        let Some((answer, index)) = self.place(id) else { return Vec::new() };
        let call = &mut answer.calls[index];
        call.arguments.push_str(delta);
        if call.is_renamed() {
            return Vec::new();
        }
        vec![Said::Part(answer.call_part(index, None, delta))]
    }

    /// Says a call whose arguments are renamed.
    fn end_call(&mut self, id: &str) -> Vec<Said> {
        let Some((answer, index)) = self.place(id) else { return Vec::new() };
        let call = &answer.calls[index];
        if !call.is_renamed() {
            return Vec::new();
        }
        let (name, arguments) = call.shown();
        vec![Said::Part(answer.call_part(index, Some(name), &arguments.to_string()))]
    }

    fn place(&mut self, id: &str) -> Option<(&mut Answer, usize)> {
        let answer = self.answer.as_mut()?;
        let index = answer.calls.iter().position(|call| call.id == id)?;
        Some((answer, index))
    }

    fn take_back(&mut self) -> Vec<Said> {
        self.data = None;
        let answer = self.answer.take().filter(|answer| !answer.is_empty());
        answer.map(|answer| Said::Removed(messages::removed(&answer.id))).into_iter().collect()
    }

    fn end(&mut self) -> Vec<Said> {
        self.data = None;
        let Some(answer) = self.answer.take().filter(|answer| !answer.is_empty()) else { return Vec::new() };
        vec![Said::Part(answer.last_part()), Said::Whole { node: MODEL, message: answer.whole() }]
    }

    /// Returns what an event of a result says.
    fn result(&mut self, event: &AgentEvent, kind: &EventKind) -> Vec<Said> {
        use EventKind::*;
        match kind {
            ToolResultStart { tool_call_id, .. } => {
                self.results.insert(tool_call_id.as_str().to_owned(), Content::default());
                Vec::new()
            }
            ToolResultTextDelta { tool_call_id, delta } => {
                self.content(tool_call_id.as_str()).text.push_str(delta);
                Vec::new()
            }
            ToolResultDataDelta { tool_call_id, data } => {
                let block = messages::block(&addressed(data, event));
                self.content(tool_call_id.as_str()).blocks.extend(block);
                Vec::new()
            }
            ToolResultEnd { tool_call_id, tool_call_name, state, .. } => {
                let is_error = !matches!(state, ToolState::Success | ToolState::Running);
                self.end_result(event, tool_call_id.as_str(), tool_call_name, is_error)
            }
            _ => Vec::new(),
        }
    }

    fn content(&mut self, call: &str) -> &mut Content {
        self.results.entry(call.to_owned()).or_default()
    }

    fn end_result(&mut self, event: &AgentEvent, call: &str, name: &str, is_error: bool) -> Vec<Said> {
        let Content { text, mut blocks } = self.results.remove(call).unwrap_or_default();
        let content = if blocks.is_empty() {
            text.into()
        } else {
            if !text.is_empty() {
                blocks.insert(0, json!({ "type": "text", "text": text }));
            }
            Value::Array(blocks)
        };
        let id = format!("{}-{call}", reply(event));
        vec![Said::Whole { node: TOOLS, message: messages::result(&id, call, name, content, is_error) }]
    }
}

fn input_of(event: &AgentEvent, place: usize, message: &Message) -> Value {
    let id = message.id.as_ref().map(ToString::to_string);
    messages::said(&id.unwrap_or_else(|| format!("{}-input-{place}", reply(event))), None, message, event)
}

fn reply(event: &AgentEvent) -> &str {
    event.reply_id().map_or("reply", |reply| reply.as_str())
}
