//! What stderr shows during a run.

mod aside;
pub(crate) mod figures;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod glyphs;
pub(crate) mod live;
pub(crate) mod names;
mod plain;

use std::{
    io::{self, Write},
    time::Duration,
};

use mainstem_event::{AgentEvent, EventKind, Timestamp};
use tokio::time::{Interval, MissedTickBehavior, interval};

pub(crate) use self::{
    aside::PutAside,
    figures::{agents, cost, tokens},
    live::Live,
};
use self::{glyphs::Glyphs, plain::Plain};
use crate::{
    approval::{Question, Row, SHOWN},
    args::{Format, Mode},
    sanitize,
    terminal::Terminal,
};

/// The note on a recorded event that can't be read.
pub(crate) fn damage(event: &AgentEvent) -> Option<String> {
    let EventKind::Gap { from_seq, reason: Some(reason), .. } = &event.kind else { return None };
    Some(format!("warning: event {from_seq} can't be read: {reason}"))
}

/// Shows the progress of a run. If stderr can't be written to, nothing is shown and nothing fails.
pub(crate) trait Progress {
    /// Applies an event.
    fn event(&mut self, event: &AgentEvent);

    /// Shows what is due; called ten times a second.
    fn tick(&mut self, now: Timestamp);

    /// Shows a note that is not about a single agent.
    fn note(&mut self, text: &str);

    /// Begins a new line on a terminal that has echoed a key, such as `^C`.
    fn below_echo(&mut self) {}

    /// Shows a question, with what is typed below it; `None` if there is none any longer.
    fn ask(&mut self, question: Option<&Question>, _typed: &str) {
        if let Some(question) = question {
            self.note(&text(&question.lines(live::size_of_stderr().0.into(), SHOWN)));
        }
    }

    /// Shows all of what a question asks.
    fn view(&mut self, question: &Question) {
        self.note(&text(&question.all_lines(live::size_of_stderr().0.into())));
    }

    /// Returns `true` if a question and what is typed are drawn in a frame; then the terminal must
    /// not echo.
    fn draws_typed(&self) -> bool {
        false
    }

    /// Draws below what is there, after the process was stopped and continued.
    fn continued(&mut self) {}

    /// Shows the rest, at the end of the run.
    fn finish(&mut self, now: Timestamp);
}

fn text(lines: &[Row]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| &*line.text).collect();
    lines.join("\n")
}

/// The shortest time between two frames.
const FRAME: Duration = Duration::from_millis(100);

/// Returns the size of the terminal at stderr.
pub(crate) fn size() -> (u16, u16) {
    live::size_of_stderr()
}

/// Returns the times to call [`Progress::tick`] at.
pub(crate) fn frames() -> Interval {
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    frames
}

/// Returns the progress of a run of this prompt on stderr, beside a result of this form; shows a
/// note if the requested mode is not possible.
pub(crate) fn on_stderr(
    terminal: Terminal,
    requested: Mode,
    format: Format,
    prompt: &str,
) -> Box<dyn Progress> {
    let (mode, objection) = terminal.mode(requested, format);
    let mut progress = in_mode(mode, terminal, prompt);
    objection.into_iter().for_each(|objection| progress.note(&format!("warning: {objection}")));
    progress
}

/// Returns the progress of a session's next run, beside text and without the note.
pub(crate) fn again_on_stderr(terminal: Terminal, requested: Mode, prompt: &str) -> Box<dyn Progress> {
    in_mode(terminal.mode(requested, Format::Text).0, terminal, prompt)
}

fn in_mode(mode: Mode, terminal: Terminal, prompt: &str) -> Box<dyn Progress> {
    let stderr: Box<dyn Write> = Box::new(io::stderr());
    let glyphs = if terminal.ascii { Glyphs::ASCII } else { Glyphs::UNICODE };
    match mode {
        Mode::Quiet => Box::new(Quiet(stderr, glyphs)),
        Mode::Plain => Box::new(Plain::new(stderr, glyphs, terminal.color)),
        Mode::Live | Mode::Auto => {
            let live = Live::new(stderr, glyphs, terminal.color, prompt, live::size_of_stderr);
            Box::new(live.with_markdown(terminal.markdown))
        }
    }
}

/// Returns progress as lines on stderr, each with its time.
pub(crate) fn verbose(terminal: Terminal) -> Box<dyn Progress> {
    Box::new(lines(io::stderr(), terminal).with_times(true))
}

/// Returns what has happened as lines on stdout, each with its time.
pub(crate) fn log(terminal: Terminal) -> impl Progress {
    lines(io::stdout(), Terminal { color: terminal.color && terminal.stdout, ..terminal }).with_times(true)
}

fn lines<W: Write>(out: W, terminal: Terminal) -> Plain<W> {
    let glyphs = if terminal.ascii { Glyphs::ASCII } else { Glyphs::UNICODE };
    Plain::new(out, glyphs, terminal.color)
}

/// Prints a line on stderr after the progress.
pub(crate) fn say(text: &str, terminal: Terminal) {
    let text = sanitize::clean(text);
    let text = if terminal.ascii { sanitize::ascii(&text) } else { text };
    // stderr may be closed.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints a line on the person's screen, wherever stderr goes; on stderr without a screen.
pub(crate) fn say_on_screen(text: &str, terminal: Terminal) {
    if terminal.stderr || !on_screen(text) {
        say(text, terminal);
    }
}

/// Prints a line on the terminal of the process; returns `false` if it has none.
pub(crate) fn on_screen(text: &str) -> bool {
    let screen = cfg!(unix).then(|| std::fs::File::options().write(true).open("/dev/tty"));
    screen.is_some_and(|screen| {
        screen.is_ok_and(|mut screen| writeln!(screen, "{}", sanitize::clean(text)).is_ok())
    })
}

/// Prints the prompt that a person types after.
pub(crate) fn prompt(text: &str) {
    let mut stderr = io::stderr();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Shows notes only.
struct Quiet<W>(W, Glyphs);

impl<W: Write> Progress for Quiet<W> {
    fn event(&mut self, _: &AgentEvent) {}

    fn tick(&mut self, _: Timestamp) {}

    fn note(&mut self, text: &str) {
        let _ = writeln!(self.0, "{}", self.1.text(text));
    }

    fn below_echo(&mut self) {
        let _ = writeln!(self.0);
    }

    fn finish(&mut self, _: Timestamp) {}
}
