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

/// Without branches, so that the compiler compares many bytes at once.
const fn is_allowed(byte: u8) -> bool {
    let is_mark = (byte == b'-') | (byte == b'_') | (byte == b'.') | (byte == b':') | (byte == b'~');
    byte.is_ascii_alphanumeric() | is_mark
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
    if bytes.iter().fold(true, |all, byte| all & is_allowed(*byte)) {
        return Ok(());
    }
    // All bytes before the place are ASCII, so it is a number of characters, too.
    let place = bytes.iter().take_while(|byte| is_allowed(**byte)).count();
    Err(Fault::Character(place))
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
