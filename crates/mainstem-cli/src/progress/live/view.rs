//! The tree as lines of cells: columns that fit the width, rows that fit the height.

use anstyle::AnsiColor;
use mainstem_event::Outcome;
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Style, Stylize},
    text::{Line, Span},
};

use super::tree::{Entry, Row};
use crate::progress::{
    glyphs::{self, Glyphs},
    names::Name,
};

/// How the tree is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) glyphs: Glyphs,
    pub(crate) width: u16,
    /// The widest name.
    pub(crate) widest: usize,
    /// Whether the tokens are shown, if there is room.
    pub(crate) has_tokens: bool,
    /// Milliseconds, for signs that turn.
    pub(crate) elapsed: u64,
}

impl View {
    /// Returns the head and as many lines of the tree as fit the height; with room left, the text
    /// under way as well.
    pub(crate) fn frame(self, head: Line<'static>, tree: &[Entry], height: usize) -> Vec<Line<'static>> {
        let room = height.saturating_sub(1);
        // The last line has the number of hidden ones.
        let (shown, hidden) = if tree.len() > room { (room.saturating_sub(1), 1) } else { (tree.len(), 0) };
        let mut talk = room.saturating_sub(shown + hidden);
        let mut lines = vec![head];
        for entry in &tree[..shown] {
            match entry {
                Entry::Agent(row) => {
                    lines.push(self.row(row));
                    if let Some(text) = row.text.as_ref().filter(|_| talk > 0) {
                        talk -= 1;
                        lines.push(self.text(row.depth, text));
                    }
                }
                Entry::Ended { count, depth } => lines.push(self.ended(*count, *depth)),
            }
        }
        if hidden > 0 && room > 0 {
            let more = format!(" {} {} more", self.glyphs.more, tree.len() - shown);
            lines.push(Line::from(more).dim());
        }
        lines
    }

    /// Returns the cells before the sign of an agent; deep ones stand as far right as others.
    fn indent(self, depth: usize) -> usize {
        1 + (INDENT * depth).min(usize::from(self.width) / 4)
    }

    fn ended(self, count: usize, depth: usize) -> Line<'static> {
        let lead = " ".repeat(self.indent(depth));
        Line::from(format!("{lead}{} {count} done", self.glyphs.ok)).dim()
    }

    /// Returns the title at the left and the totals at the right; without room for both, the
    /// totals.
    pub(crate) fn head(self, mark: &str, title: &str, totals: &str) -> Line<'static> {
        let width = usize::from(self.width);
        let room = width.saturating_sub(cells(totals) + 2);
        if room < 16 {
            return Line::from(self.fit(&format!("[{mark}] {totals}"), width)).bold();
        }
        let title = self.fit(&format!("[{mark}] {title}"), room);
        let gap = width - cells(&title) - cells(totals);
        Line::from(vec![title.bold(), " ".repeat(gap).into(), totals.to_owned().dim()])
    }

    /// Returns an agent's row: its state, name, time, tokens, and activity.
    pub(crate) fn row(self, row: &Row) -> Line<'static> {
        let columns = Columns::of(self.widest, self.width, self.has_tokens);
        let (glyph, style) = match row.outcome {
            Some(outcome) => (self.glyphs.ending(outcome).0, Style::new().fg(color(glyphs::color(outcome)))),
            None if row.is_asking => (self.glyphs.asking, Style::new().yellow()),
            None if row.is_in_background => (self.glyphs.background, Style::new().cyan()),
            None => (self.glyphs.spinner(self.elapsed), Style::new().cyan()),
        };
        let lead = self.indent(row.depth);
        let mut spans = vec![" ".repeat(lead).into(), Span::styled(glyph, style), " ".into()];
        spans.extend(self.name(&row.name, columns.name.saturating_sub(lead - 1)));
        for (text, width) in [(&row.time, columns.time), (&row.tokens, columns.tokens)] {
            if width > 0 {
                spans.extend([gap(text, width), text.clone().dim()]);
            }
        }
        if columns.activity > 0 {
            let style = match row.outcome {
                Some(Outcome::Success) => Style::new().dim(),
                Some(_) => style,
                None => Style::new(),
            };
            spans.extend(["  ".into(), Span::styled(self.fit(&row.activity, columns.activity), style)]);
        }
        Line::from(spans)
    }

    /// Returns an agent's id, and behind it what tells it from others, padded to the width.
    fn name(self, name: &Name, width: usize) -> [Span<'static>; 3] {
        let about = if name.about.is_empty() { String::new() } else { format!(" {}", name.about) };
        // What tells it from others is worth more than the whole id.
        let id = self.fit_id(&name.id, width.saturating_sub(cells(&about)).max(SHORT).min(width));
        let about = self.fit(&about, width - cells(&id));
        let gap = gap(&format!("{id}{about}"), width);
        [id.into(), about.dim(), gap]
    }

    /// Returns an id, cut before the number that tells it from a twin.
    fn fit_id(self, id: &str, width: usize) -> String {
        let (kind, number) = id.split_at(id.rfind('#').unwrap_or(id.len()));
        if cells(id) <= width || cells(number) >= width {
            return self.fit(id, width);
        }
        self.fit(kind, width - cells(number)) + number
    }

    /// Returns the end of a text, so that the newest words are visible.
    fn text(self, depth: usize, text: &str) -> Line<'static> {
        let lead = format!("{}{} ", " ".repeat(self.indent(depth) + 2), self.glyphs.quote);
        let room = usize::from(self.width).saturating_sub(cells(&lead) + 1);
        Line::from(format!("{lead}{}", self.fit_end(text, room))).dim()
    }

    /// Returns a text, cut at its end to a number of cells.
    fn fit(self, text: &str, width: usize) -> String {
        if cells(text) <= width {
            return text.to_owned();
        }
        let Some(room) = width.checked_sub(cells(self.glyphs.more)) else { return String::new() };
        let ends = text.char_indices().map(|(end, _)| end).take_while(|end| cells(&text[..*end]) <= room);
        let kept = text[..ends.last().unwrap_or_default()].trim_end();
        format!("{kept}{}", self.glyphs.more)
    }

    /// Returns a text, cut at its beginning to a number of cells.
    fn fit_end(self, text: &str, width: usize) -> String {
        if cells(text) <= width {
            return text.to_owned();
        }
        let room = width.saturating_sub(cells(self.glyphs.more));
        let start = text.char_indices().map(|(start, _)| start).find(|start| cells(&text[*start..]) <= room);
        format!("{}{}", self.glyphs.more, start.map_or("", |start| &text[start..]))
    }
}

/// The cells by which a child stands further right than its parent.
const INDENT: usize = 2;

/// The cells that an id has beside a long label.
const SHORT: usize = 8;

const TIME: usize = 7;
const TOKENS: usize = 11;
/// The narrowest useful column.
const ACTIVITY: usize = 16;

/// The width of each column; 0 hides it.
#[derive(Debug, PartialEq)]
struct Columns {
    name: usize,
    time: usize,
    tokens: usize,
    activity: usize,
}

impl Columns {
    /// Without room, the tokens are hidden first, then the time, then the activity.
    fn of(widest: usize, width: u16, has_tokens: bool) -> Self {
        let room = usize::from(width).saturating_sub(3);
        let with_activity = |time: usize, tokens: usize| {
            let room = room.checked_sub(time + tokens + 2)?;
            let name = widest.max(12).min(room / 2);
            let activity = Some(room - name).filter(|activity| *activity >= ACTIVITY)?;
            Some(Self { name, time, tokens, activity })
        };
        let tokens = if has_tokens { TOKENS } else { 0 };
        let all = with_activity(TIME, tokens).or_else(|| with_activity(TIME, 0));
        all.or_else(|| with_activity(0, 0)).unwrap_or_else(|| {
            let time = if room >= 24 { TIME } else { 0 };
            Self { name: widest.min(room - time), time, tokens: 0, activity: 0 }
        })
    }
}

/// Returns the cells of the widest name, with what stands before it.
pub(crate) fn widest(tree: &[Entry]) -> usize {
    let cells = |entry: &Entry| match entry {
        Entry::Agent(row) => name_cells(row),
        Entry::Ended { .. } => 0,
    };
    tree.iter().map(cells).max().unwrap_or_default()
}

fn name_cells(Row { depth, name, .. }: &Row) -> usize {
    let about = if name.about.is_empty() { 0 } else { 1 + cells(&name.about) };
    INDENT * depth + cells(&name.id) + about
}

/// Returns the cells of the widest name of these rows.
pub(crate) fn widest_of(rows: &[Row]) -> usize {
    rows.iter().map(name_cells).max().unwrap_or_default()
}

/// Converts lines to cells.
pub(crate) fn buffer(lines: &[Line<'_>], width: u16) -> Buffer {
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    for (y, line) in (0..height).zip(lines) {
        buffer.set_line(0, y, line, width);
    }
    buffer
}

fn cells(text: &str) -> usize {
    Span::raw(text).width()
}

/// Returns the cells that a column has left beside a text.
fn gap(text: &str, width: usize) -> Span<'static> {
    " ".repeat(width.saturating_sub(cells(text))).into()
}

fn color(color: AnsiColor) -> Color {
    match color {
        AnsiColor::Green => Color::Green,
        AnsiColor::Yellow => Color::Yellow,
        _ => Color::Red,
    }
}

#[cfg(test)]
mod tests;
