//! The conversation in the vendor's form.

use std::{borrow::Cow, collections::HashMap, mem};

use mainstem_message::{ContentBlock, Message, Role, ToolCall, ToolResult, ToolState};
use mainstem_model::ModelRequest;
use serde::Serialize;

use super::part::{Call, Outcome, Part, Payload, Response};
use crate::{generation::Generation, opaque::Stored};

/// The signature [for calls that Gemini did not
/// make](https://ai.google.dev/gemini-api/docs/thought-signatures#faqs).
const UNSIGNED: &str = "skip_thought_signature_validator";

#[derive(Debug, Serialize)]
pub(super) struct Content<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
    /// Whether it holds responses of functions: the user's next text is another content, because it
    /// begins a turn.
    #[serde(skip)]
    responds: bool,
}

/// The instructions, and the other messages.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    pub(super) system: Vec<Part<'a>>,
    pub(super) contents: Vec<Content<'a>>,
}

/// Converts a conversation. Fails with what the API has no form for, and its place.
pub(super) fn conversation(
    request: &ModelRequest,
    generation: Generation,
) -> Result<Conversation<'_>, String> {
    let mut writer = Writer::new(generation);
    writer.system.extend(request.system.as_deref().filter(|system| !system.is_empty()).map(Part::text));
    for (message, number) in request.messages.iter().zip(1..) {
        for (block, place) in message.content.iter().zip(1..) {
            let at = |what| format!("has no form for {what} (message {number}, block {place})");
            writer.block(message, block).map_err(at)?;
        }
    }
    Ok(writer.finish())
}

struct Writer<'a> {
    generation: Generation,
    system: Vec<Part<'a>>,
    contents: Vec<Content<'a>>,
    /// By our id, for their results; of two with one id, the later.
    calls: HashMap<&'a str, Called<'a>>,
    /// The number of calls.
    called: usize,
    /// Responses to one turn, each with its call's number: those without ids are distinguished by
    /// their order.
    responses: Vec<(usize, Part<'a>)>,
    /// Data of these, which follows them.
    attached: Vec<Part<'a>>,
}

#[derive(Clone, Copy)]
struct Called<'a> {
    number: usize,
    name: &'a str,
    id: Option<&'a str>,
}

impl<'a> Writer<'a> {
    fn new(generation: Generation) -> Self {
        Self {
            generation,
            system: Vec::new(),
            contents: Vec::new(),
            calls: HashMap::new(),
            called: 0,
            responses: Vec::new(),
            attached: Vec::new(),
        }
    }

    fn block(&mut self, message: &Message, block: &'a ContentBlock) -> Result<(), &'static str> {
        if let ContentBlock::ToolResult(result) = block {
            return self.result(result);
        }
        self.respond();
        match message.role {
            Role::System => self.instruct(block),
            Role::User | Role::Tool => self.ask(block),
            Role::Assistant => self.answer(block),
        }
    }

    fn instruct(&mut self, block: &'a ContentBlock) -> Result<(), &'static str> {
        let text = block.as_text().ok_or("instructions that are not text")?;
        self.system.extend(Some(text).filter(|text| !text.is_empty()).map(Part::text));
        Ok(())
    }

    fn ask(&mut self, block: &'a ContentBlock) -> Result<(), &'static str> {
        match block {
            ContentBlock::Text { text, .. } if text.is_empty() => {}
            ContentBlock::Text { text, .. } => self.push("user", Part::text(text)),
            ContentBlock::Data { media_type, source, .. } => {
                self.push("user", Part::new(Payload::of(media_type, source)?));
            }
            ContentBlock::Thinking { .. } => {}
            ContentBlock::ToolCall(_) => return Err("a call that the model did not make"),
            _ => return Err("such a block"),
        }
        Ok(())
    }

    fn answer(&mut self, block: &'a ContentBlock) -> Result<(), &'static str> {
        match block {
            ContentBlock::Text { text, opaque } => self.signed(text, &Stored::of(opaque), false),
            ContentBlock::Thinking { thinking, opaque } => {
                let stored = Stored::of(opaque);
                if stored.thought_signature.is_some() {
                    self.signed(thinking, &stored, true);
                } else if !stored.part.is_empty() {
                    self.push("model", Part::new(Payload::OfService(stored.part)));
                }
            }
            ContentBlock::Data { media_type, source, opaque } => {
                let Stored { thought, thought_signature, .. } = Stored::of(opaque);
                self.push(
                    "model",
                    Part { data: Payload::of(media_type, source)?, thought, thought_signature },
                );
            }
            ContentBlock::ToolCall(call) => self.call(call),
            _ => return Err("such a block"),
        }
        Ok(())
    }

    /// Adds a text as the parts that it came in: the unsigned one and the signed one.
    fn signed(&mut self, text: &'a str, stored: &Stored<'a>, thought: bool) {
        let signed_from = if stored.thought_signature.is_some() { stored.from } else { text.len() };
        let (before, signed) = text.split_at_checked(signed_from).unwrap_or(("", text));
        if !before.is_empty() {
            self.push("model", Part { thought, ..Part::text(before) });
        }
        if stored.thought_signature.is_some() {
            let (thought, thought_signature) = (stored.thought, stored.thought_signature);
            self.push("model", Part { data: Payload::Text(signed), thought, thought_signature });
        }
    }

    fn call(&mut self, call: &'a ToolCall) {
        let stored = Stored::of(&call.opaque);
        let called = Called { number: self.called, name: &call.name, id: stored.id };
        self.called += 1;
        self.calls.insert(call.id.as_str(), called);
        let data = Payload::FunctionCall(Call::new(call, &stored));
        self.push("model", Part { data, thought: false, thought_signature: stored.thought_signature });
    }

    fn result(&mut self, result: &'a ToolResult) -> Result<(), &'static str> {
        let called = self.calls.get(result.tool_call_id.as_str()).copied();
        let Called { number, name, id } = called.ok_or("a result without its call before it")?;
        let mut parts = Vec::new();
        let mut output: Cow<'a, str> = "".into();
        for block in &result.content {
            match block {
                ContentBlock::Text { text, .. } => output += text.as_str(),
                ContentBlock::Data { media_type, source, .. } => {
                    let data = Payload::of(media_type, source)?;
                    output += if output.is_empty() { "" } else { "\n" };
                    output += if self.generation == Generation::Three && data.fits_a_response() {
                        parts.push(data);
                        "(data: see the parts of this response)"
                    } else {
                        self.attached.push(Part::new(data));
                        "(data: see what follows the responses)"
                    };
                }
                _ => {}
            }
        }
        let response = outcome(result.state, output);
        self.responses
            .push((number, Part::new(Payload::FunctionResponse(Response { id, name, response, parts }))));
        Ok(())
    }

    /// Writes the responses to a turn, once they are complete, in the order of their calls.
    fn respond(&mut self) {
        let mut responses = mem::take(&mut self.responses);
        if responses.is_empty() {
            return;
        }
        responses.sort_by_key(|(number, _)| *number);
        let parts = responses.into_iter().map(|(_, part)| part).chain(self.attached.drain(..)).collect();
        self.contents.push(Content { role: "user", parts, responds: true });
    }

    fn push(&mut self, role: &'static str, part: Part<'a>) {
        match self.contents.last_mut() {
            Some(last) if last.role == role && !last.responds => last.parts.push(part),
            _ => self.contents.push(Content { role, parts: vec![part], responds: false }),
        }
    }

    fn finish(mut self) -> Conversation<'a> {
        self.respond();
        if self.generation == Generation::Three {
            self.contents.iter_mut().for_each(sign);
        }
        Conversation { system: self.system, contents: self.contents }
    }
}

/// Signs the first call of a turn, the only one that the API checks.
fn sign(content: &mut Content<'_>) {
    let first = content.parts.iter_mut().find(|part| matches!(part.data, Payload::FunctionCall(_)));
    if let Some(call) = first {
        call.thought_signature.get_or_insert(UNSIGNED);
    }
}

fn outcome(state: ToolState, text: Cow<'_, str>) -> Outcome<'_> {
    let text = if text.is_empty() { state.as_str().into() } else { text };
    match state {
        ToolState::Error | ToolState::Interrupted | ToolState::Denied => Outcome::Error(text),
        _ => Outcome::Output(text),
    }
}
