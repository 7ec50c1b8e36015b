//! Splits a file into its YAML and its prompt.

use crate::{Position, SpecError};

/// The two parts of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FrontMatter<'a> {
    /// The text before the closing line, with the opening `---`, which YAML reads as the start of a
    /// document: so a position in the YAML is one in the file.
    pub(crate) yaml: &'a str,
    /// The text after the closing line.
    pub(crate) body: &'a str,
}

/// Splits at the first two lines that are `---`, with or without spaces at their end.
///
/// A byte order mark, blank lines before the first one and CRLF are fine. An indented `---`, or
/// one inside a line, is text.
pub(crate) fn split(text: &str) -> Result<FrontMatter<'_>, SpecError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = lines(text).skip_while(|(_, line)| line.trim().is_empty());
    if !lines.next().is_some_and(|(_, line)| is_delimiter(line)) {
        let message =
            "the front matter is missing: the file starts with a \"---\" line, keys, and a \"---\" line";
        return Err(SpecError::error(message).at(Position::START));
    }
    let Some((end, line)) = lines.find(|(_, line)| is_delimiter(line)) else {
        let message = "the front matter is not closed: put a \"---\" line between keys and prompt";
        return Err(SpecError::error(message).at(Position::START));
    };
    Ok(FrontMatter { yaml: &text[..end], body: &text[end + line.len()..] })
}

/// Returns the lines with their line breaks, and where they start.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |end, line| {
        let start = *end;
        *end += line.len();
        Some((start, line))
    })
}

fn is_delimiter(line: &str) -> bool {
    line.trim_end() == "---"
}

#[cfg(test)]
mod tests;
