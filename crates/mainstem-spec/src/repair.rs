//! Front matter that is almost YAML: read with its plain meaning, and with a warning.
//!
//! Only a `key: rest of the line` at the start of a line is repaired, for keys whose value is text,
//! and a description that goes on below without being indented. What is unclear stays an error
//! of the YAML reader. Lines keep their numbers.

use std::borrow::Cow;

use crate::{FindingKind, Position, SpecError, node::Node, yaml};

mod description;
mod line;
mod text;

use line::Line;

/// Reads front matter, repaired if need be; each repair is a warning with the corrected line.
pub(crate) fn read(yaml: &str) -> Result<(Node, Vec<SpecError>), SpecError> {
    // A carriage return alone ends a line, too. The reader does not count all of them.
    let yaml = &*if yaml.contains('\r') {
        Cow::Owned(yaml.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(yaml)
    };
    let (strict, how) = match yaml::read(yaml) {
        Ok(root) => (Ok((root, Vec::new())), How::Misread),
        Err(error) if yaml.len() > yaml::MAX_BYTES => return Err(error),
        Err(error) => (Err(error), How::Broken),
    };
    let (repaired, fixes) = repair(yaml, how);
    if fixes.is_empty() {
        return strict;
    }
    match yaml::read(&repaired) {
        Ok(root) => Ok((root, fixes.into_iter().map(|fix| fix.warning(how)).collect())),
        // A line that is repaired is not the error to report.
        Err(left) => strict.map_err(|error| match fixes.iter().any(|fix| fix.has(&error)) {
            true => left,
            false => error,
        }),
    }
}

/// Which lines are repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// Valid YAML whose meaning is rarely the intended one.
    Misread,
    /// Invalid YAML.
    Broken,
}

/// A line, and the one that replaces it.
#[derive(Debug)]
struct Fix {
    key: String,
    at: Position,
    /// How many lines it replaces.
    lines: usize,
    line: String,
}

impl Fix {
    /// Returns `true` if the error is at one of the lines that it replaces.
    fn has(&self, error: &SpecError) -> bool {
        let first = self.at.line as usize;
        error.position.is_some_and(|at| (first..first + self.lines).contains(&(at.line as usize)))
    }

    fn warning(self, how: How) -> SpecError {
        let mut shown: String = self.line.chars().take(200).flat_map(visible).collect();
        if self.line.chars().count() > 200 {
            shown.push('…');
        }
        let what = match how {
            How::Misread => "ambiguous YAML",
            How::Broken => "invalid YAML",
        };
        let lines = if self.lines > 1 { format!(" in {} lines", self.lines) } else { String::new() };
        let warning = SpecError::warning(format!("{what}{lines}; interpreted as: {shown}"));
        let warning = warning.of_kind(FindingKind::Interpreted).at(self.at);
        if self.key.is_empty() { warning } else { warning.about(&self.key) }
    }
}

fn visible(c: char) -> impl Iterator<Item = char> {
    let escaped = c.is_control().then(|| c.escape_default());
    let plain = (!c.is_control()).then_some(c);
    escaped.into_iter().flatten().chain(plain)
}

/// Returns the text with its repairs.
fn repair(yaml: &str, how: How) -> (String, Vec<Fix>) {
    let lines: Vec<Line<'_>> = yaml.lines().map(Line::new).collect();
    let (mut out, mut fixes) = (Vec::with_capacity(lines.len()), Vec::new());
    let first = lines.iter().position(Line::is_description);
    let mut n = 0;
    while n < lines.len() {
        // A second description is an error anyway, and thousands would take long.
        let (taken, fixed) = fix(&lines[n..], how, first == Some(n));
        if let Some((at, line)) = &fixed {
            let at = Position::new(n as u64 + 1, *at as u64);
            fixes.push(Fix {
                key: lines[n].key().unwrap_or_default().to_owned(),
                at,
                lines: taken,
                line: line.trim_start().to_owned(),
            });
        }
        out.push(fixed.map_or_else(|| lines[n].text.to_owned(), |(_, line)| line));
        out.extend((1..taken).map(|_| String::new()));
        n += taken;
    }
    (out.join("\n") + "\n", fixes)
}

/// Returns how many lines the repair of the first line replaces, the replacement, and its column.
fn fix(lines: &[Line<'_>], how: How, is_first_description: bool) -> (usize, Option<(usize, String)>) {
    let line = &lines[0];
    let goes_on = lines.get(1).is_some_and(|next| next.is_indented());
    let fixed = match how {
        How::Misread if goes_on => None,
        How::Misread => text::misread(line).map(|text| (1, text)),
        How::Broken => is_first_description
            .then(|| description::across_lines(lines))
            .flatten()
            .or_else(|| (!goes_on).then(|| Some((1, text::broken(line)?)))?),
    };
    match (fixed, how) {
        (Some((taken, text)), _) => (taken, Some((line.value_column(), line.with_value(&text)))),
        (None, How::Broken) => (1, line.without_tabs().map(|line| (1, line))),
        (None, How::Misread) => (1, None),
    }
}

#[cfg(test)]
mod tests;
