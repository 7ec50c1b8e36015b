//! Random edits of a corpus file: most of a format stays valid, so that they reach the code behind
//! the first check.

use std::{fmt, ops::Range};

use bolero::TypeGenerator;

/// Text that formats give a meaning to.
const TOKENS: [&str; 40] = [
    "\n",
    "\r\n",
    "\n\n",
    "\0",
    "\u{feff}",
    "ß",
    "😀",
    "\"",
    "\\",
    "\\u",
    "\\ud800",
    "{",
    "}",
    "[",
    "]",
    "[[[[[[[[",
    ",",
    ":",
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "-9223372036854775808",
    "\"\"",
    "{}",
    "[]",
    "data: ",
    "event: ",
    "id: ",
    "---\n",
    "- ",
    "&a ",
    "*a",
    "!!binary ",
    "| ",
    "%00",
    "%ff",
    "../",
    "\u{1b}[31m",
];

/// The maximum number of pieces that an input is cut into, however large it is: each may be a chunk
/// that a server sends.
pub(crate) const PIECES: usize = 4096;

/// One edit of some bytes. Places are taken modulo the length.
#[derive(Clone, Debug, TypeGenerator)]
enum Edit {
    Set { at: u16, byte: u8 },
    Flip { at: u16, bit: u8 },
    Insert { at: u16, byte: u8 },
    Token { at: u16, token: u8 },
    Remove { at: u16, length: u8 },
    Repeat { at: u16, length: u8, times: u8 },
    Truncate { at: u16 },
    Splice { at: u16, seed: u8, from: u16, length: u8 },
}

/// Which file is edited how, and where the result is cut into pieces.
#[derive(Clone, Debug, TypeGenerator)]
pub(crate) struct Case {
    seed: u16,
    edits: [Option<Edit>; 6],
    cuts: [u16; 4],
    is_cut_often: bool,
}

/// Bytes from outside, and where the reads that deliver them end.
#[derive(Clone)]
pub(crate) struct Input {
    pub(crate) bytes: Vec<u8>,
    pub(crate) cuts: Vec<usize>,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\", cut at {:?}", self.bytes.escape_ascii(), self.cuts)
    }
}

impl Input {
    /// The bytes as they arrive.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0].into_iter().chain(self.cuts.iter().copied());
        let ends = self.cuts.iter().copied().chain([self.bytes.len()]);
        starts.zip(ends).map(|(from, to)| &self.bytes[from..to])
    }

    /// The bytes as text, as files and lossy decoders read them.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl Case {
    pub(crate) fn apply(self, seeds: &[Vec<u8>]) -> Input {
        let mut bytes = seeds[usize::from(self.seed) % seeds.len()].clone();
        self.edits.iter().flatten().for_each(|edit| edit.apply(&mut bytes, seeds));
        let mut cuts: Vec<_> = self.cuts.iter().map(|cut| usize::from(*cut) % (bytes.len() + 1)).collect();
        if self.is_cut_often {
            cuts =
                (0..bytes.len()).step_by(1 + usize::from(self.cuts[0] % 7) + bytes.len() / PIECES).collect();
        }
        cuts.sort_unstable();
        Input { bytes, cuts }
    }
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let length = bytes.len();
        let place = |at: u16| usize::from(at) % (length + 1);
        let span = |at: u16, n: u8| -> Range<usize> { place(at)..length.min(place(at) + usize::from(n)) };
        match *self {
            Self::Set { at, byte } => bytes.get_mut(place(at)).into_iter().for_each(|old| *old = byte),
            Self::Flip { at, bit } => {
                bytes.get_mut(place(at)).into_iter().for_each(|old| *old ^= 1 << (bit % 8))
            }
            Self::Insert { at, byte } => bytes.insert(place(at), byte),
            Self::Token { at, token } => {
                let token = TOKENS[usize::from(token) % TOKENS.len()];
                bytes.splice(place(at)..place(at), token.bytes()).for_each(drop);
            }
            Self::Remove { at, length } => bytes.drain(span(at, length)).for_each(drop),
            Self::Repeat { at, length, times } => {
                let copies = bytes[span(at, length)].repeat(usize::from(times));
                bytes.splice(place(at)..place(at), copies).for_each(drop);
            }
            Self::Truncate { at } => bytes.truncate(place(at)),
            Self::Splice { at, seed, from, length } => {
                let other = &seeds[usize::from(seed) % seeds.len()];
                let from = usize::from(from) % (other.len() + 1);
                let part = &other[from..other.len().min(from + usize::from(length))];
                bytes.splice(place(at)..place(at), part.iter().copied()).for_each(drop);
            }
        }
    }
}
