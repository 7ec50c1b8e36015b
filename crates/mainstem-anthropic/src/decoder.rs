//! Decodes events: one payload in, deltas out. No I/O.

mod blocks;

use std::{fmt::Display, mem, sync::Arc};

use mainstem_http::{Api, Decode, Deltas, Output, Server, Template};
use mainstem_message::{self as message, StopReason};
use mainstem_model::{ModelDelta, ModelError};

use self::blocks::Blocks;
use crate::{
    Messages,
    event::{Event, Message, Usage},
};

/// The state of one response.
pub(crate) struct Decoder {
    server: Arc<Server>,
    template: Template,
    blocks: Blocks,
    usage: Option<Usage>,
    stop_reason: Option<String>,
    done: bool,
}

impl Decoder {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        let template = Template::new(&[]);
        Self { server, template, blocks: Blocks::default(), usage: None, stop_reason: None, done: false }
    }

    fn event(&mut self, event: Event<'_>, out: &mut Output<'_>) {
        match event {
            Event::MessageStart { message } => self.count(message.usage),
            Event::ContentBlockStart { index, content_block } => {
                self.blocks.start(index, content_block, out);
            }
            Event::ContentBlockDelta { index, delta } => self.blocks.delta(index, delta, out),
            Event::ContentBlockStop { index } => self.blocks.stop(index, out),
            Event::MessageDelta { delta, usage } => {
                self.stop_reason = delta.stop_reason.or_else(|| self.stop_reason.take());
                self.count(usage);
            }
            Event::MessageStop => self.done = true,
            Event::Error | Event::Other => {}
        }
    }

    fn count(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.usage.get_or_insert_default().update(usage);
        }
    }

    fn stop_reason(&mut self) -> StopReason {
        let reason = mem::take(&mut self.stop_reason).unwrap_or_else(|| "end_turn".into());
        match &*reason {
            // Some servers send it for tool calls, too.
            "end_turn" | "stop_sequence" if self.blocks.any_calls() => StopReason::ToolCalls,
            "end_turn" | "stop_sequence" => StopReason::Stop,
            "tool_use" => StopReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "pause_turn" => StopReason::Paused,
            "refusal" => StopReason::Refusal,
            _ => StopReason::Other(reason),
        }
    }

    /// Returns the failure that a server reports, or that of invalid data.
    #[cold]
    fn failure(&self, data: &str, problem: &dyn Display) -> ModelError {
        let malformed = || self.server.malformed(Messages::RESPONSE_NOUN, data, problem);
        self.server.interruption(data).unwrap_or_else(malformed)
    }
}

impl Decode for Decoder {
    fn decode(&mut self, data: &str, deltas: &mut Deltas) -> Result<(), ModelError> {
        if let Some(delta) = self.template.read(data) {
            deltas.push_back(delta);
            return Ok(());
        }
        match serde_json::from_str(data) {
            // A `ping` between two deltas changes nothing.
            Ok(Event::Other) => Ok(()),
            Ok(Event::Error) => Err(self.failure(data, &"it is an error that does not say which")),
            Ok(event) => {
                let mut out = Output::new(deltas);
                self.event(event, &mut out);
                out.teach(&mut self.template, data);
                Ok(())
            }
            Err(_) if data.trim().is_empty() => Ok(()),
            Err(error) => Err(self.failure(data, &error)),
        }
    }

    fn decode_whole(&mut self, body: &str, deltas: &mut Deltas) -> Result<(), ModelError> {
        let message: Message = serde_json::from_str(body).map_err(|error| self.failure(body, &error))?;
        if message.content.is_none() && message.stop_reason.is_none() {
            return Err(self.failure(body, &"it has no content"));
        }
        let mut out = Output::new(deltas);
        for (index, block) in (0..).zip(message.content.unwrap_or_default()) {
            self.blocks.start(index, block, &mut out);
            self.blocks.stop(index, &mut out);
        }
        (self.stop_reason, self.done) = (message.stop_reason, true);
        self.count(message.usage);
        self.finish(deltas)
    }

    fn usage(&mut self) -> Option<message::Usage> {
        self.usage.map(Into::into)
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn finish(&mut self, deltas: &mut Deltas) -> Result<(), ModelError> {
        if self.stop_reason.is_none() && !self.done {
            return Err(self.server.unfinished());
        }
        self.blocks.end(&mut Output::new(deltas));
        deltas.extend(self.usage.take().map(|usage| ModelDelta::Usage(usage.into())));
        deltas.push_back(ModelDelta::Stop(self.stop_reason()));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
