//! A description over several lines that aren't indented, as generators of agents write them.

use super::{line::Line, text};

/// Returns how many lines the description takes, and its text; `None` if it is on one line, or if
/// its end is unclear.
pub(super) fn across_lines(lines: &[Line<'_>]) -> Option<(usize, String)> {
    let (first, below) = lines.split_first()?;
    let value = first.value().filter(|_| first.is_description())?;
    let block = text::is_block(value);
    if value.starts_with(['"', '\'']) || (block && below.first().is_some_and(Line::is_indented)) {
        return None;
    }
    let value = if block { "" } else { value };
    let end = end(value, below);
    let below = &below[..end];
    let strange =
        |line: &Line<'_>| !line.is_blank() && (!line.is_indented() || text::is_special(line.text.trim()));
    if below.is_empty() || !(text::is_special(value) || below.iter().any(strange)) {
        return None;
    }
    let mut whole = text::meant(first, value);
    for line in below {
        // An indented line continues the paragraph, as in YAML.
        let separator = if line.is_indented() && !whole.ends_with('\n') { ' ' } else { '\n' };
        whole.push(separator);
        whole.push_str(&text::meant(first, line.text.trim()));
    }
    Some((1 + end, whole.trim().to_owned()))
}

/// Returns how many of the lines belong to the description: all before the next key. In an example,
/// a word before a colon is not a key.
fn end(value: &str, below: &[Line<'_>]) -> usize {
    let mut depth = open_examples(value);
    let mut taken = 0;
    for (n, line) in below.iter().enumerate() {
        if depth <= 0 && is_beyond(line) {
            break;
        }
        depth += open_examples(line.text);
        if !line.is_blank() {
            taken = n + 1;
        }
    }
    if depth <= 0 {
        return taken;
    }
    // An example that is never closed would swallow the keys below it.
    let key = below.iter().position(is_beyond).unwrap_or(below.len());
    below[..key].iter().rposition(|line| !line.is_blank()).map_or(0, |last| last + 1)
}

/// Returns `true` for a key that is not part of the text, and for `...`, which ends a document.
fn is_beyond(line: &Line<'_>) -> bool {
    let text = line.text.trim();
    Line::new(text).is_entry() || line.text.starts_with('#') || text == "..."
}

fn open_examples(text: &str) -> i64 {
    let count = |tag: &str| i64::try_from(text.matches(tag).count()).unwrap_or(i64::MAX);
    count("<example>").saturating_sub(count("</example>"))
}
