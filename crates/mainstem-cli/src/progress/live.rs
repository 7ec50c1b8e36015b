//! Progress as a tree that is redrawn in place: each agent below its parent, with its activity or
//! the beginning of its answer; below the tree the end of what the root writes.

mod answer;
mod rows;
mod screen;
pub(crate) mod tree;
pub(crate) mod view;

use std::io::{self, Write};

use mainstem_event::{AgentEvent, Outcome, Timestamp};
use ratatui::{
    style::Stylize,
    text::{Line, Span},
};

use self::{answer::Answer, screen::Screen, tree::Tree, view::View};
use super::{Progress, figures, glyphs::Glyphs};
use crate::approval::{Kind, Question, Row, SHOWN};

/// Columns and rows of a terminal.
pub(super) type Size = (u16, u16);

/// Rows of the terminal that are left to earlier output.
const LEFT: u16 = 3;

/// The most lines of the tree that stay at the end, on a shorter terminal.
const LONGEST: usize = 40;

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
    /// The question below the tree, and its rows for a width and a height.
    question: Option<Question>,
    rows: Option<((usize, usize), Vec<Row>)>,
    /// What is typed.
    typed: String,
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
            question: None,
            rows: None,
            typed: String::new(),
        }
    }

    /// Sets whether the root's text is rendered as markdown.
    pub(super) fn with_markdown(mut self, is_markdown: bool) -> Self {
        self.is_markdown = is_markdown;
        self
    }

    /// Lets notes scroll away, and draws the tree; at the end without an answer that the result
    /// has.
    fn draw(&mut self, notes: &[String], is_over: bool) {
        let (columns, rows) = (self.size)();
        // A terminal may wrap at its last column, so that column stays empty.
        let width = columns.saturating_sub(1).max(1);
        let room = usize::from(rows.saturating_sub(LEFT));
        let question = self.question(usize::from(width), room);
        let Some(started) = self.started else {
            return self.screen.draw(notes, &view::buffer(&question, width), columns);
        };
        let height = room.saturating_sub(question.len()).max(1);
        let has_result = matches!(self.tree.outcome(), Some(Outcome::Success | Outcome::MaxIterations));
        let answer = if is_over && has_result { Vec::new() } else { self.answer(usize::from(width), height) };
        // The answer gets half of the height while it grows, and else what the tree leaves.
        let reserved = if self.answer.is_open() { (answer.len() + 1).min(height / 2) } else { 0 };
        let most = if is_over { height.max(LONGEST) } else { height - reserved };
        let tree = self.tree.entries(self.now, most.saturating_sub(1));
        self.widest = view::widest(&tree).max(self.widest);
        let elapsed = self.now.millis_since(started);
        let view = View { glyphs: self.glyphs, width, widest: self.widest, has_tokens: true, elapsed };
        let head = view.head(self.mark(is_over), &self.title, &self.totals(elapsed));
        let mut frame = view.frame(head, &tree, most);
        let room = height.saturating_sub(frame.len() + 1);
        if room > 0 && !answer.is_empty() {
            frame.push(Line::default());
            frame.extend_from_slice(&answer[answer.len().saturating_sub(room)..]);
        }
        frame.extend(question);
        // A frame that is higher than the screen can't be replaced.
        let beyond = frame.len().saturating_sub(usize::from(rows).saturating_sub(1).max(1));
        frame.drain(..if is_over { 0 } else { beyond });
        self.screen.draw(notes, &view::buffer(&frame, width), columns);
    }

    /// Returns the question and what is typed, below an empty line.
    fn question(&mut self, width: usize, height: usize) -> Vec<Line<'static>> {
        if self.question.is_none() && self.typed.is_empty() {
            return Vec::new();
        }
        // The head of the tree and the answers need a few lines.
        // Half of the screen stays for the tree.
        let size = (width, SHOWN.min(height / 2).max(2));
        if let Some(question) = &self.question
            && self.rows.as_ref().is_none_or(|(of, _)| *of != size)
        {
            self.rows = Some((size, question.lines(size.0, size.1)));
        }
        let rows = self.rows.iter().flat_map(|(_, rows)| rows).map(|row| self.row(row));
        [Line::default()].into_iter().chain(rows).chain([self.typed(width)]).collect()
    }

    fn row(&self, Row { text, kind }: &Row) -> Line<'static> {
        let line = Line::from(self.glyphs.text(text));
        match kind {
            Kind::Head => line.yellow().bold(),
            Kind::Plain => line,
            Kind::Added => line.green(),
            Kind::Removed => line.red(),
            Kind::Hint => line.dim(),
        }
    }

    /// Returns the end of what is typed, with a cursor.
    fn typed(&self, width: usize) -> Line<'static> {
        let room = width.saturating_sub(5);
        let shown: Vec<char> = self.typed.chars().rev().take(room).collect();
        let shown: String = shown.into_iter().rev().map(|c| if c == '\n' { ' ' } else { c }).collect();
        let shown = self.glyphs.text(&shown);
        let start =
            shown.char_indices().map(|(at, _)| at).find(|at| Span::raw(&shown[*at..]).width() <= room);
        let shown = start.map_or("", |at| &shown[at..]);
        Line::from(format!("  > {shown}_"))
    }

    /// Returns the end of what the root has written.
    fn answer(&self, width: usize, most: usize) -> Vec<Line<'static>> {
        self.answer.last_lines(width, most, self.is_markdown)
    }

    fn mark(&self, is_over: bool) -> &'static str {
        match self.tree.outcome() {
            Some(outcome) if is_over => self.glyphs.ending(outcome).0,
            _ => "+",
        }
    }

    fn totals(&self, elapsed: u64) -> String {
        let totals: Vec<_> = self.tree.totals().into_iter().chain([figures::clock(elapsed)]).collect();
        totals.join(self.glyphs.dot)
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

    fn ask(&mut self, question: Option<&Question>, typed: &str) {
        if self.question.as_ref() != question {
            self.question = question.cloned();
            self.rows = None;
        }
        typed.clone_into(&mut self.typed);
        self.draw(&[], false);
    }

    fn view(&mut self, question: &Question) {
        let width = usize::from((self.size)().0);
        let rows: Vec<_> =
            question.all_lines(width).into_iter().map(|row| self.glyphs.text(&row.text)).collect();
        self.draw(&rows, false);
    }

    fn draws_typed(&self) -> bool {
        true
    }

    fn continued(&mut self) {
        self.screen.leave();
        self.draw(&[], false);
    }

    fn finish(&mut self, now: Timestamp) {
        self.now = now;
        (self.question, self.rows) = (None, None);
        self.typed.clear();
        if self.started.is_some() {
            self.draw(&[], true);
            self.screen.leave();
        }
    }
}

#[cfg(test)]
mod tests;
