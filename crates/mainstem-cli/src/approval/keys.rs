//! Answers as keys of a terminal that shows what is typed in its frame.
//!
//! Meanwhile the terminal echoes nothing and passes each key on, so that the tree can be drawn
//! while a person types. Signals work as before: raw mode would take Ctrl-C and Ctrl-Z for keys.

mod line;

use self::line::{Input, Line};

/// What was typed.
#[derive(Debug, PartialEq)]
pub(crate) enum Typed {
    /// The text has changed, and Enter was not pressed yet.
    Draft,
    /// A line.
    Line(String),
    /// Esc, while there was no text.
    Escape,
    /// Ctrl-D, while there was no text.
    End,
    /// The terminal is closed.
    Closed,
}

#[cfg(not(unix))]
pub(crate) use self::other::{Keys, Silence};
#[cfg(unix)]
pub(crate) use self::unix::{Keys, Silence};

/// Gives the terminal the mode back that it had, if [`Keys`] or [`Silence`] has changed it.
pub(crate) fn restore() {
    #[cfg(unix)]
    unix::restore();
}

/// Stops the process while the line editor has the terminal. The shell gets the mode that the
/// terminal had; once the process is continued, the editor gets its own again, and draws its line.
#[cfg(unix)]
pub(crate) fn stop_at_prompt() {
    unix::stop_at_prompt();
}

#[cfg(unix)]
mod unix {
    use std::{
        io,
        sync::{Mutex, MutexGuard, PoisonError},
        thread,
        time::Duration,
    };

    use crossterm::{
        event::{DisableBracketedPaste, EnableBracketedPaste},
        execute,
    };
    use rustix::{
        event::{PollFd, PollFlags, Timespec, poll},
        io::read,
        process::{Signal, getpid, kill_process},
        termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr},
    };
    use tokio::time::sleep;

    use super::{Input, Line, Typed};

    /// The time between two looks at the keyboard: less than a person notices.
    const PERIOD: Duration = Duration::from_millis(30);

    /// The mode to give back. The process may end on any thread.
    static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

    fn before() -> MutexGuard<'static, Option<Termios>> {
        BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until it is dropped, the terminal does not echo what is typed between two turns of a chat:
    /// the line editor shows it when it begins to read.
    #[derive(Debug)]
    pub(crate) struct Silence(());

    impl Silence {
        /// Changes the terminal's mode; `None` if stdin is not a terminal.
        pub(crate) fn start() -> Option<Self> {
            let mut mode = tcgetattr(io::stdin()).ok()?;
            before().get_or_insert_with(|| mode.clone());
            mode.local_modes -= LocalModes::ECHO;
            tcsetattr(io::stdin(), OptionalActions::Now, &mode).ok().map(|()| Self(()))
        }
    }

    impl Drop for Silence {
        fn drop(&mut self) {
            restore();
        }
    }

    pub(super) fn restore() {
        if let Some(before) = before().take() {
            let _ = execute!(io::stderr(), DisableBracketedPaste);
            // If this fails, the terminal is closed.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        }
    }

    pub(super) fn stop_at_prompt() {
        let mode = tcgetattr(io::stdin()).ok().filter(|mode| !mode.local_modes.contains(LocalModes::ICANON));
        let Some((editor, before)) = mode.zip(before().clone()) else {
            // Lines are read without an editor.
            let _ = kill_process(getpid(), Signal::STOP);
            return;
        };
        let _ = execute!(io::stdout(), DisableBracketedPaste);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        let _ = kill_process(getpid(), Signal::STOP);
        // Another thread may receive the signal, and stop this one a little later.
        thread::sleep(PERIOD);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &editor);
        let _ = execute!(io::stdout(), EnableBracketedPaste);
        let _ = kill_process(getpid(), Signal::WINCH);
    }

    /// The keyboard, until it is dropped.
    #[derive(Debug)]
    pub(crate) struct Keys {
        line: Line,
        /// The mode within a [`Silence`].
        silent: Option<Termios>,
    }

    impl Keys {
        /// Changes the terminal's mode; `None` if stdin is not a terminal.
        pub(crate) fn start() -> Option<Self> {
            let silent = before().is_some().then(|| tcgetattr(io::stdin()).ok()).flatten();
            let keys = Self { line: Line::default(), silent };
            keys.apply().then_some(keys)
        }

        /// Sets the mode, again after the process was stopped.
        pub(crate) fn apply(&self) -> bool {
            let Ok(mut mode) = tcgetattr(io::stdin()) else { return false };
            before().get_or_insert_with(|| mode.clone());
            mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            // A read returns at once.
            mode.special_codes[SpecialCodeIndex::VMIN] = 0;
            mode.special_codes[SpecialCodeIndex::VTIME] = 0;
            let _ = execute!(io::stderr(), EnableBracketedPaste);
            tcsetattr(io::stdin(), OptionalActions::Now, &mode).is_ok()
        }

        /// Returns the text that was typed since the last line.
        pub(crate) fn text(&self) -> &str {
            self.line.text()
        }

        /// Continues a text.
        pub(crate) fn begin(&mut self, text: String) {
            self.line.begin(text);
        }

        /// Takes that text, and discards what was typed behind it.
        pub(crate) fn take(&mut self) -> String {
            self.line.take_all()
        }

        /// Waits for keys. Dropping the future loses none.
        pub(crate) async fn next(&mut self) -> Typed {
            loop {
                if let Some(typed) = self.typed() {
                    return typed;
                }
                sleep(PERIOD).await;
            }
        }

        /// Takes the keys that were pressed, up to the end of a line.
        fn typed(&mut self) -> Option<Typed> {
            let mut bytes = [0; 4096];
            loop {
                match self.line.input() {
                    Some(Input::Line(line)) => return Some(Typed::Line(line)),
                    Some(Input::End) => return Some(Typed::End),
                    None => {}
                }
                if is_closed() {
                    return Some(Typed::Closed);
                }
                match read(io::stdin(), &mut bytes) {
                    Ok(0) if self.line.escape() => return Some(Typed::Escape),
                    Ok(0) => return self.line.take_change().then_some(Typed::Draft),
                    Ok(count) => self.line.push(&bytes[..count]),
                    Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return None,
                    Err(_) => return Some(Typed::Closed),
                }
            }
        }
    }

    /// Returns `true` if the terminal is closed, which a read does not say.
    fn is_closed() -> bool {
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let _ = poll(&mut fds, Some(&now));
        fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
    }

    impl Drop for Keys {
        fn drop(&mut self) {
            let Some(silent) = &self.silent else { return restore() };
            let _ = execute!(io::stderr(), DisableBracketedPaste);
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, silent);
        }
    }
}

#[cfg(not(unix))]
mod other {
    use super::Typed;

    /// A system whose terminal is left as it is.
    #[derive(Debug)]
    pub(crate) enum Silence {}

    impl Silence {
        pub(crate) fn start() -> Option<Self> {
            None
        }
    }

    /// A system whose answers are lines.
    #[derive(Debug)]
    pub(crate) enum Keys {}

    impl Keys {
        pub(crate) fn start() -> Option<Self> {
            None
        }

        pub(crate) fn apply(&self) -> bool {
            match *self {}
        }

        pub(crate) fn text(&self) -> &str {
            match *self {}
        }

        pub(crate) fn begin(&mut self, _: String) {
            match *self {}
        }

        pub(crate) fn take(&mut self) -> String {
            match *self {}
        }

        pub(crate) async fn next(&mut self) -> Typed {
            match *self {}
        }
    }
}
