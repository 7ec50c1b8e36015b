//! Markdown (CommonMark, with tables, tasks and strikethrough) as styled lines for a terminal.

mod flow;
mod table;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::{
    style::Style,
    text::{Line, Span},
};

use self::{flow::Flow, table::Table};
use crate::sanitize;

/// The most bytes of a text that are laid out while it still grows: a screen shows less.
const TAIL: usize = 32 * 1024;

/// Returns a text as lines of at most so many cells, without control sequences. Lines of code are
/// not wrapped, so that they can be copied.
pub(crate) fn lines(text: &str, width: usize) -> Vec<Line<'static>> {
    let mut page = Page::new(width.max(8));
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH;
    Parser::new_ext(&sanitize::clean(text), options).for_each(|event| page.event(event));
    page.flow.finish()
}

/// Returns the lines at the end of a text that still grows.
pub(crate) fn last_lines(text: &str, width: usize, most: usize) -> Vec<Line<'static>> {
    let mut lines = lines(tail(text), width);
    lines.drain(..lines.len().saturating_sub(most));
    lines
}

/// Returns the end of a long text, from the beginning of a paragraph.
fn tail(text: &str) -> &str {
    let from = text.ceil_char_boundary(text.len().saturating_sub(TAIL));
    match text[from..].find("\n\n") {
        Some(paragraph) if from > 0 => &text[from + paragraph..],
        _ => &text[from..],
    }
}

/// Returns lines with their styles as escape sequences (ECMA-48, SGR).
pub(crate) fn ansi(lines: &[Line<'_>]) -> String {
    let mut text = String::new();
    for line in lines {
        for span in line.spans.iter().filter(|span| !span.content.is_empty()) {
            let style = sgr(line.style.patch(span.style));
            text += &format!("{style}{}{style:#}", span.content);
        }
        text.push('\n');
    }
    text
}

fn sgr(style: Style) -> anstyle::Style {
    use anstyle::{AnsiColor, Effects};
    use ratatui::style::{Color, Modifier};
    let effects = [
        (Modifier::BOLD, Effects::BOLD),
        (Modifier::DIM, Effects::DIMMED),
        (Modifier::ITALIC, Effects::ITALIC),
        (Modifier::UNDERLINED, Effects::UNDERLINE),
        (Modifier::CROSSED_OUT, Effects::STRIKETHROUGH),
    ];
    let effects = effects.into_iter().filter(|(modifier, _)| style.add_modifier.contains(*modifier));
    let effects = effects.fold(Effects::new(), |all, (_, effect)| all | effect);
    let color = match style.fg {
        Some(Color::Cyan) => Some(AnsiColor::Cyan.into()),
        _ => None,
    };
    anstyle::Style::new().effects(effects).fg_color(color)
}

/// The layout of a text so far.
struct Page {
    flow: Flow,
    /// The styles of the open spans, each with those around it.
    styles: Vec<Style>,
    /// The next number of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// The targets of the open links.
    links: Vec<String>,
    is_code: bool,
    table: Option<Table>,
}

impl Page {
    fn new(width: usize) -> Self {
        Self {
            flow: Flow::new(width),
            styles: Vec::new(),
            lists: Vec::new(),
            links: Vec::new(),
            is_code: false,
            table: None,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_code => self.flow.code(&text),
            Event::Text(text) => self.text(&text, Style::new()),
            Event::Code(code) => self.text(&code, Style::new().cyan()),
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text, Style::new()),
            Event::SoftBreak => self.text(" ", Style::new()),
            Event::HardBreak => self.flow.end_line(),
            Event::Rule => self.flow.rule(),
            Event::TaskListMarker(is_done) => self.text(if is_done { "☑ " } else { "☐ " }, Style::new()),
            _ => {}
        }
    }

    fn text(&mut self, text: &str, style: Style) {
        // Markdown has names and numbers for characters, those of control sequences included.
        let span = Span::styled(sanitize::clean(text), self.style().patch(style));
        match &mut self.table {
            Some(table) => table.text(span),
            None => self.flow.text(span),
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                let style = Style::new().bold();
                self.push(if level == HeadingLevel::H1 { style.underlined() } else { style });
            }
            Tag::BlockQuote(_) => {
                self.flow.end_block();
                self.flow.indent("│ ", "│ ");
            }
            Tag::CodeBlock(kind) => {
                self.flow.end_block();
                self.flow.indent("  ", "  ");
                self.is_code = true;
                if let CodeBlockKind::Fenced(language) = kind {
                    let language = sanitize::clean(&language);
                    self.flow.language(language.split_whitespace().next().unwrap_or_default());
                }
            }
            Tag::List(first) => {
                self.flow.begin_list();
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.push(Style::new().italic()),
            Tag::Strong => self.push(Style::new().bold()),
            Tag::Strikethrough => self.push(Style::new().crossed_out()),
            Tag::Link { dest_url, .. } => {
                self.links.push(dest_url.into_string());
                self.push(Style::new().underlined());
            }
            Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.into_string());
                self.push(Style::new().italic());
            }
            Tag::Table(_) => {
                self.flow.end_block();
                self.table = Some(Table::default());
            }
            Tag::TableHead => self.push(Style::new().bold()),
            _ => {}
        }
    }

    fn item(&mut self) {
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number += 1;
                mark
            }
            _ => "• ".to_owned(),
        };
        self.flow.end_line();
        self.flow.indent(&mark, &" ".repeat(mark.chars().count()));
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.flow.end_block();
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flow.end_block(),
            TagEnd::BlockQuote(_) => self.flow.outdent(),
            TagEnd::CodeBlock => {
                self.is_code = false;
                self.flow.outdent();
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.flow.end_list(self.lists.is_empty());
            }
            TagEnd::Item => {
                self.flow.end_line();
                self.flow.outdent_item();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => _ = self.styles.pop(),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.flow.lines(table.lines(self.flow.room()));
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if tag == TagEnd::TableHead {
                    self.styles.pop();
                }
                self.table.iter_mut().for_each(Table::end_row);
            }
            TagEnd::TableCell => self.table.iter_mut().for_each(Table::end_cell),
            _ => {}
        }
    }

    /// Shows the target of a link behind its text, unless the text is the target.
    fn end_link(&mut self) {
        self.styles.pop();
        let Some(target) = self.links.pop() else { return };
        let is_shown = self.table.is_none() && self.flow.ends_with(target.trim_start_matches("mailto:"));
        if !target.is_empty() && !is_shown {
            self.text(&format!(" ({target})"), Style::new().dim());
        }
    }
}

#[cfg(test)]
mod tests;
