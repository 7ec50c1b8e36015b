//! What stderr shows while a run goes on.

mod figures;
#[cfg(test)]
mod fixture;
mod glyphs;
mod live;
mod names;
mod plain;

use std::{
    io::{self, Write},
    time::Duration,
};

use mainstem_event::{AgentEvent, EventKind, Timestamp};
use tokio::time::{Interval, MissedTickBehavior, interval};

pub(crate) use self::live::Live;
use self::{glyphs::Glyphs, plain::Plain};
use crate::{
    args::{Format, Mode},
    sanitize,
    terminal::Terminal,
};

/// What to say of an event that is recorded and can't be read.
pub(crate) fn damage(event: &AgentEvent) -> Option<String> {
    let EventKind::Gap { from_seq, reason: Some(reason), .. } = &event.kind else { return None };
    Some(format!("warning: event {from_seq} can't be read: {reason}"))
}

/// Shows what goes on. Where stderr can't be written to, nothing is shown and nothing fails.
pub(crate) trait Progress {
    /// Takes in what happened.
    fn event(&mut self, event: &AgentEvent);

    /// Shows what is due; called ten times a second.
    fn tick(&mut self, now: Timestamp);

    /// Says something that is not about one agent.
    fn note(&mut self, text: &str);

    /// Puts a question, below which a person types.
    fn ask(&mut self, text: &str) {
        self.note(text);
    }

    /// Shows what is left; nothing more comes.
    fn finish(&mut self, now: Timestamp);
}

/// How often progress is redrawn at most.
const FRAME: Duration = Duration::from_millis(100);

/// When to call [`Progress::tick`].
pub(crate) fn frames() -> Interval {
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    frames
}

/// Progress on stderr as it is asked for, or else with a note that it is not, of a run of this
/// prompt beside a result of this form.
pub(crate) fn on_stderr(terminal: Terminal, asked: Mode, format: Format, prompt: &str) -> Box<dyn Progress> {
    let (mode, objection) = terminal.mode(asked, format);
    let mut progress = in_mode(mode, terminal, prompt);
    objection.into_iter().for_each(|objection| progress.note(&format!("warning: {objection}")));
    progress
}

/// Returns the progress of a session's next run, beside text and without the note.
pub(crate) fn again_on_stderr(terminal: Terminal, asked: Mode, prompt: &str) -> Box<dyn Progress> {
    in_mode(terminal.mode(asked, Format::Text).0, terminal, prompt)
}

fn in_mode(mode: Mode, terminal: Terminal, prompt: &str) -> Box<dyn Progress> {
    let stderr: Box<dyn Write> = Box::new(io::stderr());
    let glyphs = if terminal.ascii { Glyphs::ASCII } else { Glyphs::UNICODE };
    match mode {
        Mode::Quiet => Box::new(Quiet(stderr, glyphs)),
        Mode::Plain => Box::new(Plain::new(stderr, glyphs, terminal.color)),
        Mode::Live | Mode::Auto => {
            Box::new(Live::new(stderr, glyphs, terminal.color, prompt, live::size_of_stderr))
        }
    }
}

/// Says something on stderr when progress is over.
pub(crate) fn say(text: &str, terminal: Terminal) {
    let text = sanitize::clean(text);
    let text = if terminal.ascii { sanitize::ascii(&text) } else { text };
    // Who closed stderr wanted no more.
    let _ = writeln!(io::stderr(), "{text}");
}

/// What a person types behind.
pub(crate) fn prompt(text: &str) {
    let mut stderr = io::stderr();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Only notes.
struct Quiet<W>(W, Glyphs);

impl<W: Write> Progress for Quiet<W> {
    fn event(&mut self, _: &AgentEvent) {}

    fn tick(&mut self, _: Timestamp) {}

    fn note(&mut self, text: &str) {
        let _ = writeln!(self.0, "{}", self.1.text(text));
    }

    fn finish(&mut self, _: Timestamp) {}
}
