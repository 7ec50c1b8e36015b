//! The content so far: the open block, and its opaque fields.

use std::borrow::Cow;

use mainstem_http::Output;
use mainstem_message::Opaque;
use mainstem_model::ModelDelta;
use serde_json::{Map, Value, json};

use crate::{
    chunk::{Blob, FunctionCall, Part},
    opaque::Stored,
};

/// The content of one response.
#[derive(Debug, Default)]
pub(super) struct Content {
    open: Option<Open>,
    /// The number of calls, which is the slot of the next one.
    calls: usize,
    /// Whether there was text or data.
    answered: bool,
    /// Whether there was a thought.
    thought: bool,
    /// Whether a search of the service was reported.
    searched: bool,
}

/// The open block.
#[derive(Clone, Copy, Debug)]
struct Open {
    thought: bool,
    /// The number of bytes of text so far.
    len: usize,
}

impl Content {
    /// Returns `true` if there is a function call.
    pub(super) fn called(&self) -> bool {
        self.calls > 0
    }

    /// Returns `true` if there are thoughts and no other content.
    pub(super) fn only_thoughts(&self) -> bool {
        self.thought && !self.answered && self.calls == 0
    }

    /// Returns `true` if a block of text or thoughts is open.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Adds a part.
    pub(super) fn part(&mut self, mut part: Part<'_>, out: &mut Output<'_>) {
        if let Some(part) = part.take_of_service() {
            self.service(part, out);
            return;
        }
        let Part { text, inline_data, function_call, thought, thought_signature, .. } = part;
        let thought = thought.unwrap_or(false);
        let signature = thought_signature.filter(|signature| !signature.is_empty());
        match (function_call, inline_data) {
            (Some(call), _) => self.call(call, signature.as_deref(), out),
            (None, Some(blob)) => self.data(blob, thought, signature.as_deref(), out),
            (None, None) => self.text(text.unwrap_or_default().0, thought, signature.as_deref(), out),
        }
    }

    /// Adds text. A signed part ends its block: later parts must not be merged with it.
    fn text(&mut self, text: Cow<'_, str>, thought: bool, signature: Option<&str>, out: &mut Output<'_>) {
        if text.is_empty() && signature.is_none() {
            return;
        }
        let from = match self.open {
            Some(open) if open.thought == thought => open.len,
            Some(_) => {
                self.end(out);
                0
            }
            None => 0,
        };
        self.answered |= !thought && !text.is_empty();
        self.thought |= thought || text.is_empty();
        let len = from + text.len();
        if !text.is_empty() {
            out.push(text, if thought { ModelDelta::Thinking } else { ModelDelta::Text });
            self.open = Some(Open { thought, len });
        }
        if let Some(signature) = signature {
            let stored = Stored { thought_signature: Some(signature), thought, from, ..Stored::default() };
            out.push_whole(ModelDelta::BlockEnd { opaque: stored.into_opaque() });
            self.open = None;
        }
    }

    /// Reports an action of the service itself, and keeps its part in a block of its own.
    fn service(&mut self, part: Map<String, Value>, out: &mut Output<'_>) {
        if self.open.is_some() {
            self.end(out);
        }
        let code = part.get("executableCode").map(|code| ("code_execution", code));
        let call = part.get("toolCall").map(|call| (call["toolType"].as_str().unwrap_or_default(), call));
        self.searched |= call.is_some();
        if let Some((name, input)) = code.or(call) {
            let (name, input) = (name.to_lowercase(), input.clone());
            out.push_whole(ModelDelta::ServerToolCall { name, input });
        }
        self.thought = true;
        let opaque = Stored { part, ..Stored::default() }.into_opaque();
        out.push_whole(ModelDelta::BlockEnd { opaque });
    }

    /// Reports the queries of a search that has no parts of its own, once.
    pub(super) fn searched(&mut self, queries: Vec<String>, out: &mut Output<'_>) {
        if !std::mem::replace(&mut self.searched, true) && !queries.is_empty() {
            let (name, input) = ("google_search".to_owned(), json!({ "queries": queries }));
            out.push_whole(ModelDelta::ServerToolCall { name, input });
        }
    }

    /// Counts text that was added to the open block.
    pub(super) fn grew(&mut self, by: usize) {
        if let Some(open) = &mut self.open {
            open.len += by;
        }
    }

    fn data(&mut self, blob: Blob, thought: bool, signature: Option<&str>, out: &mut Output<'_>) {
        self.open = None;
        self.answered = true;
        let Blob { mime_type: media_type, data } = blob;
        let opaque = Stored { thought_signature: signature, thought, ..Stored::default() }.into_opaque();
        out.push_whole(ModelDelta::DataStart { media_type });
        out.push_whole(ModelDelta::Data(data));
        out.push_whole(ModelDelta::BlockEnd { opaque });
    }

    fn call(&mut self, call: FunctionCall<'_>, signature: Option<&str>, out: &mut Output<'_>) {
        self.open = None;
        let slot = self.calls;
        self.calls += 1;
        let id = call.id.filter(|id| !id.is_empty());
        let stored = Stored { id: id.as_deref(), thought_signature: signature, ..Stored::default() };
        let opaque = stored.into_opaque();
        let (id, name) = (id.map(Into::into), call.name.unwrap_or_default());
        out.push_whole(ModelDelta::CallStart { slot, id, name });
        if let Some(args) = call.args {
            out.push_whole(ModelDelta::CallArguments { slot, delta: args.get().to_owned() });
        }
        out.push_whole(ModelDelta::CallEnd { slot, opaque });
    }

    fn end(&mut self, out: &mut Output<'_>) {
        self.open = None;
        out.push_whole(ModelDelta::BlockEnd { opaque: Opaque::new() });
    }
}
