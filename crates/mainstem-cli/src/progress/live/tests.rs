//! The demo on an emulated terminal: its screen, and the lines that have scrolled away.

use std::{cell::Cell, sync::Arc};

use mainstem_event::{EventKind, Origin};

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
    let mut live = Live::new(Terminal::new(size), glyphs, false, "Review\u{1b}[2J it", || SIZE.get())
        .with_markdown(!glyphs.is_ascii());
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

/// Draws a text of the root, in pieces, and returns the screen.
fn written(size: Size, is_markdown: bool, events: Vec<EventKind>) -> String {
    let mut live = Live::new(Terminal::new(size), Glyphs::UNICODE, false, "Go", || SIZE.get())
        .with_markdown(is_markdown);
    let origin = Arc::new(Origin {
        reply_id: Some("r".parse().unwrap()),
        ..Origin::session("s".parse().unwrap(), Some("run".parse().unwrap()))
    });
    for (seq, kind) in (1..).zip(events) {
        live.event(&AgentEvent::new(seq, Timestamp::default(), origin.clone(), kind));
    }
    live.tick(Timestamp::default());
    live.screen.out.screen()
}

#[test]
fn a_question_is_below_the_tree_with_what_is_typed() {
    use crate::approval::Question;
    let edit = serde_json::json!({ "path": "src/main.rs", "old": "one\ntwo", "new": "one\n2" });
    let calls = vec![mainstem::message::ToolCall::new("1", "edit_file", edit.to_string())];
    let question = Question::new("q".parse().unwrap(), "main", calls);
    let mut shots = String::new();
    for size in [(80, 24), (40, 12), (30, 6)] {
        let mut live = Live::new(Terminal::new(size), Glyphs::UNICODE, false, "Go", || SIZE.get());
        for event in fixture::demo().iter().take(60) {
            live.event(event);
        }
        live.tick(live.now);
        live.ask(Some(&question), "");
        live.ask(Some(&question), "n not now");
        shots += &format!("--- {size:?}\n{}\n", live.screen.out.screen());
        live.ask(None, "");
        live.note("denied main: edit_file src/main.rs");
        let screen = live.screen.out.screen();
        assert!(!screen.contains("wants to") && !screen.contains("not now"), "nothing stale: {screen}");
    }
    insta::assert_snapshot!(shots);
}

#[test]
fn the_answer_grows_below_the_tree() {
    let id = || "1.1".parse().unwrap();
    let text = |delta: &str| EventKind::TextBlockDelta { block_id: id(), delta: delta.to_owned() };
    let begin = || {
        vec![
            EventKind::agent_start("main", mainstem::message::Role::Assistant, Vec::new()),
            EventKind::model_call_start("m", 1),
            EventKind::TextBlockStart { block_id: id() },
        ]
    };
    let check = |size, is_markdown, pieces: &[&str], expected: &str| {
        let events = begin().into_iter().chain(pieces.iter().map(|piece| text(piece))).collect();
        let screen = written(size, is_markdown, events);
        // Above it are the prompt, the head, the root's row and an empty line.
        let below: Vec<_> = screen.lines().skip(4).collect();
        assert_eq!(below.join("\n"), expected, "{size:?} {pieces:?}");
    };
    check((40, 24), true, &["# Ti", "tle\n- **a", "** b\n"], "Title\n\n• a b");
    check((40, 24), false, &["# Ti", "tle\n- **a", "** b\n"], "# Title\n- **a** b");
    check((40, 24), true, &["a\u{1b}[2Jb"], "ab");
    check(
        (30, 24),
        false,
        &["a line that is longer than the screen"],
        "a line that is longer than th\ne screen",
    );
    // Of a long text, the end is visible, and the tree stays.
    let long: String = (0..50).map(|n| format!("- {n}\n")).collect();
    check((40, 10), true, &[&long], "• 46\n• 47\n• 48\n• 49");
}

#[test]
fn what_is_taken_back_disappears() {
    let id = || "1.1".parse().unwrap();
    let failure = mainstem::message::Failure::new("cut", "the connection was cut");
    let discarded = mainstem_event::Discarded::new(vec![id()], Vec::new());
    let text = |delta: &str| EventKind::TextBlockDelta { block_id: id(), delta: delta.to_owned() };
    let events = vec![
        EventKind::agent_start("main", mainstem::message::Role::Assistant, Vec::new()),
        EventKind::model_call_start("m", 1),
        EventKind::TextBlockStart { block_id: id() },
        text("half an answer"),
        EventKind::model_retry(1, 500, failure).with_taken_back(discarded),
        EventKind::TextBlockStart { block_id: id() },
        text("a whole"),
    ];
    let screen = written((60, 24), true, events);
    assert!(screen.contains("a whole") && !screen.contains("half"), "{screen}");
}
