//! A line that is typed, from the bytes of a terminal. Pure.

/// The longest line, in bytes.
const MAX_BYTES: usize = 64 * 1024;

const ESC: u8 = 0x1b;

/// The text that was typed, and the bytes that are not applied yet.
#[derive(Debug, Default)]
pub(super) struct Line {
    text: String,
    bytes: Vec<u8>,
    is_changed: bool,
    /// Within pasted text, whose line feeds end no line.
    is_pasted: bool,
}

/// What ends a piece of input.
#[derive(Debug, PartialEq)]
pub(super) enum Input {
    Line(String),
    /// Ctrl-D, while there was no text.
    End,
}

impl Line {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn begin(&mut self, text: String) {
        self.text = text;
    }

    fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Takes the text, and discards bytes that are not applied.
    pub(super) fn take_all(&mut self) -> String {
        self.bytes.clear();
        self.take()
    }

    /// Adds what was read.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Applies bytes up to the end of a line.
    pub(super) fn input(&mut self) -> Option<Input> {
        let mut at = 0;
        let mut input = None;
        while input.is_none()
            && let Some(key) = first_key(&self.bytes[at..])
        {
            input = self.key(at, key);
            at += key;
        }
        self.bytes.drain(..at);
        input
    }

    /// Applies an Esc that no other byte has followed: it clears the text. Returns `true` if the
    /// text was empty.
    pub(super) fn escape(&mut self) -> bool {
        if self.bytes != [ESC] {
            return false;
        }
        self.bytes.clear();
        let is_empty = self.text.is_empty();
        self.text.clear();
        self.is_changed |= !is_empty;
        is_empty
    }

    /// Returns `true` if the text has changed since the last call.
    pub(super) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Applies a key of so many bytes.
    fn key(&mut self, at: usize, length: usize) -> Option<Input> {
        self.is_changed = true;
        match &self.bytes[at..at + length] {
            [b'\n' | b'\r'] if self.is_pasted => self.text.push('\n'),
            [b'\n' | b'\r'] => {
                self.is_changed = false;
                return Some(Input::Line(self.take()));
            }
            // Ctrl-D
            [0x04] if self.text.is_empty() => return Some(Input::End),
            b"\x1b[200~" => self.is_pasted = true,
            b"\x1b[201~" => self.is_pasted = false,
            // Alt-Enter
            [ESC, b'\r' | b'\n'] => self.text.push('\n'),
            // Ctrl-U
            [0x15] => self.text.clear(),
            // Ctrl-W
            [0x17] => {
                let end = self.text.trim_end().rfind(char::is_whitespace).map_or(0, |blank| blank + 1);
                self.text.truncate(end);
            }
            [0x08 | 0x7f] => _ = self.text.pop(),
            [b'\t'] => self.text.push(' '),
            // Another control character, or the keys that move a cursor.
            [0x00..=0x1f, ..] => {}
            key if self.text.len() < MAX_BYTES => self.text.push_str(&String::from_utf8_lossy(key)),
            _ => {}
        }
        None
    }
}

/// Returns the length of the first key: a character of UTF-8, or a sequence that begins with Esc
/// (ECMA-48). `None` if more bytes may belong to it.
fn first_key(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [] | [ESC] => None,
        [ESC, b'[', rest @ ..] => {
            rest.iter().position(|byte| (0x40..=0x7e).contains(byte)).map(|end| end + 3)
        }
        [ESC, b'O', rest @ ..] => (!rest.is_empty()).then_some(3),
        [ESC, ..] => Some(2),
        [first, ..] => {
            let length = match first {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => 1,
            };
            (bytes.len() >= length).then_some(length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what pieces with a pause behind each yield, and the text that is left.
    fn typed(pieces: &[&[u8]]) -> (Vec<Input>, String) {
        let mut line = Line::default();
        let mut inputs = Vec::new();
        for piece in pieces {
            line.push(piece);
            while let Some(input) = line.input() {
                inputs.push(input);
            }
            line.escape();
        }
        (inputs, line.take())
    }

    #[test]
    fn esc_clears_the_text_and_then_asks_for_more() {
        let mut line = Line::default();
        let mut press = |bytes: &[u8]| {
            line.push(bytes);
            assert_eq!(line.input(), None);
            (line.escape(), line.take_change(), line.text().to_owned())
        };
        assert_eq!(press(b"abc"), (false, true, "abc".to_owned()));
        assert_eq!(press(b""), (false, false, "abc".to_owned()));
        assert_eq!(press(b"\x1b"), (false, true, String::new()));
        assert_eq!(press(b"\x1b"), (true, false, String::new()));
    }

    #[test]
    fn what_keys_do() {
        let lines =
            |lines: &[&str]| lines.iter().map(|line| Input::Line((*line).to_owned())).collect::<Vec<_>>();
        let check = |pieces: &[&[u8]], expected: Vec<Input>, left: &str| {
            assert_eq!(typed(pieces), (expected, left.to_owned()), "{pieces:?}");
        };
        check(&[b"y\n"], lines(&["y"]), "");
        check(&[b"y\r\ny\n"], lines(&["y", "", "y"]), "");
        check(&[b"n no", b"t now\r"], lines(&["n not now"]), "");
        check(&[b"yx\x7f"], vec![], "y");
        check(&["né\u{8}日".as_bytes()], vec![], "n日");
        check(&[b"\xe6\x97", b"\xa5"], vec![], "日");
        check(&[b"one two \x17"], vec![], "one ");
        check(&[b"one\x15two"], vec![], "two");
        check(&[b"a\x1b[Ab\x1bOPc\x1b[1;5Cd"], vec![], "abcd");
        check(&[b"a\x1b[", b"Ab"], vec![], "ab");
        check(&[b"abc", b"\x1b", b"d"], vec![], "d");
        check(&[b"\x04"], vec![Input::End], "");
        check(&[b"\x1b[200~a\r", b"b\n\x1b[201~c\r"], lines(&["a\nb\nc"]), "");
        check(&[b"a\x1b\rb\r"], lines(&["a\nb"]), "");
        check(&[b"a\x04\tb\x01"], vec![], "a b");
        check(&[b"\xff\xc3x"], vec![], "\u{fffd}\u{fffd}x");
        let long = [b'x'; MAX_BYTES + 10];
        assert_eq!(typed(&[&long]).1.len(), MAX_BYTES);
    }
}
