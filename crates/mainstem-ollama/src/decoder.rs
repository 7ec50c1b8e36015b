//! Decodes lines: one payload in, deltas out. No I/O.

use std::{fmt::Display, sync::Arc};

use mainstem_http::{Api, Decode, Deltas, Output, Server, ServerError, Template};
use mainstem_message::{Opaque, StopReason, Usage};
use mainstem_model::{ModelDelta, ModelError};

use crate::{
    Chat,
    chunk::{Chunk, Message, ToolCall},
};

/// What differs in each line and is not read.
const VARYING: [&str; 1] = ["created_at"];

/// The state of one response.
pub(crate) struct Decoder {
    server: Arc<Server>,
    template: Template,
    /// The number of calls so far: the slot of the next.
    calls: usize,
    usage: Option<Usage>,
    /// The error of a line that ends within its JSON, unless the stream ends there too.
    torn: Option<ModelError>,
    /// The reason, once the response is complete.
    done: Option<String>,
}

impl Decoder {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        let template = Template::new(&VARYING);
        Self { server, template, calls: 0, usage: None, torn: None, done: None }
    }

    fn decode_chunk(&mut self, data: &str, deltas: &mut Deltas) -> Result<(), ModelError> {
        let chunk: Chunk<'_> = match serde_json::from_str(data) {
            Ok(chunk) => chunk,
            Err(error) if error.is_eof() => {
                self.torn = Some(self.malformed(data, &error));
                return Ok(());
            }
            Err(error) => return Err(self.malformed(data, &error)),
        };
        if chunk.error.is_some() {
            let silent = || ServerError::default().interruption(&self.server);
            return Err(self.server.interruption(data).unwrap_or_else(silent));
        }
        self.usage = chunk.usage().or(self.usage);
        let mut out = Output::new(deltas);
        if let Some(message) = chunk.message {
            self.message(message, &mut out);
        }
        out.teach(&mut self.template, data);
        if chunk.done == Some(true) {
            self.done = Some(chunk.done_reason.unwrap_or_default());
        }
        Ok(())
    }

    fn message(&mut self, message: Message<'_>, out: &mut Output<'_>) {
        out.push(message.thinking.unwrap_or_default().0, ModelDelta::Thinking);
        out.push(message.content.unwrap_or_default().0, ModelDelta::Text);
        for call in message.tool_calls.unwrap_or_default() {
            self.call(call, out);
        }
    }

    fn call(&mut self, ToolCall { id, function }: ToolCall<'_>, out: &mut Output<'_>) {
        let (slot, delta) = (self.calls, function.arguments());
        self.calls += 1;
        let id = id.filter(|id| !id.is_empty()).map(Into::into);
        out.push_whole(ModelDelta::CallStart { slot, id, name: function.name });
        if !delta.is_empty() {
            out.push_whole(ModelDelta::CallArguments { slot, delta });
        }
        out.push_whole(ModelDelta::CallEnd { slot, opaque: Opaque::new() });
    }

    /// Returns why it stopped. Ollama has no reason for tool calls. `load` and `unload` are
    /// responses to a conversation without messages.
    fn stop_reason(&self, reason: String) -> StopReason {
        match &*reason {
            "" | "stop" if self.calls > 0 => StopReason::ToolCalls,
            "" | "stop" => StopReason::Stop,
            "length" => StopReason::Length,
            _ => StopReason::Other(reason),
        }
    }

    #[cold]
    fn malformed(&self, data: &str, error: &dyn Display) -> ModelError {
        self.server.malformed(Chat::RESPONSE_NOUN, data, error)
    }
}

impl Decode for Decoder {
    fn decode(&mut self, line: &str, deltas: &mut Deltas) -> Result<(), ModelError> {
        match (self.torn.take(), line.trim()) {
            (Some(error), _) => Err(error),
            (None, "") => Ok(()),
            (None, chunk) => match self.template.read(chunk) {
                Some(delta) => {
                    deltas.push_back(delta);
                    Ok(())
                }
                None => self.decode_chunk(chunk, deltas),
            },
        }
    }

    fn decode_whole(&mut self, body: &str, deltas: &mut Deltas) -> Result<(), ModelError> {
        let before = deltas.len();
        self.decode_chunk(body, deltas)?;
        if let Some(error) = self.torn.take() {
            return Err(error);
        }
        if self.done.is_none() && deltas.len() == before {
            return Err(self.malformed(body, &"it has no message"));
        }
        self.done.get_or_insert_default();
        self.finish(deltas)
    }

    fn usage(&mut self) -> Option<Usage> {
        self.usage
    }

    fn is_done(&self) -> bool {
        self.done.is_some()
    }

    fn finish(&mut self, deltas: &mut Deltas) -> Result<(), ModelError> {
        let Some(reason) = self.done.take() else {
            return Err(self.server.unfinished());
        };
        deltas.extend(self.usage.take().map(ModelDelta::Usage));
        deltas.push_back(ModelDelta::Stop(self.stop_reason(reason)));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
