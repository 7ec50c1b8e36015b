//! Progress as lines, for logs: `#3 reviewer  …`, those of one agent together.

mod floor;
mod narrator;
mod prose;

use std::io::Write;

use anstyle::{AnsiColor, Style};
use mainstem_event::{AgentEvent, Timestamp};

use self::{
    floor::Floor,
    narrator::{Line, Narrator},
};
use super::{
    Progress,
    glyphs::{Glyphs, styled},
};

/// The colours of names, in turn.
const COLORS: [AnsiColor; 5] =
    [AnsiColor::Blue, AnsiColor::Magenta, AnsiColor::Cyan, AnsiColor::Green, AnsiColor::Yellow];

/// Progress as lines.
pub(super) struct Plain<W> {
    out: W,
    glyphs: Glyphs,
    narrator: Narrator,
    floor: Floor<Line>,
    is_colored: bool,
}

impl<W: Write> Plain<W> {
    pub(super) fn new(out: W, glyphs: Glyphs, is_colored: bool) -> Self {
        Self { out, glyphs, narrator: Narrator::new(glyphs), floor: Floor::new(), is_colored }
    }

    fn write(&mut self, Line { lane, text, color }: &Line) {
        let name_style = Style::new().fg_color(Some(COLORS[lane % COLORS.len()].into()));
        let name = format!("#{} {}", lane + 1, self.narrator.name(*lane));
        let name = styled(&name, name_style, self.is_colored);
        let text = match color {
            Some(color) => styled(text, Style::new().fg_color(Some((*color).into())), self.is_colored),
            None => text.clone(),
        };
        // In one piece, as others may write there, too.
        let _ = self.out.write_all(format!("{name}  {text}\n").as_bytes());
    }
}

impl<W: Write> Progress for Plain<W> {
    fn event(&mut self, event: &AgentEvent) {
        let (lines, over) = self.narrator.event(event);
        for line in lines {
            self.floor.say(line.lane, event.at, line);
        }
        if let Some(lane) = over {
            self.floor.leave(lane);
        }
        self.tick(event.at);
    }

    fn tick(&mut self, now: Timestamp) {
        while let Some(line) = self.floor.next(now) {
            self.write(&line);
        }
    }

    fn note(&mut self, text: &str) {
        let _ = writeln!(self.out, "{}", self.glyphs.text(text));
    }

    fn finish(&mut self, _: Timestamp) {
        while let Some(line) = self.floor.rest() {
            self.write(&line);
        }
    }
}

#[cfg(test)]
mod tests;
