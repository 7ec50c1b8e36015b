//! Progress as lines, for logs: `#3 reviewer  …`, grouped by agent.

mod lanes;
mod line_buffer;
mod lines;

use std::io::Write;

use anstyle::{AnsiColor, Style};
use mainstem_event::{AgentEvent, Timestamp};

use self::{
    lanes::Lanes,
    lines::{Line, Lines},
};
use super::{
    Progress,
    glyphs::{Glyphs, styled},
};

/// The colours of names, in rotation.
const COLORS: [AnsiColor; 5] =
    [AnsiColor::Blue, AnsiColor::Magenta, AnsiColor::Cyan, AnsiColor::Green, AnsiColor::Yellow];

/// Progress as lines.
pub(super) struct Plain<W> {
    out: W,
    glyphs: Glyphs,
    lines: Lines,
    lanes: Lanes<(Timestamp, Line)>,
    is_colored: bool,
    /// Whether each line begins with its time.
    has_times: bool,
}

impl<W: Write> Plain<W> {
    pub(super) fn new(out: W, glyphs: Glyphs, is_colored: bool) -> Self {
        Self { out, glyphs, lines: Lines::new(glyphs), lanes: Lanes::new(), is_colored, has_times: false }
    }

    /// Sets whether each line begins with its time of day (UTC).
    pub(super) fn with_times(mut self, has_times: bool) -> Self {
        self.has_times = has_times;
        self
    }

    fn write(&mut self, at: Timestamp, Line { lane, text, color }: &Line) {
        let name_style = Style::new().fg_color(Some(COLORS[lane % COLORS.len()].into()));
        let name = format!("#{} {}", lane + 1, self.lines.name(*lane));
        let name = styled(&name, name_style, self.is_colored);
        let text = match color {
            Some(color) => styled(text, Style::new().fg_color(Some((*color).into())), self.is_colored),
            None => text.clone(),
        };
        let time = if self.has_times { time_of_day(at) + " " } else { String::new() };
        // One write, because other processes may write there, too.
        let _ = self.out.write_all(format!("{time}{name}  {text}\n").as_bytes());
    }
}

/// Returns the time of day, such as `20:57:03.123`.
fn time_of_day(at: Timestamp) -> String {
    at.to_string().chars().skip("2026-11-25T".len()).take("20:57:03.123".len()).collect()
}

impl<W: Write> Progress for Plain<W> {
    fn event(&mut self, event: &AgentEvent) {
        let (lines, over) = self.lines.event(event);
        for line in lines {
            self.lanes.say(line.lane, event.at, (event.at, line));
        }
        if let Some(lane) = over {
            self.lanes.leave(lane);
        }
        self.tick(event.at);
    }

    fn tick(&mut self, now: Timestamp) {
        while let Some((at, line)) = self.lanes.next(now) {
            self.write(at, &line);
        }
    }

    fn note(&mut self, text: &str) {
        let _ = writeln!(self.out, "{}", self.glyphs.text(text));
    }

    fn below_echo(&mut self) {
        let _ = writeln!(self.out);
    }

    fn finish(&mut self, _: Timestamp) {
        while let Some((at, line)) = self.lanes.rest() {
            self.write(at, &line);
        }
    }
}

#[cfg(test)]
mod tests;
