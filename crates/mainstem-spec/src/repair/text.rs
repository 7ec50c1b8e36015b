//! The value of a line that is text, and not valid YAML of a text.

use super::line::Line;

/// Returns the text if YAML would read something else: escapes that are not replaced, `#12` as a
/// comment, `[x]` as a list.
pub(super) fn misread(line: &Line<'_>) -> Option<String> {
    let value = line.value()?;
    let plain = !value.starts_with(['"', '\'', '|', '>', '&', '!', '*', '#']);
    let bracketed = is_bracketed(value) && !line.may_be_list();
    (plain && (bracketed || has_escapes(line, value) || has_hash(line, value))).then(|| meant(line, value))
}

/// Returns the text of a value that is invalid YAML.
pub(super) fn broken(line: &Line<'_>) -> Option<String> {
    let value = line.value()?;
    match value.chars().next()? {
        quote @ ('"' | '\'') => quoted(value, quote),
        '|' | '>' if is_block(value) => None,
        '[' | '{' => {
            let text = !line.may_be_list() && value.contains([']', '}']);
            text.then(|| meant(line, value))
        }
        _ => is_special(value).then(|| meant(line, value)).or_else(|| misread(line)),
    }
}

/// Returns `true` if the value begins a block of text on the lines below.
pub(super) fn is_block(value: &str) -> bool {
    let indicator = value.split(" #").next().unwrap_or_default().trim();
    let rest = indicator.strip_prefix(['|', '>']);
    rest.is_some_and(|rest| rest.chars().all(|c| c == '+' || c == '-' || c.is_ascii_digit()))
}

/// Returns the text of a plain value: in a description, escapes are replaced as in quotes.
pub(super) fn meant(line: &Line<'_>, value: &str) -> String {
    if line.is_description() { unescaped(value, '"') } else { without_comment(value).to_owned() }
}

pub(super) fn is_special(value: &str) -> bool {
    let starts = value.starts_with(['*', '&', '!', '%', '@', '`', '|', '>', ',', ']', '}'])
        || value.starts_with("- ")
        || value.starts_with("? ");
    starts || value.contains(": ") || value.contains(":\t") || value.ends_with(':')
}

fn is_bracketed(value: &str) -> bool {
    let pair = |open, close| value.starts_with(open) && value.ends_with(close);
    pair('[', ']') || pair('{', '}')
}

fn has_escapes(line: &Line<'_>, value: &str) -> bool {
    line.is_description() && ["\\n", "\\\""].iter().any(|escape| value.contains(escape))
}

/// Returns `true` for ` # …`, and `false` for ` #12`, which is rarely meant as a comment.
fn has_hash(line: &Line<'_>, value: &str) -> bool {
    let mut after = value.match_indices(" #").map(|(at, hash)| value[at + hash.len()..].chars().next());
    !line.may_be_list() && after.any(|next| next.is_some_and(|c| c.is_alphanumeric()))
}

fn without_comment(value: &str) -> &str {
    let comment = value.find(" # ");
    comment.map_or(value, |at| &value[..at]).trim_end()
}

/// Returns a quoted text that has quotes in it, or text after it.
fn quoted(value: &str, quote: char) -> Option<String> {
    let end = closing(value, quote)?;
    let rest = value[end..].trim();
    if rest.is_empty() || value[end..].starts_with(" #") {
        return None;
    }
    let inner = value.strip_prefix(quote).and_then(|inner| inner.strip_suffix(quote));
    Some(inner.map_or_else(|| value.to_owned(), |inner| unescaped(inner, quote)))
}

/// Returns the end of the first quoted text.
fn closing(value: &str, quote: char) -> Option<usize> {
    let mut chars = value.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if quote == '"' => _ = chars.next(),
            '\'' if quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                _ = chars.next();
            }
            c if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

fn unescaped(text: &str, quote: char) -> String {
    if quote == '\'' {
        return text.replace("''", "'");
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let escape = (c == '\\').then(|| chars.peek().copied()).flatten();
        let meant = match escape {
            Some('n') => '\n',
            Some('t') => '\t',
            Some(quote @ ('"' | '\\')) => quote,
            _ => {
                out.push(c);
                continue;
            }
        };
        chars.next();
        out.push(meant);
    }
    out
}
