//! What an id can be. Pure.

use std::sync::Arc;

/// The most bytes of an id.
pub(super) const MAX: usize = 256;

/// The same as [`check`], as a regular expression.
pub(super) const PATTERN: &str = "^[A-Za-z0-9_:~-][A-Za-z0-9_.:~-]{0,255}$";

/// The same as [`check_scoped`], as a regular expression.
pub(super) const SCOPED_PATTERN: &str =
    "^([A-Za-z0-9_:~-][A-Za-z0-9_.:~-]{0,255}/)*[A-Za-z0-9_:~-][A-Za-z0-9_.:~-]{0,255}$";

/// Why a text is not an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Empty,
    /// The number of bytes.
    Long(usize),
    /// The number of characters before the first one that is not allowed.
    Character(usize),
}

/// The bytes of an id. Ids are short: looking each byte up is faster than comparing many at once.
const ALLOWED: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let is_mark = matches!(byte as u8, b'-' | b'_' | b'.' | b':' | b'~');
        allowed[byte] = is_mark || (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    allowed
};

fn is_allowed(byte: u8) -> bool {
    ALLOWED[usize::from(byte)]
}

/// Checks the text of an id.
pub(super) fn check(text: &str) -> Result<(), Fault> {
    let bytes = text.as_bytes();
    match bytes {
        [] => return Err(Fault::Empty),
        [b'.', ..] => return Err(Fault::Character(0)),
        _ if bytes.len() > MAX => return Err(Fault::Long(bytes.len())),
        _ => {}
    }
    // All bytes before the place are ASCII, so it is a number of characters, too.
    match bytes.iter().position(|byte| !is_allowed(*byte)) {
        Some(place) => Err(Fault::Character(place)),
        None => Ok(()),
    }
}

/// Checks the text of an id that may have names of tenants before it, each with a slash.
pub(super) fn check_scoped(text: &str) -> Result<(), Fault> {
    let Err(fault) = check(text) else { return Ok(()) };
    if !text.contains('/') {
        return Err(fault);
    }
    let mut before = 0;
    for part in text.split('/') {
        check(part).map_err(|fault| match fault {
            Fault::Character(place) => Fault::Character(before + place),
            fault => fault,
        })?;
        before += part.len() + 1;
    }
    Ok(())
}

/// Returns the id that is nearest to a text.
pub(super) fn lossy(text: &str) -> Arc<str> {
    if check(text).is_ok() {
        return text.into();
    }
    let near = |c: char| if u8::try_from(c).is_ok_and(is_allowed) { c } else { '_' };
    let mut id: String = text.chars().map(near).collect();
    if id.is_empty() || id.starts_with('.') {
        id.replace_range(..id.len().min(1), "_");
    }
    if id.len() > MAX {
        id.replace_range(MAX / 2..id.len() - MAX / 2, "");
    }
    id.into()
}
