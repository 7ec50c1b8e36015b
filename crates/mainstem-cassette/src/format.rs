//! A tape as text: a line with its version, then one exchange a line.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::exchange::Exchange;
use crate::CassetteError;

/// The version that is written, and the only one that is read.
const VERSION: u64 = 1;

/// The first line.
#[derive(Serialize, Deserialize)]
struct Head {
    /// The format's version.
    mainstem_cassette: u64,
}

/// Returns the first line, with its line break.
pub(super) fn head() -> String {
    line_of(&Head { mainstem_cassette: VERSION })
}

/// Returns the line of an exchange, with its line break.
pub(super) fn encode(exchange: &Exchange) -> String {
    line_of(exchange)
}

fn line_of(value: &impl Serialize) -> String {
    // Its maps have text as keys, so it is valid JSON.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

/// Parses a tape; `path` is for messages.
pub(super) fn decode(path: &Path, text: &str) -> Result<Vec<Exchange>, CassetteError> {
    let mut lines = text.lines().enumerate();
    let (_, first) = lines.next().unwrap_or_default();
    let head: Head = line(path, 0, first)?;
    if head.mainstem_cassette != VERSION {
        let problem =
            format!("this tape has version {}; only version {VERSION} can be read", head.mainstem_cassette);
        return Err(broken(path, 0, 1, problem));
    }
    lines.map(|(number, text)| line(path, number, text)).collect()
}

fn line<'a, T: Deserialize<'a>>(path: &Path, number: usize, text: &'a str) -> Result<T, CassetteError> {
    serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        // In a text of one line only the column matters, which the error has.
        let problem = message.split(" at line ").next().unwrap_or_default();
        broken(path, number, error.column().max(1), format!("invalid line: {problem}"))
    })
}

fn broken(path: &Path, number: usize, column: usize, problem: String) -> CassetteError {
    CassetteError::Format { path: path.to_owned(), line: number + 1, column, problem }
}

#[cfg(test)]
mod tests;
