//! The demo on an emulated terminal: its screen, and the lines that have scrolled away.

use std::cell::Cell;

use super::*;
use crate::progress::fixture;

thread_local! {
    static SIZE: Cell<Size> = const { Cell::new((80, 24)) };
}

/// A terminal in cooked mode, where a line feed also returns.
struct Terminal(vt100::Parser);

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(line) => self.0.process(&[line, b"\r\n"].concat()),
                None => self.0.process(piece),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Terminal {
    fn new((width, height): Size) -> Self {
        SIZE.set((width, height));
        let [rows, columns] = [height, width].map(|size| size.try_into().unwrap());
        let mut terminal = Self(vt100::Parser::new(rows, columns, 1_000));
        terminal.0.process(b"$ mainstem run\r\n");
        terminal
    }

    fn screen(&self) -> String {
        self.0.screen().contents()
    }

    /// Returns all lines, from the first that scrolled away.
    fn all(&mut self) -> String {
        let mut rows = Vec::new();
        self.0.screen_mut().set_scrollback(usize::MAX);
        let above = self.0.screen().scrollback();
        for offset in (1..=above).rev() {
            self.0.screen_mut().set_scrollback(offset);
            rows.extend(self.0.screen().rows(0, u16::MAX).next());
        }
        self.0.screen_mut().set_scrollback(0);
        rows.extend(self.0.screen().rows(0, u16::MAX));
        rows.join("\n").trim_end().to_owned()
    }
}

/// Plays the demo; returns the screen at these seconds, and all lines at its end.
fn demo(size: Size, glyphs: Glyphs, at: &[u64]) -> String {
    let mut live = Live::new(Terminal::new(size), glyphs, false, "Review\u{1b}[2J it", || SIZE.get());
    live.note("a note");
    let (mut at, mut shots, mut start, mut last) =
        (at.iter().peekable(), String::new(), None, Timestamp::default());
    fixture::play(|event, now| {
        last = now;
        let elapsed = now.millis_since(*start.get_or_insert(now));
        match event {
            Some(event) => live.event(event),
            None => live.tick(now),
        }
        if at.peek().is_some_and(|at| elapsed >= **at * 1000) {
            live.tick(now);
            shots += &format!("--- {} s\n{}\n", at.next().unwrap(), live.screen.out.screen());
        }
    });
    live.finish(last);
    shots + "--- end\n" + &live.screen.out.all()
}

#[test]
fn the_demo() {
    insta::assert_snapshot!(demo((80, 24), Glyphs::UNICODE, &[1, 3, 6, 11]));
}

#[test]
fn the_demo_on_a_short_and_narrow_terminal() {
    insta::assert_snapshot!(demo((44, 8), Glyphs::ASCII, &[3, 6]));
}

#[test]
fn each_agent_that_ended_stays_once_at_any_size() {
    for size in [(200, 50), (80, 24), (80, 5), (33, 9), (20, 4), (8, 3)] {
        let end = demo(size, Glyphs::UNICODE, &[]);
        assert_eq!(end.matches('✔').count(), 7, "{size:?}\n{end}");
        assert!(!end.contains('⠋') && !end.contains("more running"), "{size:?}\n{end}");
    }
}
