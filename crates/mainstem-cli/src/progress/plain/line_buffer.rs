//! An agent's text, line by line.

use std::mem::take;

/// The width of a paragraph's lines, in characters.
const WIDTH: usize = 100;

/// The incomplete line, and the lines that are held back.
#[derive(Debug, Default)]
pub(super) struct LineBuffer {
    line: String,
    held: Vec<String>,
}

impl LineBuffer {
    /// Adds text, and returns the lines that it completes.
    pub(super) fn push(&mut self, text: &str) -> Vec<String> {
        self.line.push_str(text);
        let mut lines = Vec::new();
        while let Some(end) = line_end(&self.line) {
            let rest = self.line.split_off(end);
            lines.push(std::mem::replace(&mut self.line, rest));
        }
        lines
    }

    /// Returns the incomplete line.
    pub(super) fn end(&mut self) -> String {
        take(&mut self.line)
    }

    /// Holds a line back until it is known whether it is part of the reply, which is the result
    /// instead of progress.
    pub(super) fn hold(&mut self, line: String) {
        self.held.push(line);
    }

    /// Returns the lines that were held back.
    pub(super) fn release(&mut self) -> Vec<String> {
        take(&mut self.held)
    }
}

/// Returns where the first line ends: behind its break, or behind the last word that fits.
fn line_end(text: &str) -> Option<usize> {
    if let Some(end) = text.find('\n') {
        return Some(end + 1);
    }
    let (full, _) = text.char_indices().nth(WIDTH)?;
    let word = text[..full].rfind(' ').map(|space| space + 1);
    // A longer word stays whole, up to a limit.
    word.or_else(|| (text.len() > 10 * WIDTH).then_some(full))
}
