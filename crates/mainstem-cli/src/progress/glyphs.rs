//! The signs of states. Each has its own shape and a word beside it, so that none depends on its
//! colour.

use anstyle::{AnsiColor, Style};
use mainstem_event::Outcome;

use crate::sanitize;

/// A set of signs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glyphs {
    pub(crate) ok: &'static str,
    pub(crate) failed: &'static str,
    pub(crate) cancelled: &'static str,
    pub(crate) limit: &'static str,
    pub(crate) asking: &'static str,
    pub(crate) background: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) warning: &'static str,
    pub(crate) quote: &'static str,
    pub(crate) dot: &'static str,
    pub(crate) more: &'static str,
    spinner: &'static [&'static str],
    is_ascii: bool,
}

impl Glyphs {
    pub(crate) const UNICODE: Self = Self {
        ok: "✔",
        failed: "✖",
        cancelled: "■",
        limit: "▲",
        asking: "⏸",
        background: "◐",
        tool: "→",
        warning: "!",
        quote: "│",
        dot: " · ",
        more: "…",
        spinner: &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"],
        is_ascii: false,
    };

    /// Signs for a locale without UTF-8.
    pub(crate) const ASCII: Self = Self {
        ok: "+",
        failed: "x",
        cancelled: "~",
        limit: "^",
        asking: "?",
        background: "%",
        tool: ">",
        warning: "!",
        quote: "|",
        dot: " - ",
        more: "...",
        spinner: &["|", "/", "-", "\\"],
        is_ascii: true,
    };

    pub(crate) fn is_ascii(self) -> bool {
        self.is_ascii
    }

    /// Returns the sign and the word of an ending.
    pub(crate) fn ending(self, outcome: Outcome) -> (&'static str, &'static str) {
        match outcome {
            Outcome::Success => (self.ok, "done"),
            Outcome::Cancelled => (self.cancelled, "cancelled"),
            Outcome::Timeout => (self.failed, "timed out"),
            Outcome::MaxIterations => (self.limit, "limit of turns"),
            Outcome::Suspended => (self.asking, "waits for its caller"),
            _ => (self.failed, "failed"),
        }
    }

    /// Returns a sign that turns, a step each tenth of a second.
    pub(crate) fn spinner(self, millis: u64) -> &'static str {
        self.spinner[(millis / 100) as usize % self.spinner.len()]
    }

    /// Returns foreign text without what this terminal must not get.
    pub(crate) fn text(self, text: &str) -> String {
        let text = sanitize::clean(text);
        if self.is_ascii { sanitize::ascii(&text) } else { text }
    }

    /// Returns foreign text as one line, with single spaces.
    pub(crate) fn line(self, text: &str) -> String {
        self.text(text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Returns foreign text as one line of at most this many characters.
    pub(crate) fn short(self, text: &str, most: usize) -> String {
        let line = self.line(text);
        match line.char_indices().nth(most) {
            Some((end, _)) => format!("{}{}", line[..end].trim_end(), self.more),
            None => line,
        }
    }
}

/// Returns the colour of an ending.
pub(crate) fn color(outcome: Outcome) -> AnsiColor {
    match outcome {
        Outcome::Success => AnsiColor::Green,
        Outcome::Cancelled | Outcome::MaxIterations | Outcome::Suspended => AnsiColor::Yellow,
        _ => AnsiColor::Red,
    }
}

/// Returns a text in a style, if there are colours.
pub(crate) fn styled(text: &str, style: Style, is_colored: bool) -> String {
    if is_colored { format!("{style}{text}{style:#}") } else { text.to_owned() }
}
