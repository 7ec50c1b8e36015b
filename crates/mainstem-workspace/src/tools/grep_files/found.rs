//! The shown matches.

use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use crate::{
    text::{Listing, cut},
    walk::Failures,
};

/// The maximum number of bytes of a line that are shown.
const LINE: usize = 400;

/// The matches of all files.
pub(super) struct Found<'a> {
    matcher: &'a RegexMatcher,
    max: usize,
    listing: Listing,
    matches: u64,
    /// The number of matches in the listing.
    shown: u64,
    binary: u64,
    /// Whether the last match is in the listing, with the lines after it.
    is_open: bool,
}

impl<'a> Found<'a> {
    pub(super) fn new(matcher: &'a RegexMatcher, max: usize) -> Self {
        Self {
            matcher,
            max,
            listing: Listing::new(usize::MAX),
            matches: 0,
            shown: 0,
            binary: 0,
            is_open: false,
        }
    }

    /// Begins the matches of one file.
    pub(super) fn of_file(&mut self, path: String) -> InFile<'_, 'a> {
        InFile { found: self, path }
    }

    pub(super) fn finish(self, failures: Failures) -> String {
        let mut notes = failures.into_notes();
        if self.binary > 0 {
            notes.push(format!("binary files that were not searched to their end: {}", self.binary));
        }
        if self.matches > self.shown {
            notes.push(format!(
                "and {} more matches; give a narrower pattern, a glob or a path",
                self.matches - self.shown
            ));
        }
        self.listing.finish("[no match]", &notes)
    }

    fn push(&mut self, line: &str) {
        self.listing.push(line);
    }
}

/// The matches of one file, as they are found.
pub(super) struct InFile<'f, 'a> {
    found: &'f mut Found<'a>,
    path: String,
}

impl<'a> InFile<'_, 'a> {
    pub(super) fn matcher(&self) -> &'a RegexMatcher {
        self.found.matcher
    }

    fn line(&self, mark: char, number: Option<u64>, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\r', '\n']);
        let around = match self.found.matcher.find(text.as_bytes()) {
            Ok(Some(place)) => place.start(),
            _ => 0,
        };
        format!("{}{mark}{}{mark}{}", self.path, number.unwrap_or_default(), cut(text, LINE, around))
    }

    /// Returns `true` if there is room for more; after that, matches are only counted.
    fn has_room(&self) -> bool {
        self.found.matches < self.found.max as u64 && !self.found.listing.is_full()
    }
}

impl Sink for InFile<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.found.is_open = self.has_room();
        if self.found.is_open {
            let line = self.line(':', found.line_number(), found.bytes());
            self.found.push(&line);
            self.found.shown += u64::from(!self.found.listing.is_full());
        }
        self.found.matches += 1;
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let is_shown = match context.kind() {
            SinkContextKind::Before => self.has_room(),
            _ => self.found.is_open,
        };
        if is_shown {
            let line = self.line('-', context.line_number(), context.bytes());
            self.found.push(&line);
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        if self.has_room() && self.found.shown > 0 {
            self.found.push("--");
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.found.binary += 1;
        Ok(true)
    }
}
