//! The terminal's second screen, which is left in any case: at the end, at a panic, while the
//! process is stopped.

use std::{
    io::{self, Stdout, stdout},
    mem::ManuallyDrop,
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

use crossterm::{
    cursor,
    event::{DisableBracketedPaste, EnableBracketedPaste},
    execute,
    style::Print,
    terminal::{
        Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
    },
};
use ratatui::{Terminal, backend::CrosstermBackend};

use super::{state::State, view};

pub(super) struct Screen {
    /// Never dropped: it would print an error if the terminal is closed, and panic if stderr is.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    /// Opens it.
    ///
    /// # Errors
    /// The terminal can't be used.
    pub(super) fn open(is_colored: bool) -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                leave();
                before(info);
            }));
        });
        crossterm::style::force_color_output(is_colored);
        enter()?;
        Ok(Self { terminal: ManuallyDrop::new(Terminal::new(CrosstermBackend::new(stdout()))?) })
    }

    /// Draws the state.
    pub(super) fn draw(&mut self, state: &mut State) -> io::Result<()> {
        self.terminal.draw(|frame| view::draw(state, frame.area(), frame.buffer_mut())).map(drop)
    }

    /// Returns the rows of a page.
    pub(super) fn page(&self) -> usize {
        self.terminal.size().map_or(10, |size| usize::from(size.height.saturating_sub(6)).max(1))
    }

    /// Rings the bell.
    pub(super) fn ring(&self) -> io::Result<()> {
        execute!(stdout(), Print('\u{7}'))
    }

    /// Leaves the screen, and stops the process until it is continued.
    pub(super) fn suspend(&self) -> io::Result<()> {
        leave();
        #[cfg(unix)]
        rustix::process::kill_current_process_group(rustix::process::Signal::STOP)?;
        Ok(())
    }

    /// Enters the screen again.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        enter()?;
        // `clear` would ask the terminal for the cursor's position, and lose keys that are typed.
        *self.terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        execute!(stdout(), Clear(ClearType::All))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Whether the screen is open.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Leaves the screen, if it is open: before the process ends at once.
pub(crate) fn restore() {
    if IS_OPEN.load(Ordering::Relaxed) {
        leave();
    }
}

fn enter() -> io::Result<()> {
    IS_OPEN.store(true, Ordering::Relaxed);
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)
}

pub(super) fn leave() {
    IS_OPEN.store(false, Ordering::Relaxed);
    // If this fails, the terminal is closed.
    let _ = execute!(stdout(), cursor::Show, DisableBracketedPaste, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}
