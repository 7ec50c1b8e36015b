//! Replacing text in a file: bytes in, bytes out; all other bytes stay.

mod nearest;

use std::borrow::Cow;

use memchr::memmem;

/// A replacement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edit<'a> {
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    pub(crate) replace_all: bool,
}

/// The result of an edit.
#[derive(Debug, PartialEq)]
pub(crate) struct Edited {
    pub(crate) content: Vec<u8>,
    /// The numbers of the lines, from 1, in which the replaced texts began.
    pub(crate) lines: Vec<usize>,
}

/// Why an edit was not made.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum Mismatch {
    #[error("old is empty; give the text to replace, or use write_file for a whole file")]
    Empty,
    #[error("old and new are the same, so there is nothing to do")]
    Same,
    #[error("old occurs {count} times (lines {lines}); add lines around it until it occurs once, or set replace_all", lines = list(lines))]
    Many { count: usize, lines: Vec<usize> },
    #[error("old does not occur; {0}")]
    None(String),
}

/// The maximum number of listed line numbers.
const LISTED: usize = 10;

impl Edit<'_> {
    /// Returns the content with `old` replaced by `new`. If all lines of the file end in CRLF,
    /// `old` and `new` may have LF.
    pub(crate) fn apply(self, content: &[u8]) -> Result<Edited, Mismatch> {
        if self.old.is_empty() {
            return Err(Mismatch::Empty);
        }
        if self.old == self.new {
            return Err(Mismatch::Same);
        }
        let ends = Ends::of(content);
        let (mut old, mut new) = (Cow::Borrowed(self.old), Cow::Borrowed(self.new));
        let is_there = || memmem::find(content, self.old.as_bytes()).is_some();
        if ends == Ends::Crlf || (ends == Ends::Mixed && !is_there()) {
            (old, new) = (crlf(self.old), crlf(self.new));
        }
        let places = self.places(content, old.as_bytes())?;
        Ok(Edited { lines: lines_of(content, &places), content: splice(content, &places, old.len(), &new) })
    }

    fn places(self, content: &[u8], old: &[u8]) -> Result<Vec<usize>, Mismatch> {
        if self.replace_all {
            let places: Vec<_> = memmem::find_iter(content, old).collect();
            return if places.is_empty() { Err(self.none(content)) } else { Ok(places) };
        }
        let places = overlapping(content, old);
        match places.len() {
            0 => Err(self.none(content)),
            1 => Ok(places),
            count => Err(Mismatch::Many { count, lines: lines_of(content, &places) }),
        }
    }

    fn none(self, content: &[u8]) -> Mismatch {
        Mismatch::None(nearest::hint(&String::from_utf8_lossy(content), self.old))
    }
}

/// The line ends of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    Lf,
    Crlf,
    Mixed,
}

impl Ends {
    fn of(content: &[u8]) -> Self {
        let all = memchr::memchr_iter(b'\n', content).count();
        match memmem::find_iter(content, b"\r\n").count() {
            0 => Self::Lf,
            crlf if crlf == all => Self::Crlf,
            _ => Self::Mixed,
        }
    }
}

fn crlf(text: &str) -> Cow<'_, str> {
    Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n"))
}

/// Returns the overlapping occurrences: "aa" occurs twice in "aaa".
fn overlapping(content: &[u8], old: &[u8]) -> Vec<usize> {
    let finder = memmem::Finder::new(old);
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = finder.find(&content[from..]) {
        places.push(from + at);
        from += at + 1;
    }
    places
}

fn splice(content: &[u8], places: &[usize], length: usize, new: &str) -> Vec<u8> {
    let mut result = Vec::with_capacity(content.len() + places.len() * new.len());
    let mut from = 0;
    for &at in places {
        result.extend_from_slice(&content[from..at]);
        result.extend_from_slice(new.as_bytes());
        from = at + length;
    }
    result.extend_from_slice(&content[from..]);
    result
}

fn lines_of(content: &[u8], places: &[usize]) -> Vec<usize> {
    let (mut from, mut line) = (0, 1);
    places
        .iter()
        .map(|&at| {
            line += memchr::memchr_iter(b'\n', &content[from..at]).count();
            from = at;
            line
        })
        .collect()
}

/// Formats line numbers.
pub(crate) fn list(lines: &[usize]) -> String {
    let some: Vec<_> = lines.iter().take(LISTED).map(usize::to_string).collect();
    let more = if lines.len() > LISTED { ", …" } else { "" };
    format!("{}{more}", some.join(", "))
}

#[cfg(test)]
mod tests;
