//! Foreign text for a terminal: the terminal must show the text of models, tools and servers, and
//! never execute its control sequences.

use std::fmt::Write as _;

use anstream::adapter::strip_str;

/// What the harness adds to a conversation begins with it.
pub(crate) const REMINDER: &str = "<system-reminder>";

/// Removes escape sequences, control characters other than line feed and tab, and changes of the
/// reading direction.
pub(crate) fn clean(text: &str) -> String {
    strip_str(text).to_string().chars().filter(|c| !is_unsafe(*c)).collect()
}

/// Replaces what a terminal with ASCII only can't show.
pub(crate) fn ascii(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            '…' => out.push_str("..."),
            '→' => out.push_str("->"),
            '←' => out.push_str("<-"),
            '↑' => out.push('^'),
            '↓' => out.push('v'),
            '–' | '—' | '·' => out.push('-'),
            '›' => out.push('>'),
            '‘' | '’' => out.push('\''),
            '“' | '”' => out.push('"'),
            c => out.push(if c.is_ascii() { c } else { '?' }),
        }
        out
    })
}

/// Shows what can't be seen as an escape, such as `\u{1b}`: what a person approves has to be all
/// that there is. Letters of all languages stay.
pub(crate) fn visible(text: &str) -> String {
    let is_plain = |c: char| {
        matches!(c, '"' | '\'' | '\\')
            || ["a", c.encode_utf8(&mut [0; 4])].concat().escape_debug().count() == 2
    };
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if is_plain(c) {
            out.push(c)
        } else {
            out.extend(c.escape_debug())
        }
        out
    })
}

/// Shows other characters than those of ASCII as escapes, our own signs aside.
pub(crate) fn visible_ascii(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        match c {
            '…' | '·' | '›' => out.push_str(&ascii(c.encode_utf8(&mut [0; 4]))),
            c if c.is_ascii() => out.push(c),
            c => out.extend(c.escape_unicode()),
        }
        out
    })
}

/// Escapes such characters in JSON, with the same meaning. JSON itself escapes only those below
/// U+0020.
pub(crate) fn escape_json(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut out, c| {
        let _ = if is_unsafe(c) { write!(out, "\\u{:04x}", c as u32) } else { out.write_char(c) };
        out
    })
}

/// Control characters (C0, DEL, C1), the bidirectional embeddings, overrides and isolates, and
/// Unicode's own line separators.
fn is_unsafe(c: char) -> bool {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks = matches!(c, '\u{2028}' | '\u{2029}');
    turns || breaks || (c.is_control() && !matches!(c, '\n' | '\t'))
}

#[cfg(test)]
mod tests;
