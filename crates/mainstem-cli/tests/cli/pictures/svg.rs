//! The cells of a terminal as SVG, each run of cells at its place in the grid, whatever the font.

use std::{fmt::Write as _, time::Duration};

/// The colours of a terminal.
pub(super) struct Scheme {
    pub(super) name: &'static str,
    text: &'static str,
    back: &'static str,
    palette: [&'static str; 16],
}

/// Dark and light, as GitHub shows terminals.
pub(super) const SCHEMES: [Scheme; 2] = [
    Scheme {
        name: "dark",
        text: "#e6edf3",
        back: "#0d1117",
        palette: [
            "#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
            "#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
        ],
    },
    Scheme {
        name: "light",
        text: "#1f2328",
        back: "#ffffff",
        palette: [
            "#24292f", "#cf222e", "#116329", "#4d2d00", "#0969da", "#8250df", "#1b7c83", "#6e7781",
            "#57606a", "#a40e26", "#1a7f37", "#633c01", "#218bff", "#a475f9", "#3192aa", "#8c959f",
        ],
    },
];

/// The size of a cell, and the space around all of them, in tenths of a pixel.
const WIDTH: usize = 84;
const HEIGHT: usize = 180;
const PADDING: usize = 100;

/// Returns the picture of a screen, with its cursor.
pub(super) fn picture(screen: &vt100::Screen, scheme: &Scheme) -> String {
    let (rows, columns) = size(screen);
    let mut svg = head(rows, columns, scheme);
    svg.push_str(&cells(screen, scheme));
    svg + "</svg>\n"
}

/// The seconds for which the last frame of a film stays.
const LAST: f64 = 6.0;

/// Returns a film of frames that follow each other after a time, again and again.
pub(super) fn film(frames: &[vt100::Screen], each: Duration, scheme: &Scheme) -> String {
    let (rows, columns) = size(&frames[0]);
    let total = each.as_secs_f64() * (frames.len() - 1) as f64 + LAST;
    let mut svg = head(rows, columns, scheme);
    for (index, frame) in frames.iter().enumerate() {
        let at = |index: usize| 100.0 * each.as_secs_f64() * index as f64 / total;
        let (from, to) = (at(index), if index + 1 < frames.len() { at(index + 1) } else { 100.0 });
        // Hidden, shown, hidden; without steps a frame would fade.
        let _ = write!(
            svg,
            "<style>@keyframes f{index} {{ 0% {{ visibility: hidden }} {from:.2}% {{ visibility: visible }} {to:.2}% {{ visibility: hidden }} }}\n\
             .f{index} {{ visibility: hidden; animation: f{index} {total:.1}s step-end infinite }}</style>\n\
             <g class=\"f{index}\">\n{}</g>\n",
            cells(frame, scheme)
        );
    }
    svg + "</svg>\n"
}

/// Returns what is before the cells.
fn head(rows: usize, columns: usize, scheme: &Scheme) -> String {
    let (width, height) = (px(columns * WIDTH + 2 * PADDING), px(rows * HEIGHT + 2 * PADDING));
    let Scheme { text, back, .. } = scheme;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <style>text {{ fill: {text}; font: 14px ui-monospace, SFMono-Regular, Consolas, \"DejaVu Sans Mono\", monospace; white-space: pre }}\n\
         rect {{ shape-rendering: crispEdges }} .b {{ font-weight: bold }} .d {{ opacity: .65 }} .i {{ font-style: italic }} .u {{ text-decoration: underline }}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"5\" fill=\"{back}\"/>\n"
    )
}

/// Returns the cells, a line of SVG for each row that has any.
fn cells(screen: &vt100::Screen, scheme: &Scheme) -> String {
    (0..size(screen).0).fold(String::new(), |svg, row| svg + &line(screen, row, scheme))
}

fn size(screen: &vt100::Screen) -> (usize, usize) {
    let (rows, columns) = screen.size();
    (rows.get().into(), columns.get().into())
}

/// Cells of one style.
#[derive(Default)]
struct Span {
    column: usize,
    width: usize,
    text: String,
    style: Style,
}

#[derive(Clone, Default, PartialEq)]
struct Style {
    classes: String,
    text: Option<String>,
    back: Option<String>,
}

fn line(screen: &vt100::Screen, row: usize, scheme: &Scheme) -> String {
    let spans = spans(screen, row, scheme);
    let y = PADDING + row * HEIGHT;
    let mut svg = String::new();
    for Span { column, width, style, .. } in &spans {
        let Some(back) = &style.back else { continue };
        let (x, y, width, height) = (px(PADDING + column * WIDTH), px(y), px(width * WIDTH), px(HEIGHT));
        let _ =
            write!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{back}\"/>");
    }
    let texts: Vec<_> = spans.iter().filter_map(text).collect();
    if !texts.is_empty() {
        let _ = write!(svg, "<text y=\"{}\">{}</text>", px(y + 140), texts.join(""));
    }
    if svg.is_empty() { svg } else { svg + "\n" }
}

/// Returns the text of a span, without the spaces at its ends.
fn text(span: &Span) -> Option<String> {
    let text = span.text.trim_start();
    let column = span.column + span.text.len() - text.len();
    let spaces = text.len() - text.trim_end().len();
    let width = span.width - (column - span.column) - spaces;
    let text = text.trim_end();
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
    let color = span.style.text.as_ref().map(|color| format!(" style=\"fill:{color}\"")).unwrap_or_default();
    let classes = span.style.classes.trim_end();
    let classes = if classes.is_empty() { String::new() } else { format!(" class=\"{classes}\"") };
    let (x, length) = (px(PADDING + column * WIDTH), px(width * WIDTH));
    (!text.is_empty())
        .then(|| format!("<tspan x=\"{x}\" textLength=\"{length}\"{classes}{color}>{escaped}</tspan>"))
}

fn spans(screen: &vt100::Screen, row: usize, scheme: &Scheme) -> Vec<Span> {
    let cursor = (!screen.hide_cursor()).then(|| screen.cursor_position());
    let mut spans: Vec<Span> = Vec::new();
    for column in 0..size(screen).1 {
        let at = (u16::try_from(row).unwrap(), u16::try_from(column).unwrap());
        let cell = screen.cell(at.0, at.1).unwrap();
        if cell.is_wide_continuation() {
            continue;
        }
        let style = style(cell, cursor == Some(at), scheme);
        if spans.last().is_none_or(|last| last.style != style) {
            spans.push(Span { column, style, ..Span::default() });
        }
        let span = spans.last_mut().unwrap();
        span.width += 1 + usize::from(cell.is_wide());
        span.text.push_str(if cell.has_contents() { cell.contents() } else { " " });
    }
    spans
}

fn style(cell: &vt100::Cell, is_cursor: bool, scheme: &Scheme) -> Style {
    let (mut text, mut back) = (color(cell.fgcolor(), scheme), color(cell.bgcolor(), scheme));
    if cell.inverse() != is_cursor {
        let back_of_text = text.unwrap_or_else(|| scheme.text.into());
        (text, back) = (back.or_else(|| Some(scheme.back.into())), Some(back_of_text));
    }
    let classes = [(cell.bold(), "b "), (cell.dim(), "d "), (cell.italic(), "i "), (cell.underline(), "u ")];
    let classes = classes.iter().filter(|(has, _)| *has).map(|(_, class)| *class).collect();
    Style { classes, text, back }
}

fn color(color: vt100::Color, scheme: &Scheme) -> Option<String> {
    match color {
        vt100::Color::Default => None,
        vt100::Color::Idx(index) => Some(match scheme.palette.get(usize::from(index)) {
            Some(color) => (*color).to_owned(),
            None => cube(index),
        }),
        vt100::Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    }
}

/// Returns a colour of xterm's cube of 216 colours, or one of its 24 greys.
fn cube(index: u8) -> String {
    let level = |level: u8| if level == 0 { 0 } else { 55 + 40 * level };
    let [red, green, blue] = match index {
        232.. => [8 + 10 * (index - 232); 3],
        _ => [(index - 16) / 36, (index - 16) / 6 % 6, (index - 16) % 6].map(level),
    };
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Writes tenths of a pixel.
fn px(tenths: usize) -> String {
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        tenth => format!("{}.{tenth}", tenths / 10),
    }
}
