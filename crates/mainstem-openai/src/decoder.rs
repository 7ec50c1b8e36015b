//! Decodes chunks: one payload in, deltas out. No I/O.

mod calls;

use std::{fmt::Display, mem, sync::Arc};

use mainstem_http::{Api, Decode, Deltas, Output, Server, Template};
use mainstem_message::{StopReason, Usage};
use mainstem_model::{ModelDelta, ModelError};

use self::calls::Calls;
use crate::{
    ChatCompletions,
    chunk::{Choice, Chunk, Content, Delta, ToolCall},
};

/// OpenAI's padding, which differs in each chunk, and which we ask to leave out.
const VARYING: [&str; 1] = ["obfuscation"];

/// The state of one response. `Usage` and `Stop` are its last deltas, because servers send them at
/// different times.
pub(crate) struct Decoder {
    server: Arc<Server>,
    template: Template,
    calls: Calls,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    refused: bool,
    done: bool,
}

impl Decoder {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            template: Template::new(&VARYING),
            calls: Calls::default(),
            usage: None,
            finish_reason: None,
            refused: false,
            done: false,
        }
    }

    fn decode_chunk(&mut self, data: &str, deltas: &mut Deltas) -> Result<(), ModelError> {
        let mut out = Output::new(deltas);
        let chunk: Chunk<'_> = serde_json::from_str(data).map_err(|error| self.malformed(data, &error))?;
        let choices = chunk.choices.unwrap_or_default();
        if (chunk.error.is_some() || choices.is_empty() && chunk.usage.is_none())
            && let Some(error) = self.server.interruption(data)
        {
            return Err(error);
        }
        if let Some(usage) = chunk.usage {
            self.usage = Some((*usage).into());
        }
        // With `n` greater than one, the first choice counts.
        for choice in choices.into_iter().filter(|choice| choice.index.unwrap_or(0) == 0) {
            self.choice(choice, &mut out);
        }
        out.teach(&mut self.template, data);
        Ok(())
    }

    fn choice(&mut self, choice: Choice<'_>, out: &mut Output<'_>) {
        if let Some(delta) = choice.delta.or_else(|| choice.message.map(|message| *message)) {
            self.delta(delta, out);
        }
        let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
        self.finish_reason = reason.or_else(|| self.finish_reason.take());
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut Output<'_>) {
        // Some servers send the reasoning under both names.
        let (thought, same) = (delta.reasoning_content.into_text(), delta.reasoning.into_text());
        out.push(if thought.is_empty() { same } else { thought }, ModelDelta::Thinking);
        match delta.content {
            Content::Nothing => {}
            Content::Text(text) => out.push(text, ModelDelta::Text),
            Content::Parts(parts) => {
                for part in parts {
                    out.push(part.thinking.into_text(), ModelDelta::Thinking);
                    out.push(part.text.unwrap_or_default().into(), ModelDelta::Text);
                }
            }
        }
        if let Some(text) = delta.refusal {
            self.refused |= !text.is_empty();
            out.push(text.into(), ModelDelta::Text);
        }
        let legacy =
            delta.function_call.map(|function| ToolCall { function: Some(*function), ..ToolCall::default() });
        for call in delta.tool_calls.unwrap_or_default().into_iter().chain(legacy) {
            self.calls.push(call, out);
        }
    }

    /// Returns why it stopped. Some servers send `stop` for tool calls: Gemini always, OpenAI for
    /// forced ones.
    fn stop_reason(&mut self) -> StopReason {
        let reason = mem::take(&mut self.finish_reason).unwrap_or_else(|| "stop".into());
        match &*reason {
            "stop" if self.calls.any() => StopReason::ToolCalls,
            "stop" if self.refused => StopReason::Refusal,
            "stop" => StopReason::Stop,
            // The second is Mistral's.
            "length" | "model_length" => StopReason::Length,
            "tool_calls" | "function_call" => StopReason::ToolCalls,
            "content_filter" => StopReason::ContentFilter,
            _ => StopReason::Other(reason),
        }
    }

    #[cold]
    fn malformed(&self, data: &str, error: &dyn Display) -> ModelError {
        self.server.malformed(ChatCompletions::RESPONSE_NOUN, data, error)
    }
}

impl Decode for Decoder {
    fn decode(&mut self, data: &str, deltas: &mut Deltas) -> Result<(), ModelError> {
        match data.trim() {
            "[DONE]" => self.done = true,
            "" => {}
            chunk => match self.template.read(chunk) {
                Some(delta) => deltas.push_back(delta),
                None => self.decode_chunk(chunk, deltas)?,
            },
        }
        Ok(())
    }

    fn decode_whole(&mut self, body: &str, deltas: &mut Deltas) -> Result<(), ModelError> {
        let before = deltas.len();
        self.decode_chunk(body, deltas)?;
        if self.finish_reason.is_none() && deltas.len() == before {
            return Err(self.malformed(body, &"it has no choices"));
        }
        self.done = true;
        self.finish(deltas)
    }

    fn usage(&mut self) -> Option<Usage> {
        self.usage
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn finish(&mut self, deltas: &mut Deltas) -> Result<(), ModelError> {
        if self.finish_reason.is_none() && !self.done {
            return Err(self.server.unfinished());
        }
        // A gateway has failed, and does not say why.
        if self.finish_reason.as_deref() == Some("error") {
            return Err(self.server.unfinished());
        }
        self.calls.end(deltas);
        deltas.extend(self.usage.take().map(ModelDelta::Usage));
        deltas.push_back(ModelDelta::Stop(self.stop_reason()));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
