//! Text for models: bounded, valid, and on one line where needed.

use std::{borrow::Cow, fmt::Write, path::Path};

/// The maximum number of bytes of one result: below the size from which results become artifacts.
pub(crate) const MAX_BYTES: usize = 48 << 10;

/// The first items of a list that fit, and the number of those that do not.
#[derive(Debug)]
pub(crate) struct Listing {
    text: String,
    shown: usize,
    max: usize,
    left_out: u64,
}

impl Listing {
    pub(crate) fn new(max: usize) -> Self {
        Self { text: String::new(), shown: 0, max, left_out: 0 }
    }

    /// Adds an item, which may have several lines, or counts it.
    pub(crate) fn push(&mut self, item: &str) {
        let fits = self.shown < self.max && self.text.len() + item.len() < MAX_BYTES;
        if self.left_out > 0 || !fits {
            self.left_out += 1;
            return;
        }
        self.shown += 1;
        self.text.push_str(item);
        self.text.push('\n');
    }

    /// Returns `true` if all further items are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.left_out > 0
    }

    /// Returns the number of items that are left out.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the text, followed by the notes, each on a line of its own.
    pub(crate) fn finish(mut self, none: &str, notes: &[String]) -> String {
        if self.shown == 0 && self.left_out == 0 {
            self.text.push_str(none);
            self.text.push('\n');
        }
        for note in notes {
            let _ = writeln!(self.text, "[{note}]");
        }
        self.text.truncate(self.text.trim_end_matches('\n').len());
        self.text
    }
}

/// Returns a path as models read and write it; characters that would break the line are escaped.
pub(crate) fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.chars().any(char::is_control) { text.escape_debug().to_string() } else { text.into_owned() }
}

/// Returns at most `max` bytes of text, from about `around` on, with a note of what is left out.
pub(crate) fn cut(text: &str, max: usize, around: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let start = around.saturating_sub(max / 4).min(text.len() - max);
    let (start, end) = (text.floor_char_boundary(start), text.floor_char_boundary(start + max));
    let (before, after) = if start > 0 { ("…", "…") } else { ("", "…") };
    Cow::Owned(format!("{before}{}{after} [line of {} bytes, cut]", &text[start..end], text.len()))
}

#[cfg(test)]
mod tests;
