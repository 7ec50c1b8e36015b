//! Decodes events: one payload in, deltas out. No I/O.

mod items;

use std::{fmt::Display, sync::Arc};

use mainstem_http::{Api, Decode, Deltas, Output, Resumption, Server, ServerError, Template};
use mainstem_message::{StopReason, Usage};
use mainstem_model::{ErrorKind, ModelDelta, ModelError};
use serde::Deserialize;
use serde_json::{Value, json};

use self::items::Items;
use super::{
    Responses,
    background::Background,
    event::{Beginning, Ending, Fragment, Head, ItemEvent, Response, SummaryPart},
};

/// What differs in each event and is not read.
const VARYING: [&str; 2] = ["sequence_number", "obfuscation"];

/// The state of one response.
pub(crate) struct Decoder {
    server: Arc<Server>,
    template: Template,
    items: Items,
    /// Set while the response is written in the background.
    background: Option<Background>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
}

impl Decoder {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        let template = Template::new(&VARYING);
        Self { server, template, items: Items::default(), background: None, usage: None, stop: None }
    }

    fn event(&mut self, kind: &str, data: &str, out: &mut Output<'_>) -> Result<(), ModelError> {
        match kind {
            "response.created" => {
                let Beginning { response } = self.read(data)?;
                self.background = Background::of(response);
            }
            "response.output_text.delta" | "response.output_text.done" => {
                self.fragment(kind, data, Items::text, out)?;
            }
            "response.refusal.delta" | "response.refusal.done" => {
                self.fragment(kind, data, Items::refusal, out)?;
            }
            "response.function_call_arguments.delta" | "response.function_call_arguments.done" => {
                self.fragment(kind, data, Items::arguments, out)?;
            }
            "response.reasoning_summary_text.delta"
            | "response.reasoning_summary_text.done"
            | "response.reasoning_text.delta"
            | "response.reasoning_text.done" => self.fragment(kind, data, Items::thinking, out)?,
            "response.reasoning_summary_part.added" => {
                let SummaryPart { output_index, summary_index } = self.read(data)?;
                // Parts are paragraphs.
                if summary_index > 0 {
                    self.items.thinking(Fragment { output_index, delta: "\n\n".into() }, out);
                }
            }
            "response.output_item.added" => {
                let ItemEvent { output_index, item } = self.read(data)?;
                self.items.begin(output_index, &item, out);
            }
            "response.output_item.done" => {
                let ItemEvent { output_index, item } = self.read(data)?;
                self.items.end(output_index, item, out);
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                let Ending { response } = self.read(data)?;
                let status = kind.trim_start_matches("response.");
                self.conclude(Response { status: Some(status.to_owned()), ..response }, data, out)?;
            }
            "error" => return Err(self.failure(&self.read(data)?)),
            _ => {}
        }
        Ok(())
    }

    /// Adds a piece of a text, or the whole text if no piece of it came.
    fn fragment(
        &mut self,
        kind: &str,
        data: &str,
        add: fn(&mut Items, Fragment<'_>, &mut Output<'_>),
        out: &mut Output<'_>,
    ) -> Result<(), ModelError> {
        let fragment: Fragment<'_> = self.read(data)?;
        if !kind.ends_with(".done") || !self.items.is_written(fragment.output_index) {
            add(&mut self.items, fragment, out);
        }
        Ok(())
    }

    /// Ends the response with its status.
    fn conclude(&mut self, response: Response, data: &str, out: &mut Output<'_>) -> Result<(), ModelError> {
        self.background = None;
        self.usage = response.usage.map(Into::into);
        if response.status.as_deref() == Some("failed") || response.error.is_some() {
            return Err(self.failure(&json!({ "error": response.error })));
        }
        // Items that were not streamed are read now.
        if self.items.is_empty() {
            for (index, item) in (0..).zip(response.output.unwrap_or_default()) {
                self.items.end(index, item, out);
            }
        }
        let reason = response.incomplete_details.and_then(|details| details.reason);
        self.stop = Some(match response.status.as_deref() {
            Some("completed") | None => self.items.stop_reason(),
            Some("cancelled") => StopReason::Cancelled,
            Some("incomplete") => match reason.as_deref() {
                Some("max_output_tokens") => StopReason::Length,
                Some("content_filter") => StopReason::ContentFilter,
                _ => StopReason::Other(reason.unwrap_or_else(|| "incomplete".to_owned())),
            },
            Some(status) => return Err(self.malformed(data, &format!("it is {status}"))),
        });
        Ok(())
    }

    /// Returns the failure of an `error` event or a failed response.
    #[cold]
    fn failure(&self, event: &Value) -> ModelError {
        match ServerError::read(event) {
            Some(error) => error.interruption(&self.server),
            None => self.server.error(ErrorKind::Server, "broke off its answer and did not say why"),
        }
    }

    fn read<'a, T: Deserialize<'a>>(&self, data: &'a str) -> Result<T, ModelError> {
        serde_json::from_str(data).map_err(|error| self.malformed(data, &error))
    }

    #[cold]
    fn malformed(&self, data: &str, error: &dyn Display) -> ModelError {
        self.server.malformed(Responses::RESPONSE_NOUN, data, error)
    }
}

impl Decode for Decoder {
    fn decode(&mut self, data: &str, deltas: &mut Deltas) -> Result<(), ModelError> {
        // Servers that follow the vendor end their streams with `[DONE]`.
        if matches!(data.trim(), "" | "[DONE]") {
            return Ok(());
        }
        if let Some(delta) = self.template.read(data) {
            deltas.push_back(delta);
            return Ok(());
        }
        let Head { kind, sequence_number } = self.read(data)?;
        if self.background.as_ref().is_some_and(|response| response.has_had(sequence_number)) {
            return Ok(());
        }
        match kind {
            Some(kind) => {
                let mut out = Output::new(deltas);
                self.event(&kind, data, &mut out)?;
                // Without its number, the rest can't be told from what came.
                self.background =
                    self.background.take().and_then(|response| Some(response.after(sequence_number?)));
                // What is complete is read once; of what may be read on, each number counts.
                if kind.ends_with(".delta") && self.background.is_none() {
                    out.teach(&mut self.template, data);
                } else {
                    self.template.forget();
                }
                Ok(())
            }
            // An error of a gateway has no type.
            None if ServerError::read(&self.read(data)?).is_some() => Err(self.failure(&self.read(data)?)),
            None => Ok(()),
        }
    }

    fn decode_whole(&mut self, body: &str, deltas: &mut Deltas) -> Result<(), ModelError> {
        let response: Response = self.read(body)?;
        if response.output.is_none() && response.error.is_none() {
            return Err(self.malformed(body, &"it has no output"));
        }
        self.conclude(response, body, &mut Output::new(deltas))?;
        self.finish(deltas)
    }

    fn decode_state(&mut self, body: &str, deltas: &mut Deltas) -> Result<bool, ModelError> {
        let Ok(mut response) = serde_json::from_str::<Response>(body) else { return Ok(false) };
        match response.status.as_deref() {
            Some("queued" | "in_progress") => return Ok(true),
            Some("completed" | "incomplete" | "failed" | "cancelled") => {}
            _ => return Ok(false),
        }
        let mut out = Output::new(deltas);
        self.items.complete(response.output.take().unwrap_or_default(), &mut out);
        self.conclude(response, body, &mut out)?;
        Ok(true)
    }

    fn position(&self) -> Option<u64> {
        self.background.as_ref().and_then(Background::last)
    }

    fn resumption(&self) -> Option<Resumption> {
        self.background.as_ref().map(|response| response.resumption(self.server.url()))
    }

    fn usage(&mut self) -> Option<Usage> {
        self.usage
    }

    fn is_done(&self) -> bool {
        self.stop.is_some()
    }

    fn finish(&mut self, deltas: &mut Deltas) -> Result<(), ModelError> {
        let Some(stop) = self.stop.take() else {
            return Err(self.server.unfinished());
        };
        self.items.finish(deltas);
        deltas.extend(self.usage.take().map(ModelDelta::Usage));
        deltas.push_back(ModelDelta::Stop(stop));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
