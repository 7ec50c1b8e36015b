//! Blocks of text below each other: wrapped, indented, and with an empty line between them.

use ratatui::{
    style::{Style, Stylize},
    text::{Line, Span},
};

/// The most indents that are shown: deeper blocks stand as far right.
const DEEPEST: usize = 8;

/// The longest rule, in cells.
const RULE: usize = 40;

/// What stands before each line of a block.
#[derive(Debug)]
struct Indent {
    /// Before the first line.
    first: String,
    /// Before the others.
    rest: String,
    has_begun: bool,
}

/// The lines so far.
#[derive(Debug)]
pub(super) struct Flow {
    width: usize,
    lines: Vec<Line<'static>>,
    /// The spans of the paragraph under way.
    open: Vec<Span<'static>>,
    indents: Vec<Indent>,
    /// The number of indents that are not shown.
    hidden: usize,
    /// Whether an empty line comes before the next one.
    is_apart: bool,
}

impl Flow {
    pub(super) fn new(width: usize) -> Self {
        Self { width, lines: Vec::new(), open: Vec::new(), indents: Vec::new(), hidden: 0, is_apart: false }
    }

    /// Returns the cells of a line behind its indents.
    pub(super) fn room(&self) -> usize {
        let indents: usize = self.indents.iter().map(|indent| cells(&indent.rest)).sum();
        self.width.saturating_sub(indents).max(8)
    }

    pub(super) fn text(&mut self, span: Span<'static>) {
        self.open.push(span);
    }

    /// Returns `true` if the paragraph under way ends with this text.
    pub(super) fn ends_with(&self, text: &str) -> bool {
        self.open.last().is_some_and(|span| span.content == text)
    }

    /// Wraps the paragraph under way, if there is one, and ends its last line.
    pub(super) fn end_line(&mut self) {
        let spans = std::mem::take(&mut self.open);
        if spans.iter().any(|span| !span.content.trim().is_empty()) {
            let lines = wrap(&spans, self.room());
            lines.into_iter().for_each(|line| self.line(line));
        }
    }

    /// Ends a block; the next one comes after an empty line.
    pub(super) fn end_block(&mut self) {
        self.end_line();
        self.is_apart = !self.lines.is_empty();
    }

    pub(super) fn indent(&mut self, first: &str, rest: &str) {
        let used: usize = self.indents.iter().map(|indent| cells(&indent.rest)).sum();
        if self.hidden > 0 || self.indents.len() == DEEPEST || used + cells(rest) > self.width / 2 {
            self.hidden += 1;
            return;
        }
        self.indents.push(Indent { first: first.to_owned(), rest: rest.to_owned(), has_begun: false });
    }

    /// Ends an indented block.
    pub(super) fn outdent(&mut self) {
        self.end_line();
        self.pop();
        self.is_apart = true;
    }

    /// Ends an item of a list; one without text is its mark.
    pub(super) fn outdent_item(&mut self) {
        if self.hidden == 0 && self.indents.last().is_some_and(|indent| !indent.has_begun) {
            self.line(Vec::new());
        }
        self.pop();
    }

    fn pop(&mut self) {
        if self.hidden > 0 {
            self.hidden -= 1;
        } else {
            self.indents.pop();
        }
    }

    /// Begins a list; within an item it stands directly below the text.
    pub(super) fn begin_list(&mut self) {
        let is_within = !self.open.is_empty();
        self.end_line();
        if is_within {
            self.is_apart = false;
        }
    }

    pub(super) fn end_list(&mut self, is_outermost: bool) {
        self.end_line();
        self.is_apart |= is_outermost;
    }

    /// Adds lines of code as they are.
    pub(super) fn code(&mut self, text: &str) {
        for line in text.lines() {
            let spans = if line.is_empty() { Vec::new() } else { vec![line.replace('\t', "    ").cyan()] };
            self.line(spans);
        }
    }

    /// Names the language of the code that follows.
    pub(super) fn language(&mut self, language: &str) {
        if !language.is_empty() {
            self.line(vec![language.to_owned().dim()]);
        }
    }

    pub(super) fn rule(&mut self) {
        self.end_block();
        self.line(vec!["─".repeat(self.room().min(RULE)).dim()]);
        self.is_apart = true;
    }

    /// Adds a block of finished lines.
    pub(super) fn lines(&mut self, lines: Vec<Vec<Span<'static>>>) {
        lines.into_iter().for_each(|line| self.line(line));
        self.is_apart = true;
    }

    pub(super) fn finish(mut self) -> Vec<Line<'static>> {
        self.end_line();
        self.lines
    }

    fn line(&mut self, spans: Vec<Span<'static>>) {
        if std::mem::take(&mut self.is_apart) && !self.lines.is_empty() {
            let before = self.indents.iter().filter(|indent| indent.has_begun);
            let empty: String = before.map(|indent| &*indent.rest).collect();
            self.lines.push(Line::from(empty.trim_end().to_owned().dim()));
        }
        let mut line = Vec::new();
        for indent in &mut self.indents {
            let is_first = !std::mem::replace(&mut indent.has_begun, true);
            let text = if is_first { &indent.first } else { &indent.rest };
            line.push(text.clone().dim());
        }
        line.extend(spans);
        self.lines.push(Line::from(line));
    }
}

/// Breaks spans at spaces into lines of at most `width` cells. A longer word is broken, too.
pub(super) fn wrap(spans: &[Span<'static>], width: usize) -> Vec<Vec<Span<'static>>> {
    let mut lines = vec![Vec::new()];
    let (mut used, mut word, mut gap) = (0, Vec::<(String, Style)>::new(), None::<Style>);
    let mut place = |word: &mut Vec<(String, Style)>, gap: &mut Option<Style>| {
        let wide: usize = word.iter().map(|(text, _)| cells(text)).sum();
        let space = usize::from(gap.is_some() && used > 0);
        if used > 0 && used + space + wide > width {
            lines.push(Vec::new());
            used = 0;
        } else if let Some(style) = gap.filter(|_| used > 0) {
            push(&mut lines, " ", style);
            used += 1;
        }
        *gap = None;
        for (text, style) in word.drain(..) {
            for c in text.chars() {
                let mut buffer = [0; 4];
                let c = &*c.encode_utf8(&mut buffer);
                if used > 0 && used + cells(c) > width {
                    lines.push(Vec::new());
                    used = 0;
                }
                push(&mut lines, c, style);
                used += cells(c);
            }
        }
    };
    for span in spans {
        for piece in span.content.split_inclusive(char::is_whitespace) {
            let text = piece.trim_end_matches(char::is_whitespace);
            if !text.is_empty() {
                word.push((text.to_owned(), span.style));
            }
            if text.len() < piece.len() {
                if !word.is_empty() {
                    place(&mut word, &mut gap);
                }
                gap = Some(span.style);
            }
        }
    }
    if !word.is_empty() {
        place(&mut word, &mut gap);
    }
    lines
}

/// Adds a text to the last line.
fn push(lines: &mut [Vec<Span<'static>>], text: &str, style: Style) {
    let Some(line) = lines.last_mut() else { return };
    match line.last_mut() {
        Some(last) if last.style == style => last.content.to_mut().push_str(text),
        _ => line.push(Span::styled(text.to_owned(), style)),
    }
}

pub(super) fn cells(text: &str) -> usize {
    Span::raw(text).width()
}
