//! Decodes chunks: one payload in, deltas out. No I/O.

mod content;

use std::{fmt::Display, sync::Arc};

use mainstem_http::{Api, Decode, Deltas, Output, Server, Template};
use mainstem_message::{self as message, Opaque, StopReason};
use mainstem_model::{ErrorKind, ModelDelta, ModelError};
use serde_json::value::RawValue;

use self::content::Content;
use crate::{
    GenerateContent,
    chunk::{Candidate, Chunk, Counts, Usage},
};

/// The counts of each chunk, of which the last ones are read.
const VARYING: [&str; 4] = ["candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount", "tokenCount"];

/// The state of one response. `Usage` and `Stop` are its last deltas: counts come with every chunk,
/// and older models report their finish in each.
pub(crate) struct Decoder {
    server: Arc<Server>,
    template: Template,
    content: Content,
    usage: Usage,
    /// The latest payload whose counts were not read yet; empty if they were.
    uncounted: String,
    finish: Option<Finish>,
    done: bool,
}

/// The API's reason for the end of a response, with its message.
struct Finish {
    reason: String,
    message: Option<String>,
    /// Whether the prompt was blocked.
    blocked: bool,
}

impl Decoder {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            template: Template::new(&VARYING),
            content: Content::default(),
            usage: Usage::default(),
            uncounted: String::new(),
            finish: None,
            done: false,
        }
    }

    fn decode_chunk(&mut self, data: &str, deltas: &mut Deltas) -> Result<(), ModelError> {
        let chunk: Chunk<'_> = match serde_json::from_str(data) {
            Ok(chunk) => chunk,
            Err(error) => {
                return Err(self.server.interruption(data).unwrap_or_else(|| self.malformed(data, &error)));
            }
        };
        if chunk.answers_nothing()
            && let Some(error) = self.server.interruption(data)
        {
            return Err(error);
        }
        self.count();
        self.usage = self.usage.then(chunk.usage_metadata.unwrap_or_default());
        let mut out = Output::new(deltas);
        // With `candidateCount` greater than one, the first candidate counts.
        let candidates = chunk.candidates.unwrap_or_default();
        for candidate in candidates.into_iter().filter(|candidate| candidate.index.unwrap_or(0) == 0) {
            self.candidate(candidate, &mut out);
        }
        if let Some(feedback) = chunk.prompt_feedback
            && let Some(reason) = feedback.block_reason
        {
            self.finish = Some(Finish { reason, message: feedback.block_reason_message, blocked: true });
        }
        out.teach(&mut self.template, data);
        Ok(())
    }

    /// Reads the counts of the latest payload.
    fn count(&mut self) {
        if let Ok(Counts { usage_metadata: Some(usage) }) = serde_json::from_str(&self.uncounted) {
            self.usage = self.usage.then(usage);
        }
        self.uncounted.clear();
    }

    /// Takes a payload that differs from the last one in its text and its counts alone.
    fn follow(&mut self, data: &str, deltas: &mut Deltas) -> bool {
        let Some(delta) = self.template.read(data) else { return false };
        if let ModelDelta::Text(text) | ModelDelta::Thinking(text) = &delta {
            self.content.grew(text.len());
        }
        deltas.push_back(delta);
        self.uncounted.clear();
        self.uncounted.push_str(data);
        true
    }

    fn candidate(&mut self, candidate: Candidate<'_>, out: &mut Output<'_>) {
        let parts = candidate.content.and_then(|content| content.parts).unwrap_or_default();
        parts.into_iter().for_each(|part| self.content.part(part, out));
        if let Some(queries) = candidate.grounding_metadata.and_then(|found| found.web_search_queries) {
            self.content.searched(queries, out);
        }
        if let Some(reason) = candidate.finish_reason.filter(|reason| !reason.is_empty()) {
            self.finish = Some(Finish { reason, message: candidate.finish_message, blocked: false });
        }
    }

    /// Decodes a stream element, or all of them in an array: the form without `alt=sse`.
    fn decode_elements(&mut self, body: &str, deltas: &mut Deltas) -> Result<(), ModelError> {
        if !body.trim_start().starts_with('[') {
            return self.decode_chunk(body, deltas);
        }
        let elements: Vec<&RawValue> =
            serde_json::from_str(body).map_err(|error| self.malformed(body, &error))?;
        elements.into_iter().try_for_each(|element| self.decode_chunk(element.get(), deltas))
    }

    #[cold]
    fn malformed(&self, data: &str, error: &dyn Display) -> ModelError {
        self.server.malformed(GenerateContent::RESPONSE_NOUN, data, error)
    }

    /// Returns the result of a call that the model failed to write. After thoughts alone, the loop
    /// asks again, because the answer was empty. Without any content, or after the beginning of an
    /// answer, which must not pass for the whole, the model call has failed.
    fn failed_call(&self, finish: &Finish) -> Result<StopReason, ModelError> {
        if self.content.called() {
            return Ok(StopReason::ToolCalls);
        }
        if self.content.only_thoughts() {
            return Ok(StopReason::Other(finish.reason.clone()));
        }
        let what = format!("gave up its answer: {} (asking again may help)", self.explained(finish));
        Err(self.server.error(ErrorKind::Server, &what))
    }

    fn explained(&self, Finish { reason, message, .. }: &Finish) -> String {
        match message {
            Some(message) => format!("{reason}: {}", self.server.quote(message)),
            None => reason.clone(),
        }
    }

    /// Names the filter in a thought: text would be an answer.
    fn filtered(&self, finish: &Finish, deltas: &mut Deltas) -> StopReason {
        let stopped = if finish.blocked { "the prompt" } else { "the answer" };
        let why = format!("{}'s filter stopped {stopped}: {}", self.server.host(), self.explained(finish));
        if self.content.is_open() {
            deltas.push_back(ModelDelta::BlockEnd { opaque: Opaque::new() });
        }
        deltas.push_back(ModelDelta::Thinking(why));
        StopReason::ContentFilter
    }

    /// Returns why it stopped, by the [API's
    /// words](https://ai.google.dev/api/generate-content#FinishReason).
    fn stop_reason(&self, finish: &Finish, deltas: &mut Deltas) -> Result<StopReason, ModelError> {
        Ok(match &*finish.reason {
            _ if finish.blocked => self.filtered(finish, deltas),
            "STOP" if self.content.called() => StopReason::ToolCalls,
            "STOP" => StopReason::Stop,
            "MAX_TOKENS" => StopReason::Length,
            "SAFETY"
            | "RECITATION"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "MODEL_ARMOR"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => self.filtered(finish, deltas),
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => {
                self.failed_call(finish)?
            }
            reason => StopReason::Other(reason.to_owned()),
        })
    }
}

impl Decode for Decoder {
    fn decode(&mut self, data: &str, deltas: &mut Deltas) -> Result<(), ModelError> {
        match data.trim() {
            // Google sends no such end; gateways do.
            "[DONE]" => self.done = true,
            "" => {}
            chunk if self.follow(chunk, deltas) => {}
            chunk => self.decode_elements(chunk, deltas)?,
        }
        Ok(())
    }

    fn decode_whole(&mut self, body: &str, deltas: &mut Deltas) -> Result<(), ModelError> {
        self.decode_elements(body, deltas)?;
        if self.finish.is_none() && deltas.iter().all(|delta| !delta.is_content()) {
            return Err(self.malformed(body, &"it has no candidates"));
        }
        self.finish(deltas)
    }

    fn usage(&mut self) -> Option<message::Usage> {
        self.count();
        self.usage.counted()
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn finish(&mut self, deltas: &mut Deltas) -> Result<(), ModelError> {
        let Some(finish) = self.finish.take() else {
            return Err(self.server.unfinished());
        };
        let usage = self.usage();
        let stop = self.stop_reason(&finish, deltas)?;
        deltas.extend(usage.map(ModelDelta::Usage));
        deltas.push_back(ModelDelta::Stop(stop));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
