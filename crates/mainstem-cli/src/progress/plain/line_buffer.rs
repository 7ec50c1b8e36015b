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
        let text = take(&mut self.line) + text;
        let mut lines: Vec<_> = text.split_inclusive('\n').collect();
        // The last may be incomplete; a long one is broken into rows.
        let mut rest = lines.pop_if(|last| !last.ends_with('\n')).unwrap_or_default();
        while let Some((row, behind)) = first_row(rest) {
            lines.push(row);
            rest = behind;
        }
        let lines = lines.into_iter().map(str::to_owned).collect();
        self.line = rest.to_owned();
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

/// Divides a text without breaks behind the last word that fits; `None` if all of it fits.
fn first_row(text: &str) -> Option<(&str, &str)> {
    let (full, _) = text.char_indices().nth(WIDTH)?;
    let word = text[..full].rfind(' ').map(|space| space + 1);
    // A longer word stays whole, up to a limit.
    let end = word.or_else(|| (text.len() > 10 * WIDTH).then_some(full))?;
    Some(text.split_at(end))
}

#[cfg(test)]
mod tests {
    //! Lines of short and of very long texts.

    use super::*;

    #[test]
    fn no_text_is_lost_in_any_pieces() {
        let text = format!("One.\n{}\nlast {}", "word ".repeat(60), "x".repeat(1_500));
        for at in ["\n", " ", "x"] {
            let mut buffer = LineBuffer::default();
            let lines: Vec<_> = text.split_inclusive(at).flat_map(|piece| buffer.push(piece)).collect();
            assert_eq!(lines.concat() + &buffer.end(), text, "{at}");
            assert!(lines[0] == "One.\n" && lines.iter().all(|line| line.len() <= 10 * WIDTH), "{lines:?}");
        }
    }

    /// Each line has its own text, and not the room of all that follows it.
    #[test]
    fn a_large_piece_takes_no_more_memory_than_its_text() {
        let mut buffer = LineBuffer::default();
        let lines = buffer.push(&"word ".repeat(200_000));
        let room: usize = lines.iter().map(String::capacity).sum();
        assert!((10_000..2_000_000).contains(&room) && buffer.end().capacity() < 10_000, "{room}");
    }
}
