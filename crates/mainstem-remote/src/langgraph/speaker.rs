//! The messages of one graph, as events of one invocation. Pure.

use std::collections::{BTreeMap, HashSet};

use mainstem_event::EventKind;
use mainstem_message::{Failure, ToolCallId, ToolState};
use serde_json::{Value, json};

use super::wire::{Call, CallChunk, Message, Metadata};
use crate::{Translation, translation::NO_ANSWER};

/// The most messages of one invocation, and the longest id of one in bytes.
const MAX_MESSAGES: usize = 16_384;
const MAX_ID: usize = 512;

/// Says messages in the words of a [`Translation`].
#[derive(Debug)]
pub(super) struct Speaker {
    pub(super) agent: Translation,
    /// The message that is being streamed.
    current: Option<String>,
    /// Its calls, by their index.
    calls: BTreeMap<String, ToolCallId>,
    /// The messages that were said.
    said: HashSet<String>,
    /// The last answer among them.
    answer: Option<String>,
    has_answered: bool,
}

impl Speaker {
    pub(super) fn new(agent: Translation) -> Self {
        let (calls, said) = Default::default();
        Self { agent, current: None, calls, said, answer: None, has_answered: false }
    }

    /// Goes on behind these messages, which another process has shown.
    pub(super) fn recorded(agent: Translation, said: impl IntoIterator<Item = String>) -> Self {
        let said: HashSet<_> = said.into_iter().collect();
        Self { has_answered: !said.is_empty(), said, ..Self::new(agent) }
    }

    /// Says a message, or continues it.
    ///
    /// # Errors
    /// There are too many messages.
    pub(super) fn say(&mut self, message: &Message, metadata: &Metadata) -> Result<(), String> {
        if let Some(model) = &metadata.ls_model_name {
            self.agent.set_model(model);
        }
        match &*message.kind {
            "ai" | "AIMessageChunk" => self.answer(message),
            "tool" | "ToolMessageChunk" => {
                self.result(message);
                Ok(())
            }
            "remove" if message.id.is_some() && message.id == self.current && self.agent.is_answering() => {
                self.take_back();
                Ok(())
            }
            kind => {
                // A message that a node adds for the model: a person's, a system's, a removal.
                let value = json!({ "type": kind, "id": message.id, "content": message.content });
                self.custom("langgraph.message", value);
                Ok(())
            }
        }
    }

    /// Takes back the message that is being streamed: its node gives another one.
    fn take_back(&mut self) {
        let why = Failure::new("removed", "the graph removed the message while it was streamed");
        self.agent.take_back(EventKind::model_retry(1, 0, why));
        self.calls.clear();
        (self.current, self.answer, self.has_answered) = (None, None, false);
    }

    /// Returns `true` if this message was said.
    pub(super) fn has_said(&self, id: &str) -> bool {
        self.said.contains(id)
    }

    /// Returns `true` if the last answer is this one. Without an answer of this process, it is one
    /// of those that another process has shown.
    pub(super) fn ends_with(&self, id: &str) -> bool {
        self.answer.as_ref().map_or_else(|| self.has_said(id), |answer| answer == id)
    }

    /// Adds an event of the graph's own.
    pub(super) fn custom(&mut self, name: &str, value: Value) {
        self.agent.other(EventKind::Custom { name: name.to_owned(), value });
    }

    /// Adds a text in place of an answer if there is none: a success has an answer.
    pub(super) fn ensure_answer(&mut self) {
        self.ensure_answer_with(NO_ANSWER);
    }

    /// Adds this text as the answer, if there is none.
    pub(super) fn ensure_answer_with(&mut self, text: &str) {
        if !self.has_answered {
            self.text(text);
        }
    }

    /// Says an answer as a whole, for the graph whose state ends with it.
    pub(super) fn repeat(&mut self, message: &Message) {
        self.agent.end_model_call();
        self.content(&message.content);
        self.has_answered = true;
    }

    fn answer(&mut self, message: &Message) -> Result<(), String> {
        let id = message.id.clone().unwrap_or_default();
        let is_new = id.is_empty() || !self.said.contains(&id);
        if !message.is_part() && !is_new {
            return Ok(());
        }
        if self.current.as_ref() != Some(&id) || !message.is_part() {
            self.agent.end_model_call();
            self.calls.clear();
            self.current = Some(id.clone());
        }
        if !id.is_empty() && is_new {
            if self.said.len() == MAX_MESSAGES || id.len() > MAX_ID {
                return Err(format!(
                    "more than {MAX_MESSAGES} messages in one turn, or an id of more than {MAX_ID} bytes"
                ));
            }
            self.said.insert(id.clone());
        }
        self.answer = Some(id);
        self.parts(message);
        Ok(())
    }

    fn parts(&mut self, message: &Message) {
        if let Some(Value::String(thinking)) = message.additional_kwargs.get("reasoning_content") {
            self.agent.thinking(thinking);
        }
        self.content(&message.content);
        if message.is_part() {
            message.tool_call_chunks.iter().for_each(|chunk| self.call_part(chunk));
        } else {
            message.tool_calls.iter().enumerate().for_each(|(place, call)| self.call(place, call));
        }
        if let Some(usage) = message.usage_metadata {
            self.agent.usage(usage.into());
        }
        let is_whole = !message.is_part() || message.chunk_position.as_deref() == Some("last");
        if is_whole {
            self.agent.end_block();
            self.calls.values().for_each(|id| self.agent.end_call(id));
        }
    }

    fn content(&mut self, content: &Value) {
        match content {
            Value::String(text) => self.text(text),
            Value::Array(blocks) => blocks.iter().for_each(|block| self.block(block)),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.has_answered |= !text.is_empty();
        self.agent.text(text);
    }

    fn block(&mut self, block: &Value) {
        let text = |name: &str| block.get(name).and_then(Value::as_str);
        match block.get("type").and_then(Value::as_str) {
            None => self.text(block.as_str().unwrap_or_default()),
            Some("text" | "text_delta" | "output_text") => self.text(text("text").unwrap_or_default()),
            Some("thinking" | "reasoning" | "thinking_delta") => {
                let thinking = text("reasoning").or_else(|| text("thinking"));
                self.agent.thinking(thinking.unwrap_or_default());
                let summary = block.get("summary").and_then(Value::as_array).into_iter().flatten();
                let summary = summary.filter_map(|part| part.get("text")?.as_str());
                summary.for_each(|part| self.agent.thinking(part));
            }
            // Those are in `tool_call_chunks`, too.
            Some("tool_use" | "tool_call" | "tool_call_chunk" | "input_json_delta" | "function_call") => {}
            Some(_) => self.custom("langgraph.content", block.clone()),
        }
    }

    /// Continues a call, or begins it.
    fn call_part(&mut self, chunk: &CallChunk) {
        let index = match &chunk.index {
            Value::Null => chunk.id.clone().unwrap_or_default(),
            index => index.to_string(),
        };
        let name = chunk.name.as_deref().unwrap_or_default();
        let id = match (&chunk.id, self.calls.get(&index)) {
            (Some(id), _) => ToolCallId::new(id.as_str()),
            (None, Some(id)) => id.clone(),
            (None, None) if name.is_empty() => return,
            (None, None) => self.made_up_id(&index),
        };
        if self.calls.insert(index, id.clone()).as_ref() != Some(&id) {
            self.has_answered = true;
            self.agent.call(&id, name);
        }
        self.agent.arguments(&id, chunk.args.as_deref().unwrap_or_default());
    }

    fn call(&mut self, place: usize, call: &Call) {
        let id = call.id.as_deref().map(ToolCallId::new);
        let id = id.unwrap_or_else(|| self.made_up_id(&place.to_string()));
        self.has_answered = true;
        self.agent.call(&id, &call.name);
        self.agent.arguments(&id, &call.args.to_string());
        self.agent.end_call(&id);
    }

    fn made_up_id(&self, index: &str) -> ToolCallId {
        ToolCallId::new(format!("{}-{index}", self.current.as_deref().unwrap_or_default()))
    }

    /// Says the result of a call.
    fn result(&mut self, message: &Message) {
        let id = ToolCallId::new(message.tool_call_id.as_deref().unwrap_or_default());
        let state = match message.status.as_deref() {
            Some("error") => ToolState::Error,
            _ => ToolState::Success,
        };
        self.has_answered = true;
        self.agent.begin_result(&id, message.name.as_deref().unwrap_or("tool"));
        self.agent.result(&id, &text_of(&message.content));
        if !message.is_part() {
            self.agent.end_result(&id, state);
        }
        if !message.artifact.is_null() {
            let value = json!({ "tool_call_id": message.tool_call_id, "artifact": message.artifact });
            self.custom("langgraph.artifact", value);
        }
    }
}

/// Returns the text of a content; blocks that are not text as JSON.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let text = |block: &Value| match block.get("text").or(Some(block)) {
                Some(Value::String(text)) => text.clone(),
                _ => block.to_string(),
            };
            blocks.iter().map(text).collect()
        }
        other => other.to_string(),
    }
}
