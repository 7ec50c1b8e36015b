//! The output of a command: the beginning as it comes, the end when it has ended, and the size of
//! what is left out between.

/// The number of bytes that are shown as they come.
const HEAD: usize = 24 << 10;

/// The number of bytes of the end that are shown.
const TAIL: usize = 16 << 10;

/// Takes bytes, returns text, and stores at most the end.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// The number of bytes shown.
    shown: usize,
    is_head_done: bool,
    /// Bytes not shown yet: the beginning of a character, or the end.
    kept: Vec<u8>,
    left_out: u64,
    /// Whether the text so far ends in the middle of a line.
    is_open: bool,
}

impl Output {
    /// Takes the next bytes; returns the text to show now.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<String> {
        self.kept.extend_from_slice(bytes);
        if self.is_head_done {
            self.trim(2 * TAIL);
            return None;
        }
        let room = HEAD - self.shown;
        self.is_head_done = self.kept.len() >= room;
        let end = complete(&self.kept[..self.kept.len().min(room)]);
        let rest = self.kept.split_off(end);
        let head = std::mem::replace(&mut self.kept, rest);
        self.shown += head.len();
        self.trim(2 * TAIL);
        self.text(head)
    }

    /// Returns the rest of the text.
    pub(crate) fn finish(&mut self) -> String {
        self.trim(TAIL);
        let mut text = String::new();
        if self.left_out > 0 {
            let start = self.kept.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
            self.kept.drain(..start);
            let left_out = self.left_out + start as u64;
            let newline = if self.is_open { "\n" } else { "" };
            text = format!("{newline}[{left_out} bytes left out]\n");
        }
        let kept = std::mem::take(&mut self.kept);
        text.push_str(&self.text(kept).unwrap_or_default());
        if self.is_open {
            text.push('\n');
        }
        text
    }

    fn text(&mut self, bytes: Vec<u8>) -> Option<String> {
        self.is_open = bytes.last().map_or(self.is_open, |last| *last != b'\n');
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        (!text.is_empty()).then_some(text)
    }

    /// Cuts the beginning of the stored bytes, if they are more than `max`, down to the tail.
    fn trim(&mut self, max: usize) {
        if self.is_head_done && self.kept.len() > max {
            let extra = self.kept.len() - TAIL;
            self.kept.drain(..extra);
            self.left_out += extra as u64;
        }
    }
}

/// Returns the number of bytes before an incomplete character at the end.
fn complete(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(3);
    for at in (last..bytes.len()).rev() {
        let length = match bytes[at] {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            0x80..=0xBF => continue,
            _ => 1,
        };
        return if at + length > bytes.len() { at } else { bytes.len() };
    }
    bytes.len()
}

#[cfg(test)]
mod tests;
