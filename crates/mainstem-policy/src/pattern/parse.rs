//! Parses patterns; errors have a column.

use super::{Arguments, Pattern};
use crate::glob;

/// An error in a pattern, with its place and a correction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pattern {pattern:?}, column {column}: {message}")]
#[non_exhaustive]
pub struct PatternError {
    /// The pattern as written.
    pub pattern: String,
    /// The column, in characters from 1.
    pub column: usize,
    /// The error and the correction.
    pub message: String,
}

/// A byte of the text, and the error there.
type Wrong = (usize, String);

pub(super) fn pattern(text: &str) -> Result<Pattern, PatternError> {
    read(text).map_err(|(at, message)| PatternError {
        pattern: text.to_owned(),
        column: text[..at].chars().count() + 1,
        message,
    })
}

fn read(text: &str) -> Result<Pattern, Wrong> {
    if let Some(at) = text.find(char::is_control) {
        return Err((at, "a control character; a pattern is one line of text".to_owned()));
    }
    let end = text.find('(').unwrap_or(text.len());
    let tool = tool(&text[..end])?;
    if end == text.len() {
        return Ok(Pattern { tool, arguments: None });
    }
    let close = closing(text, end)?;
    let arguments = arguments(&text[end + 1..close]).map_err(|(at, message)| (end + 1 + at, message))?;
    Ok(Pattern { tool, arguments })
}

fn tool(text: &str) -> Result<String, Wrong> {
    if text.is_empty() {
        return Err((
            0,
            "the tool is missing; write its name or a glob, such as write_file or mcp__*".to_owned(),
        ));
    }
    match text.char_indices().find(|(_, c)| c.is_whitespace() || *c == ')') {
        Some((at, c)) => Err((at, format!("{c:?} can't be in a tool's name; write tool or tool(arguments)"))),
        None => Ok(text.to_owned()),
    }
}

fn closing(text: &str, open: usize) -> Result<usize, Wrong> {
    match text.rfind(')') {
        Some(close) if close + 1 == text.len() => Ok(close),
        Some(close) => Err((close + 1, "nothing may follow the \")\"".to_owned())),
        None => Err((
            text.len(),
            format!("expected \")\" for the \"(\" in column {}", text[..open].chars().count() + 1),
        )),
    }
}

fn arguments(text: &str) -> Result<Option<Arguments>, Wrong> {
    let inner = text.trim();
    let start = text.len() - text.trim_start().len();
    if inner.is_empty() {
        return Err((0, "nothing between the parentheses; leave them out to mean any arguments".to_owned()));
    }
    let (field, glob) = field(inner).map_err(|(at, message)| (start + at, message))?;
    let is_any = field.is_none() && glob::is_everything(&glob);
    Ok((!is_any).then_some(Arguments { field, glob }))
}

/// Splits a field from its glob. The blank after a field is required, because an address has a
/// colon too; an ambiguous colon is an error, because a rule that silently means something else is
/// worse than none.
fn field(inner: &str) -> Result<(Option<String>, String), Wrong> {
    let bare = (None, inner.to_owned());
    let Some((name, rest)) = inner.split_once(':') else { return Ok(bare) };
    let is_pointer = name.starts_with('/') && !name.contains(char::is_whitespace);
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'));
    if !(is_pointer || is_name) || rest.starts_with("//") {
        return Ok(bare);
    }
    let colon = name.len();
    let glob = rest.trim_start();
    if glob.is_empty() {
        return Err((colon + 1, format!("the glob for {name} is missing; write {name}: * for any value")));
    }
    if glob.len() == rest.len() {
        return Err((
            colon + 1,
            format!(
                "write \"{name}: {glob}\" if {name} is an argument's name; if not, name the argument: \"command: {inner}\""
            ),
        ));
    }
    if let Some(at) = is_pointer.then(|| bad_escape(name)).flatten() {
        return Err((at, "in a JSON pointer ~ is written ~0, and / in a name ~1".to_owned()));
    }
    Ok((Some(name.to_owned()), glob.to_owned()))
}

fn bad_escape(pointer: &str) -> Option<usize> {
    pointer.match_indices('~').map(|(at, _)| at).find(|at| !pointer[at + 1..].starts_with(['0', '1']))
}
