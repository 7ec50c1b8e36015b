//! A line of front matter, and the key it may begin with.

use crate::{Dialect, Key, key::Text};

#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) text: &'a str,
    /// Key and the rest of the line, if the line begins with `key: ` or `key:`.
    entry: Option<(&'a str, &'a str)>,
}

/// Keys of other products whose value is text.
const FOREIGN_TEXTS: [&str; 5] = ["prompt", "argument-hint", "initialPrompt", "color", "target"];

/// A key of another product whose value is a list that may be written as text.
const FOREIGN_NAMES: &str = "disallowedTools";

/// Returns what text the key's value is.
fn text(key: &str) -> Text {
    match Key::named(key) {
        Some(key) => key.text,
        None if key == FOREIGN_NAMES => Text::Names,
        None if FOREIGN_TEXTS.contains(&key) => Text::Plain,
        None => Text::No,
    }
}

impl<'a> Line<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let entry = text.split_once(':').filter(|(key, rest)| {
            let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            !key.is_empty() && key.chars().all(word) && (rest.is_empty() || rest.starts_with([' ', '\t']))
        });
        Self { text, entry: entry.map(|(key, rest)| (key, rest.trim())) }
    }

    pub(super) fn key(&self) -> Option<&'a str> {
        self.entry.map(|(key, _)| key)
    }

    /// Returns the part after the key, if the key's value is text.
    pub(super) fn value(&self) -> Option<&'a str> {
        self.entry.filter(|(key, _)| text(key) != Text::No).map(|(_, value)| value)
    }

    pub(super) fn is_description(&self) -> bool {
        self.key() == Some("description")
    }

    pub(super) fn may_be_list(&self) -> bool {
        self.key().is_some_and(|key| text(key) == Text::Names)
    }

    /// Returns `true` if it begins with a key of some product, or with a similar word.
    pub(super) fn is_entry(&self) -> bool {
        self.key().is_some_and(Dialect::is_like_a_key)
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    pub(super) fn is_indented(&self) -> bool {
        !self.is_blank() && self.text.starts_with([' ', '\t'])
    }

    pub(super) fn value_column(&self) -> usize {
        let value = self.entry.map_or("", |(_, value)| value);
        let before = self.text.trim_end().strip_suffix(value).unwrap_or_default();
        before.chars().count() + 1
    }

    /// Returns the line with this text as its value, in quotes.
    pub(super) fn with_value(&self, text: &str) -> String {
        let mut line = format!("{}: \"", self.key().unwrap_or_default());
        for c in text.chars() {
            match c {
                '"' | '\\' => line.extend(['\\', c]),
                '\n' => line.push_str("\\n"),
                '\t' => line.push_str("\\t"),
                c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                    line.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                c => line.push(c),
            }
        }
        line + "\""
    }

    /// Returns the line indented with spaces, if it is indented with tabs.
    pub(super) fn without_tabs(&self) -> Option<String> {
        let rest = self.text.trim_start_matches([' ', '\t']);
        let indent = &self.text[..self.text.len() - rest.len()];
        (indent.contains('\t') && !rest.is_empty()).then(|| indent.replace('\t', " ") + rest)
    }
}
