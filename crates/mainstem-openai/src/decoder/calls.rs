//! Assigns fragments to tool calls.
//!
//! By the standard, `index` identifies the call, and its first fragment has id and name. In
//! practice [Gemini leaves the index out](https://github.com/open-webui/computer/issues/224),
//! [Ollama sent 0 for every call](https://github.com/ollama/ollama/issues/15457), ids may be
//! missing or empty, and some servers repeat id or name in each fragment.

use std::mem;

use mainstem_message::Opaque;
use mainstem_model::ModelDelta;

use super::{Deltas, Output};
use crate::chunk::{Function, ToolCall};

/// The calls of one response; a call's index here is its slot.
#[derive(Default)]
pub(super) struct Calls(Vec<Call>);

#[derive(Default)]
struct Call {
    index: Option<u64>,
    id: Option<Box<str>>,
    name: Option<Box<str>>,
    /// Whether it has more than an id.
    started: bool,
    opaque: Opaque,
}

impl Calls {
    /// Returns `true` if there is a call.
    pub(super) fn any(&self) -> bool {
        self.0.iter().any(|call| call.started)
    }

    /// Adds a fragment, or a whole call.
    pub(super) fn push(&mut self, fragment: ToolCall<'_>, out: &mut Output<'_>) {
        let ToolCall { index, id, function, extra_content } = fragment;
        let Function { name, arguments } = function.unwrap_or_default();
        let (id, name) = (id.filter(|id| !id.is_empty()), name.filter(|name| !name.is_empty()));
        let slot = self.slot(index, id.as_deref(), name.as_deref());
        let call = &mut self.0[slot];
        if let Some(extra) = extra_content {
            call.opaque.insert("extra_content".to_owned(), *extra);
        }
        if !call.started {
            call.id = call.id.take().or_else(|| id.map(Into::into));
            if name.is_some() || !arguments.0.is_empty() {
                out.push_whole(call.start(slot, name));
            }
        }
        out.push(arguments.0, |delta| ModelDelta::CallArguments { slot, delta });
    }

    /// Ends all calls; until now each may have continued.
    pub(super) fn end(&mut self, deltas: &mut Deltas) {
        for (slot, call) in self.0.iter_mut().enumerate().filter(|(_, call)| call.started) {
            deltas.push_back(ModelDelta::CallEnd { slot, opaque: mem::take(&mut call.opaque) });
        }
    }

    fn slot(&mut self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> usize {
        let known = match index {
            Some(_) => self.0.iter().rposition(|call| call.index == index),
            None => self.0.iter().rposition(|call| id.is_some() && call.id.as_deref() == id),
        };
        let last = || self.0.len().checked_sub(1).filter(|_| index.is_none());
        let found = known.or_else(last).filter(|slot| self.0[*slot].continues(id, name));
        found.unwrap_or_else(|| {
            self.0.push(Call { index, ..Call::default() });
            self.0.len() - 1
        })
    }
}

impl Call {
    /// Returns `true` if a fragment at this call's index continues it, and `false` if it begins
    /// another call.
    fn continues(&self, id: Option<&str>, name: Option<&str>) -> bool {
        match (self.id.as_deref(), id) {
            (Some(own), Some(id)) => own == id,
            (Some(_), None) => name.is_none() || self.name.is_none() || self.name.as_deref() == name,
            // Without ids, a name begins a call.
            (None, _) => name.is_none() || self.name.is_none(),
        }
    }

    fn start(&mut self, slot: usize, name: Option<String>) -> ModelDelta {
        self.started = true;
        self.name = name.as_deref().map(Into::into);
        let id = self.id.as_deref().map(Into::into);
        ModelDelta::CallStart { slot, id, name: name.unwrap_or_default() }
    }
}
