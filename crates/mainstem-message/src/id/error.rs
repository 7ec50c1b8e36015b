//! Why a text is not an id.

use std::{convert::Infallible, fmt};

use super::grammar::{Fault, MAX};

/// The most characters of the text that a message repeats.
const SHOWN: usize = 64;

/// Why a text is not an id: names the kind of id, the text, the place of the first character that
/// is not allowed, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdError {
    kind: &'static str,
    /// The beginning of the text.
    text: Box<str>,
    fault: Fault,
    /// The character that is not allowed.
    found: Option<char>,
}

impl IdError {
    pub(super) fn new(kind: &'static str, text: &str, fault: Fault) -> Self {
        let found = match fault {
            Fault::Character(place) => text.chars().nth(place),
            Fault::Empty | Fault::Long(_) => None,
        };
        Self { kind, text: beginning(text), fault, found }
    }
}

fn beginning(text: &str) -> Box<str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => [&text[..end], "…"].concat().into(),
        None => text.into(),
    }
}

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid {} {:?}: ", self.kind, self.text)?;
        match (self.fault, self.found) {
            (Fault::Character(place), Some(found)) => write!(f, "{found:?} at character {}", place + 1),
            (Fault::Long(bytes), _) => write!(f, "{bytes} bytes long"),
            _ => f.write_str("empty"),
        }?;
        write!(f, "; use 1 to {MAX} ASCII letters, digits and -_.:~, not beginning with a dot")
    }
}

impl std::error::Error for IdError {}

/// For functions that take an id or a text that may be one.
impl From<Infallible> for IdError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
