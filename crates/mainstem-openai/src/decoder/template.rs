//! Parses the common part of a response's chunks once.
//!
//! Most chunks are the previous one with another text: the same envelope, the same place of the
//! text. After a chunk with one delta whose text was borrowed from the payload, a payload with the
//! same bytes around that place has the same delta with the text that is there now, and nothing
//! else: what the other bytes mean (a model's name, the usage so far, the current call) has been
//! decoded before. Comparing them takes a tenth of the time of parsing.

use std::borrow::Cow;

use mainstem_model::ModelDelta;

use super::Deltas;

/// The last chunk with one delta and no other new content.
#[derive(Debug, Default)]
pub(super) struct Template {
    /// The payload without its text.
    around: String,
    /// The place of the text, after a quotation mark; 0 without a template.
    at: usize,
    brings: Brings,
}

#[derive(Clone, Copy, Debug, Default)]
enum Brings {
    #[default]
    Text,
    Thinking,
    Arguments {
        slot: usize,
    },
}

impl Template {
    /// Returns the delta of a payload that differs from the last in its text alone.
    pub(super) fn read(&self, payload: &str) -> Option<ModelDelta> {
        let opening = self.at.checked_sub(1)?;
        let (before, after) = self.around.split_at(self.at);
        let raw = payload.strip_prefix(before)?.strip_suffix(after)?;
        let text = if raw.bytes().all(|byte| byte >= b' ' && !matches!(byte, b'"' | b'\\')) {
            raw.to_owned()
        } else {
            // Parsed with its quotation marks. What is not a valid string, such as a text that
            // contains a mark, does not match.
            serde_json::from_str(payload.get(opening..=self.at + raw.len())?).ok()?
        };
        (!text.is_empty()).then(|| self.brings.delta(text))
    }
}

impl Brings {
    fn of(delta: &ModelDelta) -> Option<Self> {
        match delta {
            ModelDelta::Text(_) => Some(Self::Text),
            ModelDelta::Thinking(_) => Some(Self::Thinking),
            ModelDelta::CallArguments { slot, .. } => Some(Self::Arguments { slot: *slot }),
            _ => None,
        }
    }

    fn delta(self, text: String) -> ModelDelta {
        match self {
            Self::Text => ModelDelta::Text(text),
            Self::Thinking => ModelDelta::Thinking(text),
            Self::Arguments { slot } => ModelDelta::CallArguments { slot, delta: text },
        }
    }
}

/// The output for the deltas of one payload.
pub(super) struct Out<'d> {
    deltas: &'d mut Deltas,
    before: usize,
    /// Address and length of the last text that is borrowed from the payload.
    text: Option<(usize, usize)>,
}

impl<'d> Out<'d> {
    pub(super) fn new(deltas: &'d mut Deltas) -> Self {
        Self { before: deltas.len(), deltas, text: None }
    }

    /// Adds a delta of a text, unless it is empty.
    pub(super) fn push(&mut self, text: Cow<'_, str>, delta: impl FnOnce(String) -> ModelDelta) {
        if text.is_empty() {
            return;
        }
        if let Cow::Borrowed(text) = text {
            self.text = Some((text.as_ptr().addr(), text.len()));
        }
        self.push_whole(delta(text.into_owned()));
    }

    pub(super) fn push_whole(&mut self, delta: ModelDelta) {
        self.deltas.push_back(delta);
    }

    /// Makes a template of the payload, if possible.
    pub(super) fn teach(self, template: &mut Template, payload: &str) {
        template.at = 0;
        let (Some((address, len)), Some(last)) = (self.text, self.deltas.back()) else { return };
        if let Some(brings) = Brings::of(last).filter(|_| self.deltas.len() == self.before + 1) {
            let at = address - payload.as_ptr().addr();
            template.around.clear();
            template.around.extend([&payload[..at], &payload[at + len..]]);
            (template.at, template.brings) = (at, brings);
        }
    }
}
