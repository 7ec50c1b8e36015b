//! Answers as keys of a terminal that shows what is typed in its frame.
//!
//! Meanwhile the terminal echoes nothing and passes each key on, so that the tree can be drawn
//! while a person types. Signals work as before: raw mode would take Ctrl-C and Ctrl-Z for keys.

/// The longest answer, in bytes.
#[cfg(unix)]
const MAX_BYTES: usize = 64 * 1024;

/// What was typed.
#[derive(Debug, PartialEq)]
pub(crate) enum Typed {
    /// The text has changed, and Enter was not pressed yet.
    Draft,
    /// A line.
    Line(String),
    /// Esc, while there was no text.
    Escape,
    /// The terminal is closed.
    End,
}

#[cfg(not(unix))]
pub(super) use self::other::Keys;
#[cfg(unix)]
pub(super) use self::unix::Keys;

/// Gives the terminal the mode back that it had, if [`Keys`] has changed it.
pub(crate) fn restore() {
    #[cfg(unix)]
    unix::restore();
}

#[cfg(unix)]
mod unix {
    use std::{
        io,
        sync::{Mutex, PoisonError},
        time::Duration,
    };

    use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
    use tokio::time::sleep;

    use super::{MAX_BYTES, Typed};

    /// The time between two looks at the keyboard: less than a person notices.
    const PERIOD: Duration = Duration::from_millis(30);

    /// The mode to give back. The process may end on any thread.
    static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

    pub(super) fn restore() {
        if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A terminal that is closed needs no mode.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        }
    }

    /// The keyboard, until it is dropped.
    #[derive(Debug)]
    pub(crate) struct Keys {
        text: String,
    }

    impl Keys {
        /// Changes the terminal's mode; `None` if stdin is not a terminal.
        pub(crate) fn start() -> Option<Self> {
            let keys = Self { text: String::new() };
            keys.apply().then_some(keys)
        }

        /// Sets the mode, again after the process was stopped.
        pub(crate) fn apply(&self) -> bool {
            let Ok(mut mode) = tcgetattr(io::stdin()) else { return false };
            BEFORE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| mode.clone());
            mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            tcsetattr(io::stdin(), OptionalActions::Now, &mode).is_ok()
        }

        /// Returns the text that was typed since the last line.
        pub(crate) fn text(&self) -> &str {
            &self.text
        }

        /// Continues a text.
        pub(crate) fn begin(&mut self, text: String) {
            self.text = text;
        }

        /// Takes that text.
        pub(crate) fn take(&mut self) -> String {
            std::mem::take(&mut self.text)
        }

        /// Discards what was typed.
        pub(crate) fn clear(&mut self) {
            // Keys that are parsed wait in the library.
            while poll(Duration::ZERO).is_ok_and(|is_there| is_there && read().is_ok()) {}
            self.text.clear();
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

        /// Takes the keys that were pressed.
        fn typed(&mut self) -> Option<Typed> {
            let mut draft = None;
            loop {
                let event = match poll(Duration::ZERO) {
                    Ok(false) => return draft,
                    Ok(true) => read(),
                    Err(error) => Err(error),
                };
                let Ok(event) = event else { return Some(Typed::End) };
                match self.event(event) {
                    Some(Typed::Draft) => draft = Some(Typed::Draft),
                    Some(other) => return Some(other),
                    None => {}
                }
            }
        }

        fn event(&mut self, event: Event) -> Option<Typed> {
            match event {
                Event::Key(KeyEvent { kind: KeyEventKind::Release, .. }) => return None,
                Event::Key(key) => match (key.code, key.modifiers) {
                    (KeyCode::Enter, _) => return Some(Typed::Line(std::mem::take(&mut self.text))),
                    (KeyCode::Char('d'), KeyModifiers::CONTROL) if self.text.is_empty() => {
                        return Some(Typed::Line("n".to_owned()));
                    }
                    (KeyCode::Esc, _) if self.text.is_empty() => return Some(Typed::Escape),
                    (KeyCode::Char('u'), KeyModifiers::CONTROL) | (KeyCode::Esc, _) => self.text.clear(),
                    (KeyCode::Char('w'), KeyModifiers::CONTROL) => {
                        let end = self.text.trim_end().rfind(char::is_whitespace).map_or(0, |at| at + 1);
                        self.text.truncate(end);
                    }
                    (KeyCode::Backspace, _) => _ = self.text.pop(),
                    (KeyCode::Char(c), modifiers)
                        if !modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) =>
                    {
                        if self.text.len() < MAX_BYTES {
                            self.text.push(c);
                        }
                    }
                    _ => return None,
                },
                Event::Resize(..) => {}
                _ => return None,
            }
            Some(Typed::Draft)
        }
    }

    impl Drop for Keys {
        fn drop(&mut self) {
            restore();
        }
    }
}

#[cfg(not(unix))]
mod other {
    use super::Typed;

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

        pub(crate) fn clear(&mut self) {
            match *self {}
        }

        pub(crate) async fn next(&mut self) -> Typed {
            match *self {}
        }
    }
}
