//! Parses the common part of a response's payloads once.

use std::{borrow::Cow, ops::Range};

use mainstem_model::ModelDelta;
use serde::Deserialize;

use crate::Deltas;

/// After so many templates in a row that no payload followed, no further one is made.
const ATTEMPTS: u8 = 8;

/// The form of the payloads of a response: most are the previous one with another text.
///
/// After a payload with one delta whose text was borrowed from it, one with the same bytes around
/// that text has the same delta with the text that is there now, and nothing else: what the other
/// bytes mean (a model's name, the current call) has been decoded before. Comparing them takes a
/// tenth of the time of parsing. Fields that differ in each payload and that the decoder does not
/// read, such as a sequence number, may have any value.
#[derive(Debug)]
pub struct Template {
    /// The names of fields whose strings and numbers differ, and are not read.
    varying: &'static [&'static str],
    /// The last payload with one delta and no other new content; empty without a template.
    payload: String,
    /// The places in it that may differ, in order.
    holes: Vec<Hole>,
    brings: Brings,
    /// Templates since the last payload that followed one.
    unused: u8,
}

#[derive(Debug)]
struct Hole {
    at: Range<usize>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// The text of the delta, without its quotation marks.
    Text,
    String,
    Number,
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
    /// Creates a template of nothing. Fields with the names in `varying` are not read.
    pub fn new(varying: &'static [&'static str]) -> Self {
        Self { varying, payload: String::new(), holes: Vec::new(), brings: Brings::default(), unused: 0 }
    }

    /// Returns the delta of a payload that differs from the last in its text and in varying fields
    /// alone; `None` for any other payload, which must be parsed.
    pub fn read(&mut self, payload: &str) -> Option<ModelDelta> {
        let (mut rest, mut from, mut text) = (payload, 0, "");
        if self.holes.is_empty() {
            return None;
        }
        for Hole { at, kind } in &self.holes {
            rest = rest.strip_prefix(&self.payload[from..at.start])?;
            let (value, after) = rest.split_at(kind.length(rest)?);
            if *kind == Kind::Text {
                text = value;
            }
            (rest, from) = (after, at.end);
        }
        if rest != &self.payload[from..] {
            return None;
        }
        let text = if text.contains('\\') { unescape(text)? } else { text.to_owned() };
        if text.is_empty() {
            return None;
        }
        self.unused = 0;
        Some(self.brings.delta(text))
    }

    /// Forgets the last payload: a later one is parsed.
    pub fn forget(&mut self) {
        self.holes.clear();
    }

    fn learn(&mut self, payload: &str, text: Range<usize>, brings: Brings) {
        self.forget();
        if self.unused == ATTEMPTS {
            return;
        }
        self.unused += 1;
        self.payload.clear();
        self.payload.push_str(payload);
        self.brings = brings;
        self.holes.push(Hole { at: text, kind: Kind::Text });
        for name in self.varying {
            self.holes.extend(holes(payload, name));
        }
        self.holes.sort_unstable_by_key(|hole| hole.at.start);
    }
}

impl Kind {
    /// Returns the length of the value at the beginning of `rest`; `None` if there is none.
    fn length(self, rest: &str) -> Option<usize> {
        let mut bytes = rest.bytes();
        match self {
            Self::Text => text_length(rest.as_bytes()),
            // A value that needs decoding is none.
            Self::String => {
                let end = bytes.position(|byte| matches!(byte, b'"' | b'\\' | ..b' '))?;
                (rest.as_bytes()[end] == b'"').then_some(end)
            }
            Self::Number => bytes.position(|byte| !is_of_number(byte)).filter(|length| *length > 0),
        }
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

/// Returns the length of a JSON string from behind its first quotation mark up to the last one;
/// `None` if it does not end, or has a byte that no string may have.
fn text_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            ..b' ' => return None,
            _ => at += 1,
        }
    }
}

/// Returns the text of a JSON string without its quotation marks.
#[cold]
fn unescape(raw: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{raw}\"")).ok()
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Returns the values of all fields of this name in a JSON object, and in those within it.
fn holes<'p>(payload: &'p str, name: &str) -> impl Iterator<Item = Hole> + 'p {
    let field = format!("\"{name}\":");
    let length = field.len();
    let places: Vec<_> = payload.match_indices(&field).map(|(at, _)| at).collect();
    places.into_iter().filter_map(move |at| {
        // Within a string, a quotation mark follows a backslash.
        let is_field = matches!(payload.as_bytes().get(at.checked_sub(1)?)?, b'{' | b',' | b' ' | b'\n');
        let value = payload[at + length..].trim_start_matches(' ');
        let start = payload.len() - value.len();
        let (start, kind) =
            if value.starts_with('"') { (start + 1, Kind::String) } else { (start, Kind::Number) };
        let end = start + kind.length(&payload[start..]).filter(|_| is_field)?;
        Some(Hole { at: start..end, kind })
    })
}

/// A string of a payload, borrowed if it has no escapes, so that its place is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a string")]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// The deltas of one payload, as its decoder adds them.
#[derive(Debug)]
pub struct Output<'d> {
    deltas: &'d mut Deltas,
    before: usize,
    /// Address and length of the last text that is borrowed from the payload.
    text: Option<(usize, usize)>,
}

impl<'d> Output<'d> {
    /// Creates the output of a payload.
    pub fn new(deltas: &'d mut Deltas) -> Self {
        Self { before: deltas.len(), deltas, text: None }
    }

    /// Adds a delta of a text, unless it is empty. A text that is borrowed is one of the payload.
    pub fn push(&mut self, text: Cow<'_, str>, delta: impl FnOnce(String) -> ModelDelta) {
        if text.is_empty() {
            return;
        }
        if let Cow::Borrowed(text) = text {
            self.text = Some((text.as_ptr().addr(), text.len()));
        }
        self.push_whole(delta(text.into_owned()));
    }

    /// Adds any other delta.
    pub fn push_whole(&mut self, delta: ModelDelta) {
        self.deltas.push_back(delta);
    }

    /// Makes a template of the payload if it has one delta with a text of its own; otherwise
    /// forgets the template.
    pub fn teach(self, template: &mut Template, payload: &str) {
        let place = || {
            let (address, length) = self.text.filter(|_| self.deltas.len() == self.before + 1)?;
            let at = address.checked_sub(payload.as_ptr().addr())?;
            // With its quotation marks, it is a whole string.
            let is_string = payload.get(..at)?.ends_with('"') && payload.get(at + length..)?.starts_with('"');
            is_string.then_some((at..at + length, Brings::of(self.deltas.back()?)?))
        };
        match place() {
            Some((text, brings)) => template.learn(payload, text, brings),
            None => template.forget(),
        }
    }
}

#[cfg(test)]
mod tests;
