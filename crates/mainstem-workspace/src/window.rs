//! Some lines of a text of any size, which comes in blocks of any size; only the shown lines are
//! stored.

use std::fmt::Write;

use crate::text::MAX_BYTES;

/// The maximum number of bytes of a line that are shown.
const LINE: usize = 2000;

/// Takes blocks, stores lines `first` to `first + limit - 1` as far as they fit, and counts the
/// rest.
#[derive(Debug)]
pub(crate) struct Window {
    first: u64,
    last: u64,
    text: String,
    /// The number of the current line.
    line: u64,
    /// Its beginning.
    pending: Vec<u8>,
    /// Its number of bytes so far.
    length: u64,
    shown: u64,
    is_full: bool,
    crlf: u64,
    garbled: u64,
}

/// The result of a [`Window`].
#[derive(Debug, PartialEq)]
pub(crate) struct View {
    /// The lines, each after its number and a tab.
    pub(crate) text: String,
    /// The number of shown lines.
    pub(crate) shown: u64,
    /// The number of lines of the whole text.
    pub(crate) total: u64,
    /// The number of shown lines that end in CRLF.
    pub(crate) crlf: u64,
    /// The number of shown lines that are not UTF-8.
    pub(crate) garbled: u64,
}

impl Window {
    /// Creates a window; `first` counts from 1.
    pub(crate) fn new(first: u64, limit: u64) -> Self {
        Self {
            first,
            last: first.saturating_add(limit).saturating_sub(1),
            text: String::new(),
            line: 1,
            pending: Vec::new(),
            length: 0,
            shown: 0,
            is_full: false,
            crlf: 0,
            garbled: 0,
        }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, mut block: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', block) {
            self.extend(&block[..end]);
            self.end_line();
            block = &block[end + 1..];
            if self.is_full || self.line > self.last {
                return self.count(block);
            }
        }
        self.extend(block);
    }

    /// Ends the text. Its last line counts with or without a newline.
    pub(crate) fn finish(mut self) -> View {
        if self.length > 0 {
            self.end_line();
        }
        let Self { text, shown, line, crlf, garbled, .. } = self;
        View { text, shown, total: line - 1, crlf, garbled }
    }

    fn count(&mut self, block: &[u8]) {
        self.line += memchr::memchr_iter(b'\n', block).count() as u64;
        self.length = (block.len() - memchr::memrchr(b'\n', block).map_or(0, |at| at + 1)) as u64;
    }

    fn is_wanted(&self) -> bool {
        !self.is_full && (self.first..=self.last).contains(&self.line)
    }

    fn extend(&mut self, part: &[u8]) {
        if self.is_wanted() {
            let room = (LINE + 1).saturating_sub(self.pending.len());
            self.pending.extend_from_slice(&part[..part.len().min(room)]);
        }
        self.length += part.len() as u64;
    }

    fn end_line(&mut self) {
        if self.is_wanted() {
            self.show();
        }
        self.pending.clear();
        self.length = 0;
        self.line += 1;
    }

    fn show(&mut self) {
        let mut bytes = &self.pending[..];
        if self.line == 1 {
            bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        }
        let is_cut = self.length > LINE as u64;
        let is_crlf = !is_cut && bytes.ends_with(b"\r");
        if is_cut {
            bytes = &bytes[..boundary(bytes, LINE.min(bytes.len()))];
        } else if is_crlf {
            bytes = &bytes[..bytes.len() - 1];
        }
        let line = String::from_utf8_lossy(bytes);
        if self.text.len() + line.len() > MAX_BYTES {
            self.is_full = true;
            return;
        }
        let _ = write!(self.text, "{}\t{line}", self.line);
        if is_cut {
            let _ = write!(self.text, "… [line of {} bytes, cut]", self.length);
        }
        self.text.push('\n');
        self.shown += 1;
        self.crlf += u64::from(is_crlf);
        self.garbled += u64::from(matches!(line, std::borrow::Cow::Owned(_)));
    }
}

/// Returns the last place at or before `at` where no UTF-8 character is split.
fn boundary(bytes: &[u8], at: usize) -> usize {
    let is_start = |at: &usize| bytes.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
    (at.saturating_sub(3)..=at).rev().find(is_start).unwrap_or(at)
}

#[cfg(test)]
mod tests;
