//! What stdin, stdout and stderr are connected to.

use std::io::{self, IsTerminal};

use anstream::{AutoStream, ColorChoice};

use crate::{
    args::{Color, Format, Mode},
    markdown, sanitize,
};

/// The longest line of text, as the help has it.
const LINE: usize = 100;

/// The facts about them, detected once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terminal {
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    /// Whether this is a CI system, or the terminal can't move its cursor.
    pub(crate) is_dumb: bool,
    pub(crate) color: bool,
    /// Whether stderr gets rendered markdown, rather than markdown as it is.
    pub(crate) markdown: bool,
    /// Whether the reply on stdout is rendered.
    pub(crate) reply_markdown: bool,
    /// Whether only ASCII is shown.
    pub(crate) ascii: bool,
}

impl Terminal {
    /// Detects them; with `raw`, markdown is shown as it is.
    pub(crate) fn detect(color: Color, raw: bool, var: impl Fn(&str) -> Option<String>) -> Self {
        let is_colored = |auto: ColorChoice| match color {
            Color::Auto => auto != ColorChoice::Never,
            Color::Always => true,
            Color::Never => false,
        };
        let reply_color = is_colored(AutoStream::choice(&io::stdout()));
        let color = is_colored(AutoStream::choice(&io::stderr()));
        let ascii = !cfg!(windows) && !is_utf8(&var);
        let in_ci = var("CI").is_some_and(|value| value != "false" && value != "0");
        Self {
            stdin: io::stdin().is_terminal(),
            stdout: io::stdout().is_terminal(),
            stderr: io::stderr().is_terminal(),
            is_dumb: in_ci || var("TERM").is_some_and(|term| term == "dumb"),
            color,
            // Without styles, the marks of the source say more.
            markdown: color && !ascii && !raw,
            reply_markdown: reply_color && !ascii && !raw,
            ascii,
        }
    }

    /// Returns the width of text on stdout: at most 100 columns, as the help has.
    pub(crate) fn columns(self) -> usize {
        let size = terminal_size::terminal_size_of(io::stdout());
        size.map_or(LINE, |(width, _)| usize::from(width.0).clamp(40, LINE))
    }

    /// Returns a reply as stdout gets it, with a line feed at its end: rendered on a terminal,
    /// without control sequences in any case.
    pub(crate) fn reply(self, text: &str) -> String {
        if self.stdout && self.reply_markdown {
            let width =
                terminal_size::terminal_size_of(io::stdout()).map_or(LINE, |(width, _)| width.0.into());
            return markdown::ansi(&markdown::lines(text, width.min(LINE)));
        }
        let text = sanitize::clean(text);
        if text.ends_with('\n') { text } else { text + "\n" }
    }

    /// Returns `true` if a person can see a question and type an answer.
    pub(crate) fn has_person(self) -> bool {
        self.stdin && self.stderr
    }

    /// Returns how progress is shown, and a note if that differs from the request.
    pub(crate) fn mode(self, requested: Mode, format: Format) -> (Mode, Option<&'static str>) {
        // Lines of both on one screen would disturb each other.
        let is_stream_shown = self.stdout && matches!(format, Format::Ndjson | Format::Sse);
        match requested {
            Mode::Live if !self.stderr => {
                (Mode::Plain, Some("stderr is not a terminal, so progress is plain rather than live"))
            }
            Mode::Auto if !self.stderr => (Mode::Plain, None),
            Mode::Auto if is_stream_shown => (Mode::Quiet, None),
            Mode::Auto if self.is_dumb => (Mode::Plain, None),
            Mode::Auto => (Mode::Live, None),
            requested => (requested, None),
        }
    }
}

/// Returns `true` if the locale's characters are UTF-8: the first of the three variables that is
/// set decides (POSIX, "Locale").
fn is_utf8(var: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(var).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests;
