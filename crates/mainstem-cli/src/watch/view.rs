//! The screen of a state: the tree, the selected agent's transcript, and the position. Pure.

use std::{collections::HashSet, iter::repeat};

use mainstem_event::{FleetState, Timestamp, fleet::AgentState};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style, Stylize},
    text::{Line, Span},
};

use super::state::{Prompt, State, Typing};
use crate::{
    approval::{Kind, Row as QuestionRow},
    fold::wrapped,
    progress::{
        figures,
        live::view::{View, widest_of},
    },
};

/// The narrowest screen with both the tree and the transcript.
const BOTH: u16 = 72;

/// The keys, and what they do.
const KEYS: [(&str, &str); 15] = [
    ("↑ ↓", "select an agent"),
    ("PgUp PgDn", "scroll its transcript"),
    ("Tab Enter", "tree or transcript, on a narrow screen"),
    ("← →  < >", "back and forth: 1 %, 10 %"),
    (",  .", "back and forth: one event"),
    ("space", "play, or pause"),
    ("+ -", "speed"),
    ("0  l", "to the beginning; live, or to the end"),
    ("/", "only agents with a text; Esc shows all"),
    ("y  n", "allow, or deny, what is asked"),
    ("v", "all of the question, or its beginning"),
    ("m", "send the agent a message"),
    ("c", "stop a child and those below it"),
    ("w", "announce the agent's end"),
    ("q  Esc", "leave; Esc first shows all agents"),
];

/// Draws the state.
pub(super) fn draw(state: &mut State, area: Rect, buffer: &mut Buffer) {
    buffer.reset();
    if area.height < 3 || area.width < 8 {
        return;
    }
    let width = area.width;
    let question = question(state, width, area.height);
    let below = 2 + u16::try_from(question.len()).unwrap_or(0);
    let middle = Rect { y: area.y + 1, height: area.height.saturating_sub(1 + below), ..area };
    buffer.set_line(area.x, area.y, &head(state, width), width);
    if let Some(first) = state.help {
        let help = help(state, width.into());
        // The last rows stay in sight.
        let first = first.min(help.len().saturating_sub(middle.height.into()));
        state.help = Some(first);
        lines(&help[first..], middle, buffer);
    } else if width >= BOTH {
        let left = width * 9 / 20;
        let tree_area = Rect { width: left, ..middle };
        let rest = Rect { x: middle.x + left + 2, width: width - left - 2, ..middle };
        tree(state, tree_area, buffer);
        for y in middle.top()..middle.bottom() {
            buffer.set_line(middle.x + left, y, &Line::from(state.glyphs.quote).dim(), 1);
        }
        transcript(state, rest, buffer);
    } else if state.is_transcript {
        transcript(state, middle, buffer);
    } else {
        tree(state, middle, buffer);
    }
    let below = question.into_iter().chain([bar(state, width), status(state, width)]);
    for (y, line) in (middle.bottom()..area.bottom()).zip(below) {
        buffer.set_line(area.x, y, &line, width);
    }
}

/// Returns the title and the totals.
fn head(state: &State, width: u16) -> Line<'static> {
    let elapsed = state.film.times().map_or(0, |(now, first)| now.millis_since(first));
    let totals: Vec<_> = state.film.tree().totals().into_iter().chain([figures::clock(elapsed)]).collect();
    let view = View { glyphs: state.glyphs, width, widest: 0, has_tokens: true, elapsed };
    let mark = state.film.tree().outcome().map_or("+", |outcome| state.glyphs.ending(outcome).0);
    view.head(mark, &state.title, &totals.join(state.glyphs.dot))
}

fn tree(state: &State, area: Rect, buffer: &mut Buffer) {
    let rows = state.rows();
    let elapsed = state.film.times().map_or(0, |(now, first)| now.millis_since(first));
    let view = View {
        glyphs: state.glyphs,
        width: area.width,
        widest: widest_of(&rows),
        has_tokens: false,
        elapsed,
    };
    let selected = rows.iter().position(|row| row.key == state.selected);
    let height = usize::from(area.height);
    // The selected agent stays visible.
    let first = selected.map_or(0, |at| (at + 1).saturating_sub(height));
    for (y, (index, row)) in (area.top()..area.bottom()).zip(rows.iter().enumerate().skip(first)) {
        buffer.set_line(area.x, y, &view.row(row), area.width);
        if Some(index) == selected {
            let line = Rect { y, height: 1, ..area };
            buffer.set_style(line, Style::new().add_modifier(Modifier::REVERSED));
        }
    }
    if rows.is_empty() {
        let why = if state.filter.is_empty() { "no events yet" } else { "no agent has this text" };
        buffer.set_line(area.x + 1, area.y, &Line::from(why).dim(), area.width.saturating_sub(1));
    }
}

fn transcript(state: &mut State, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    buffer.set_line(area.x, area.y, &about(state, area.width.into()), area.width);
    let area = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let (glyphs, scroll, height) = (state.glyphs, state.scroll, usize::from(area.height));
    let all = state.transcript().lines(usize::from(area.width), glyphs);
    // The empty line behind the last part.
    let count = all.len().saturating_sub(1);
    state.scroll = scroll.min(count.saturating_sub(height));
    let last = count - state.scroll;
    lines(&all[last.saturating_sub(height)..last], area, buffer);
}

/// Returns the selected agent's name, and as many of its figures as have room.
fn about(state: &State, width: usize) -> Line<'static> {
    let fleet = state.film.tree().fleet();
    let Some(agent) = fleet.agents.iter().find(|agent| agent.key() == state.selected.as_ref()) else {
        return Line::default();
    };
    let below = below(agent, fleet);
    let sum = below.iter().map(|other| other.usage.total_tokens()).sum::<u64>() + agent.usage.total_tokens();
    let with = || format!("{} with {} below", figures::tokens(sum), below.len());
    let figures = [
        Some(figures::tokens(agent.usage.total_tokens())),
        (!below.is_empty()).then(with),
        state.film.tree().cost_of(agent.key()).map(figures::cost),
        agent.context.map(|context| format!("{}% full", context.percent())),
        agent.model.as_ref().map(ToString::to_string),
    ];
    let row = state.film.tree().row_of(agent);
    let about = if row.name.about.is_empty() { String::new() } else { format!(" {}", row.name.about) };
    let mut line = Line::from(format!("{}{about}", row.name.id).bold());
    for figure in figures.into_iter().flatten() {
        let figure = format!("{}{figure}", state.glyphs.dot).dim();
        if line.width() + figure.width() <= width {
            line.push_span(figure);
        }
    }
    line
}

/// Returns the agents below an agent. A parent is known before its children.
fn below<'a>(agent: &'a AgentState, fleet: &'a FleetState) -> Vec<&'a AgentState> {
    let Some(source) = &agent.source else {
        return fleet.agents.iter().filter(|other| other.source.is_some()).collect();
    };
    let mut sessions = HashSet::from([&source.session_id]);
    let mut below = Vec::new();
    for other in &fleet.agents {
        if let Some(source) = &other.source
            && sessions.contains(&source.parent_session_id)
            && sessions.insert(&source.session_id)
        {
            below.push(other);
        }
    }
    below
}

/// Returns the rows of the open question.
fn question(state: &State, width: u16, height: u16) -> Vec<Line<'static>> {
    let Some((_, question)) = state.questions.front().filter(|_| state.is_live) else { return Vec::new() };
    let rows = question.rows(usize::from(width), if state.is_expanded { usize::MAX } else { 6 });
    let row = |QuestionRow { text, kind }: QuestionRow| {
        let line = Line::from(state.glyphs.text(&text));
        match kind {
            Kind::Head => line.yellow().bold(),
            Kind::Added => line.green(),
            Kind::Removed => line.red(),
            Kind::Plain | Kind::Hint => line,
        }
    };
    // The head of the screen, the bar and the keys need a line each.
    let room = usize::from(height.saturating_sub(4));
    rows.into_iter()
        .take(room)
        .map(row)
        .chain([Line::from("  y: allow · n: deny · v: all of it").dim()])
        .collect()
}

/// Returns the bar with the position.
fn bar(state: &State, width: u16) -> Line<'static> {
    let (at, len) = (state.film.at(), state.film.len());
    let mode = match (state.is_live, state.is_playing) {
        (true, _) => "live".to_owned(),
        (false, true) => format!("{}x", state.speed()),
        (false, false) if at == len => "end".to_owned(),
        (false, false) => "paused".to_owned(),
    };
    let time = state.film.times().map_or_else(String::new, |(now, _)| time_of_day(now));
    let counts = format!(" {at}/{len} {time} {mode}");
    let room = usize::from(width).saturating_sub(counts.chars().count() + 1);
    let done = (room * at).checked_div(len).unwrap_or(0);
    let (full, empty) = if state.glyphs.quote == "|" { ("=", "-") } else { ("━", "─") };
    let (full, empty) = (full.repeat(done), empty.repeat(room - done));
    Line::from(vec![Span::from(full).cyan(), Span::from(empty).dim(), Span::from(counts)])
}

/// Returns what is typed, the last note, why no event arrives, or the keys.
fn status(state: &State, width: u16) -> Line<'static> {
    if let Some(Prompt { what, text }) = &state.prompt {
        let what = match what {
            Typing::Filter => "filter".to_owned(),
            Typing::Message(key) => format!("message to {}", state.name(key)),
            Typing::Allow(_) => "run it? Enter: yes, Esc: no".to_owned(),
            Typing::Reason(_) => "why not (Enter for no reason)".to_owned(),
            Typing::Cancel(key) => {
                format!("stop {} and those below it? Enter: yes, Esc: no", state.name(key))
            }
        };
        let line = state.glyphs.text(&format!("{what}: {text}_"));
        // The end is what is typed.
        let cells = |line: &str| Span::raw(line.to_owned()).width();
        let starts = line.char_indices().map(|(at, _)| at);
        let shown = starts.map(|at| &line[at..]).find(|rest| cells(rest) <= usize::from(width));
        return Line::from(shown.unwrap_or_default().to_owned());
    }
    if !state.note.is_empty() {
        return Line::from(state.glyphs.line(&state.note)).yellow();
    }
    if state.help.is_some() {
        return Line::from("PgUp PgDn: all keys  others: back").dim();
    }
    if let Some(stall) = &state.stall {
        return Line::from(state.glyphs.line(stall)).red();
    }
    let keys = if width < BOTH {
        "arrows  Tab  space  ? keys  q"
    } else {
        "↑↓ agent  ←→ time  space play  +- speed  l live  / filter  ? all keys  q leave"
    };
    Line::from(state.glyphs.text(keys)).dim()
}

/// The columns of the keys.
const KEY_WIDTH: usize = 12;

/// Returns the keys with what they do, in rows of this width.
fn help(state: &State, width: usize) -> Vec<Line<'static>> {
    let rows = |(key, does): (&str, &str)| {
        let does = wrapped(does, width.saturating_sub(KEY_WIDTH + 1).max(1));
        let keys = [state.glyphs.text(key)].into_iter().chain(repeat(String::new()));
        let row = |(key, does): (String, String)| {
            Line::from(vec![Span::from(format!(" {key:<KEY_WIDTH$}")).bold(), Span::from(does)])
        };
        keys.zip(does).map(row).collect::<Vec<_>>()
    };
    KEYS.into_iter().flat_map(rows).collect()
}

fn lines(lines: &[Line<'_>], area: Rect, buffer: &mut Buffer) {
    for (y, line) in (area.top()..area.bottom()).zip(lines) {
        buffer.set_line(area.x, y, line, area.width);
    }
}

/// Returns the time of day (UTC), such as `20:57:03`.
fn time_of_day(at: Timestamp) -> String {
    at.to_string().chars().skip("2026-11-25T".len()).take("20:57:03".len()).collect()
}
