//! The demo as a log.

use super::*;
use crate::progress::fixture;

fn log(glyphs: Glyphs, is_colored: bool) -> String {
    let mut plain = Plain::new(Vec::new(), glyphs, is_colored);
    let mut last = Timestamp::default();
    fixture::play(|event, now| {
        last = now;
        match event {
            Some(event) => plain.event(event),
            None => plain.tick(now),
        }
    });
    plain.note("a note\u{1b}[2J");
    plain.finish(last);
    String::from_utf8(plain.out).unwrap()
}

#[test]
fn the_lines_of_an_agent_stay_together() {
    insta::assert_snapshot!(log(Glyphs::UNICODE, false));
}

#[test]
fn colours_only_add_to_the_words() {
    let colored = log(Glyphs::UNICODE, true);
    assert!(colored.contains("\u{1b}[32m✔ done"), "{colored}");
    assert_eq!(anstream::adapter::strip_str(&colored).to_string(), log(Glyphs::UNICODE, false));
}

#[test]
fn an_ascii_terminal_gets_ascii() {
    let log = log(Glyphs::ASCII, false);
    assert!(log.is_ascii(), "{log}");
    assert!(log.contains("#6 runner  x run_tests failed"), "{log}");
}
