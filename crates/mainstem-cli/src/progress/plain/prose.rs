//! What an agent says, line by line.

use std::mem::take;

/// A paragraph is broken into lines of about so many characters.
const WIDTH: usize = 100;

/// The line under way, and those that are held back.
#[derive(Debug, Default)]
pub(super) struct Prose {
    line: String,
    held: Vec<String>,
}

impl Prose {
    /// Takes in more text, and gives the lines that it completes.
    pub(super) fn push(&mut self, text: &str) -> Vec<String> {
        self.line.push_str(text);
        let mut lines = Vec::new();
        while let Some(end) = line_end(&self.line) {
            let rest = self.line.split_off(end);
            lines.push(std::mem::replace(&mut self.line, rest));
        }
        lines
    }

    /// The line under way, as it is.
    pub(super) fn end(&mut self) -> String {
        take(&mut self.line)
    }

    /// Holds a line back until it is known whether it is part of the reply, which is the result and
    /// no progress.
    pub(super) fn hold(&mut self, line: String) {
        self.held.push(line);
    }

    /// What was held back.
    pub(super) fn release(&mut self) -> Vec<String> {
        take(&mut self.held)
    }
}

/// Where the first line ends: behind its break, or behind the last word that fits.
fn line_end(text: &str) -> Option<usize> {
    if let Some(end) = text.find('\n') {
        return Some(end + 1);
    }
    let (full, _) = text.char_indices().nth(WIDTH)?;
    let word = text[..full].rfind(' ').map(|space| space + 1);
    // A word that is longer is left whole, within reason.
    word.or_else(|| (text.len() > 10 * WIDTH).then_some(full))
}
