//! Drawing in place: the last lines of a terminal are redrawn, lines above them are written once.
//!
//! ratatui's inline viewport is not used: it asks the terminal for the cursor's position, with a
//! query on stdout, which has the result, and in raw mode, which loses a Ctrl-C. This screen asks
//! nothing: the cursor moves up by the number of lines that were drawn last. It leaves the
//! terminal's mode as it is, so that the end of the process has nothing to restore.

use std::io::{self, Write};

use crossterm::{
    cursor::MoveUp,
    queue,
    style::{Attribute, Print, SetAttribute, SetForegroundColor},
    terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate},
};
use ratatui::{
    backend::IntoCrossterm,
    buffer::{Buffer, Cell, CellWidth},
    style::{Color, Modifier},
};

/// The part of the screen that is drawn in place. After each frame the cursor is at the start of
/// the line below it.
#[derive(Debug)]
pub(super) struct Screen<W> {
    pub(super) out: W,
    is_colored: bool,
    /// The width of each line of the last frame.
    drawn: Vec<usize>,
}

impl<W: Write> Screen<W> {
    pub(super) fn new(out: W, is_colored: bool) -> Self {
        Self { out, is_colored, drawn: Vec::new() }
    }

    /// Replaces the last frame in one write: by `notes`, which wrap and stay, and by the next one.
    pub(super) fn draw(&mut self, notes: &[String], frame: &Buffer, width: u16) {
        let mut bytes = Vec::new();
        // Writing to a vector can't fail, and an error of the terminal has no reader.
        let _ = self.compose(&mut bytes, notes, frame, width);
        let _ = self.out.write_all(&bytes).and_then(|()| self.out.flush());
    }

    /// Makes the last frame stay.
    pub(super) fn leave(&mut self) {
        self.drawn.clear();
    }

    fn compose(
        &mut self,
        bytes: &mut Vec<u8>,
        notes: &[String],
        frame: &Buffer,
        width: u16,
    ) -> io::Result<()> {
        queue!(bytes, BeginSynchronizedUpdate, Print("\r"))?;
        let up = self.lines_up(width);
        if up > 0 {
            queue!(bytes, MoveUp(up))?;
        }
        for note in notes {
            queue!(bytes, Print(note), Clear(ClearType::UntilNewLine), Print("\n"))?;
        }
        self.drawn.clear();
        self.lines(bytes, frame)?;
        queue!(bytes, Clear(ClearType::FromCursorDown), EndSynchronizedUpdate)
    }

    /// Returns the lines that the last frame takes now: in a narrower terminal, lines wrap.
    fn lines_up(&self, width: u16) -> u16 {
        let width = usize::from(width.max(1));
        let lines: usize = self.drawn.iter().map(|drawn| drawn.div_ceil(width).max(1)).sum();
        u16::try_from(lines).unwrap_or(u16::MAX)
    }

    fn lines(&mut self, bytes: &mut Vec<u8>, frame: &Buffer) -> io::Result<()> {
        for cells in frame.content.chunks(usize::from(frame.area.width.max(1))) {
            let end = cells.iter().rposition(|cell| cell.symbol() != " ").map_or(0, |last| last + 1);
            self.cells(bytes, &cells[..end])?;
            queue!(bytes, Clear(ClearType::UntilNewLine), Print("\n"))?;
            self.drawn.push(end);
        }
        Ok(())
    }

    fn cells(&self, bytes: &mut Vec<u8>, mut cells: &[Cell]) -> io::Result<()> {
        let plain = (Color::Reset, Modifier::empty());
        let mut style = plain;
        while let Some(cell) = cells.first() {
            if (cell.fg, cell.modifier) != style {
                style = (cell.fg, cell.modifier);
                self.style(bytes, style)?;
            }
            queue!(bytes, Print(cell.symbol()))?;
            // A wide character covers the cells behind it.
            let covered = usize::from(cell.cell_width().max(1));
            cells = &cells[covered.min(cells.len())..];
        }
        if style != plain { self.style(bytes, plain) } else { Ok(()) }
    }

    fn style(&self, bytes: &mut Vec<u8>, (color, modifier): (Color, Modifier)) -> io::Result<()> {
        if !self.is_colored {
            return Ok(());
        }
        queue!(bytes, SetAttribute(Attribute::Reset))?;
        let attributes = [
            (Modifier::BOLD, Attribute::Bold),
            (Modifier::DIM, Attribute::Dim),
            (Modifier::ITALIC, Attribute::Italic),
            (Modifier::UNDERLINED, Attribute::Underlined),
            (Modifier::CROSSED_OUT, Attribute::CrossedOut),
        ];
        for (flag, attribute) in attributes {
            if modifier.contains(flag) {
                queue!(bytes, SetAttribute(attribute))?;
            }
        }
        if color == Color::Reset { Ok(()) } else { queue!(bytes, SetForegroundColor(color.into_crossterm())) }
    }
}

#[cfg(test)]
mod tests;
