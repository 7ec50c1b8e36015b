//! The line editor of a chat at a terminal: history, completion, several lines.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::mpsc as requests,
    thread,
};

use rustyline::{
    Cmd, CompletionType, Config, Context, Editor as Lines, EventHandler, Helper, KeyCode, KeyEvent,
    Modifiers,
    completion::{Completer, FilenameCompleter, Pair},
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::FileHistory,
    validate::Validator,
};
#[cfg(unix)]
use rustyline::{ConditionalEventHandler, Event, EventContext, RepeatCount};
use tokio::sync::mpsc;

use super::command::COMMANDS;
use crate::approval::Silence;
#[cfg(unix)]
use crate::approval::stop_at_prompt;

/// The most lines of the history.
const HISTORY: usize = 1_000;

/// How long a key may follow Esc to be one with it, in milliseconds.
const ESCAPE: u16 = 200;

/// What a person has entered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// One line or several.
    Text(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the terminal is gone.
    End,
}

/// The editor, on a thread of its own. Dropping it gives the terminal its mode back, also while a
/// line is edited.
pub(super) struct Editor {
    requests: requests::Sender<String>,
    entries: mpsc::Receiver<Entry>,
    is_asked: bool,
    /// While the editor does not read.
    silence: Option<Silence>,
}

impl Editor {
    /// Starts the editor, whose history is kept in a file, if one is given.
    ///
    /// # Errors
    /// The system refuses a thread, or the terminal can't be used.
    pub(super) fn start(history: Option<PathBuf>) -> anyhow::Result<Self> {
        let silence = Silence::start();
        let mut lines = lines()?;
        if let Some(history) = &history {
            // There is none before the first chat.
            let _ = lines.load_history(history);
        }
        let (requests, asked) = requests::channel::<String>();
        let (sender, entries) = mpsc::channel(1);
        thread::Builder::new().name("editor".to_owned()).spawn(move || {
            while let Ok(begun) = asked.recv() {
                let entry = entry(&mut lines, &begun, history.as_deref());
                if sender.blocking_send(entry).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { requests, entries, is_asked: false, silence })
    }

    /// Returns what is entered next, after a begun line, which it takes. If the future is dropped,
    /// the editor continues, and the next call returns it.
    pub(super) async fn entry(&mut self, begun: &mut String) -> Entry {
        if !self.is_asked {
            self.is_asked = self.requests.send(std::mem::take(begun)).is_ok();
        }
        let entry = self.entries.recv().await.unwrap_or(Entry::End);
        self.is_asked = false;
        entry
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // The thread may be in the middle of a line, with the terminal in raw mode.
        if self.silence.take().is_some() && self.is_asked {
            // It has asked the terminal to mark pasted text, and has left the cursor in the line.
            let _ = io::stdout().write_all(b"\x1b[?2004l\n").and_then(|()| io::stdout().flush());
        }
    }
}

fn lines() -> rustyline::Result<Lines<Keys, FileHistory>> {
    let config = Config::builder()
        .max_history_size(HISTORY)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .auto_add_history(false)
        // A menu below the line, with what each command does.
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        // Esc alone must not take the next key.
        .keyseq_timeout(Some(ESCAPE))
        .build();
    let mut lines = Lines::with_config(config)?;
    lines.set_helper(Some(Keys { files: FilenameCompleter::new() }));
    let newline = EventHandler::Simple(Cmd::Newline);
    lines.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), newline);
    #[cfg(unix)]
    lines.bind_sequence(KeyEvent::ctrl('Z'), EventHandler::Conditional(Box::new(Stop)));
    Ok(lines)
}

/// Stops the process at once: rustyline sends SIGTSTP, which this process handles, so that it would
/// not stop.
#[cfg(unix)]
struct Stop;

#[cfg(unix)]
impl ConditionalEventHandler for Stop {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        stop_at_prompt();
        Some(Cmd::Repaint)
    }
}

fn entry(lines: &mut Lines<Keys, FileHistory>, begun: &str, history: Option<&Path>) -> Entry {
    match lines.readline_with_initial("> ", (begun, "")) {
        Ok(text) => {
            if !text.trim().is_empty() && lines.add_history_entry(&text).unwrap_or(false) {
                // If the history can't be written, the chat continues.
                let _ = history.map(|history| lines.append_history(history));
            }
            Entry::Text(text)
        }
        Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => Entry::Interrupt,
        Err(_) => Entry::End,
    }
}

/// Completes commands and the names of files to attach.
struct Keys {
    files: FilenameCompleter,
}

impl Helper for Keys {}

impl Completer for Keys {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        if line.starts_with("/attach ") {
            return self.files.complete(line, at, context);
        }
        let word = line[..at].rfind(char::is_whitespace).map_or(0, |blank| blank + 1);
        if line[word..at].starts_with('@') {
            // The library looks for a name behind a blank.
            let name = format!(" {}", &line[word + 1..at]);
            let (start, found) = self.files.complete(&name, name.len(), context)?;
            return Ok((word + start, found));
        }
        Ok((0, commands(&line[..at])))
    }
}

/// Returns the commands that begin like this.
fn commands(begun: &str) -> Vec<Pair> {
    let fits = COMMANDS.iter().filter(|(name, _)| begun.starts_with('/') && name.starts_with(begun));
    fits.map(|(name, does)| Pair { display: format!("{name:<10}{does}"), replacement: (*name).to_owned() })
        .collect()
}

impl Hinter for Keys {
    type Hint = String;
}

impl Highlighter for Keys {}

impl Validator for Keys {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_completed() {
        let check = |begun: &str, expected: &[&str]| {
            let found = commands(begun);
            assert_eq!(found.iter().map(|pair| &*pair.replacement).collect::<Vec<_>>(), expected, "{begun}");
        };
        check("/he", &["/help"]);
        check("/a", &["/agents", "/attach"]);
        check("he", &[]);
        check("/nope", &[]);
        assert_eq!(commands("/").len(), COMMANDS.len());
    }
}
