//! Progress as a tree that is redrawn in place: running agents with their activity; rows of ended
//! agents scroll away above it.

mod answer;
mod screen;
mod tree;
mod view;

use std::io::{self, Write};

use mainstem_event::{AgentEvent, Timestamp};
use ratatui::text::Line;

use self::{answer::Answer, screen::Screen, tree::{Row, Tree}, view::View};
use super::{Progress, figures, glyphs::Glyphs};

/// Columns and rows of a terminal.
pub(super) type Size = (u16, u16);

/// Rows of the terminal that are left to earlier output.
const LEFT: u16 = 3;

/// The tree on a terminal.
pub(crate) struct Live<W> {
    tree: Tree,
    answer: Answer,
    screen: Screen<W>,
    glyphs: Glyphs,
    is_markdown: bool,
    title: String,
    size: fn() -> Size,
    started: Option<Timestamp>,
    now: Timestamp,
    /// The widest name so far, so that columns do not move.
    widest: usize,
}

/// Returns the size of the terminal at stderr; by default 80 by 24.
pub(super) fn size_of_stderr() -> Size {
    let size = terminal_size::terminal_size_of(io::stderr());
    size.map_or((80, 24), |(width, height)| (width.0.max(1), height.0.max(1)))
}

impl<W: Write> Live<W> {
    pub(super) fn new(out: W, glyphs: Glyphs, is_colored: bool, prompt: &str, size: fn() -> Size) -> Self {
        // `Terminal::detect` has applied NO_COLOR and the flag.
        crossterm::style::force_color_output(is_colored);
        Self {
            tree: Tree::new(glyphs),
            answer: Answer::default(),
            screen: Screen::new(out, is_colored),
            glyphs,
            is_markdown: false,
            title: glyphs.line(prompt),
            size,
            started: None,
            now: Timestamp::default(),
            widest: 0,
        }
    }

    /// Sets whether the root's text is rendered as markdown.
    pub(super) fn with_markdown(mut self, is_markdown: bool) -> Self {
        self.is_markdown = is_markdown;
        self
    }

    /// Lets notes and rows of ended agents scroll away, and draws the rest; at the end only the
    /// totals.
    fn draw(&mut self, notes: &[String], is_over: bool) {
        let (columns, height) = (self.size)();
        // A terminal may wrap at its last column, so that column stays empty.
        let width = columns.saturating_sub(1).max(1);
        let Some(started) = self.started else {
            return self.screen.draw(notes, &[], columns);
        };
        let (ended, running) = (self.tree.take_ended(self.now), self.tree.running(self.now));
        self.widest = view::widest(ended.iter().chain(&running)).max(self.widest);
        let elapsed = self.now.millis_since(started);
        let view = View { glyphs: self.glyphs, width, widest: self.widest, elapsed };
        let ended: Vec<_> = ended.iter().map(|row| view.row(row)).collect();
        let head = view.head(self.mark(is_over), &self.title, &self.totals(elapsed));
        let frame = if is_over { vec![head] } else { self.frame(view, head, &running, height) };
        self.screen.draw(notes, &[view::buffer(&ended, width), view::buffer(&frame, width)], columns);
    }

    /// Returns the tree, and below it the end of what the root has written, which gets half of the
    /// height while it grows, and else what the tree leaves.
    fn frame(&self, view: View, head: Line<'static>, rows: &[Row], height: u16) -> Vec<Line<'static>> {
        let height = usize::from(height.saturating_sub(LEFT));
        let answer = self.answer.last_lines(usize::from(view.width), height, self.is_markdown);
        let reserved = if self.answer.is_open() { (answer.len() + 1).min(height / 2) } else { 0 };
        let mut frame = view.frame(head, rows, height - reserved);
        let room = height.saturating_sub(frame.len() + 1);
        if room > 0 && !answer.is_empty() {
            frame.push(Line::default());
            frame.extend_from_slice(&answer[answer.len().saturating_sub(room)..]);
        }
        frame
    }

    fn mark(&self, is_over: bool) -> &'static str {
        match self.tree.outcome() {
            Some(outcome) if is_over => self.glyphs.ending(outcome).0,
            _ => "+",
        }
    }

    fn totals(&self, elapsed: u64) -> String {
        let (agents, tokens) = self.tree.totals();
        [figures::agents(agents), figures::tokens(tokens), figures::clock(elapsed)].join(self.glyphs.dot)
    }
}

impl<W: Write> Progress for Live<W> {
    fn event(&mut self, event: &AgentEvent) {
        self.started.get_or_insert(event.at);
        self.now = event.at;
        self.tree.event(event);
        self.answer.event(event);
    }

    fn tick(&mut self, now: Timestamp) {
        self.now = now;
        if self.started.is_some() {
            self.draw(&[], false);
        }
    }

    fn note(&mut self, text: &str) {
        let notes: Vec<_> = text.lines().map(|line| self.glyphs.text(line)).collect();
        self.draw(&notes, false);
    }

    fn ask(&mut self, text: &str) {
        self.note(text);
        // Typed text moves the cursor; later frames are drawn below it.
        self.screen.leave();
    }

    fn finish(&mut self, now: Timestamp) {
        self.now = now;
        if self.started.is_some() {
            self.draw(&[], true);
            self.screen.leave();
        }
    }
}

#[cfg(test)]
mod tests;
