//! The bytes for the terminal.

use ratatui::{
    style::Stylize,
    text::{Line, Span},
};

use super::*;
use crate::progress::live::view::buffer;

fn drawn(is_colored: bool, line: Line<'_>) -> String {
    crossterm::style::force_color_output(true);
    let mut screen = Screen::new(Vec::new(), is_colored);
    screen.draw(&[], &buffer(&[line], 12), 12);
    String::from_utf8(screen.out).unwrap()
}

#[test]
fn a_frame_is_one_update_and_ends_below_itself() {
    assert_eq!(drawn(false, Line::from("plain").bold()), "\x1b[?2026h\rplain\x1b[K\n\x1b[J\x1b[?2026l");
    let line = Line::from(vec!["a".green(), Span::raw("日"), "b".dim()]);
    let expected =
        "\x1b[?2026h\r\x1b[0m\x1b[38;5;2ma\x1b[0m日\x1b[0m\x1b[2mb\x1b[0m\x1b[K\n\x1b[J\x1b[?2026l";
    assert_eq!(drawn(true, line), expected);
}

#[test]
fn the_next_frame_goes_up_by_what_was_drawn() {
    let mut screen = Screen::new(Vec::new(), false);
    let frame = buffer(&[Line::from("0123456789"), Line::from("x")], 12);
    let mut ups = |width, notes: &[String], frame: &Buffer| {
        screen.out.clear();
        screen.draw(notes, frame, width);
        let text = String::from_utf8(screen.out.clone()).unwrap();
        let up = text
            .split_once("\r\x1b[")
            .and_then(|(_, rest)| rest.split_once('A'))
            .map(|(up, _)| up.to_owned());
        up.filter(|up| up.len() < 3).unwrap_or_else(|| "0".to_owned())
    };
    assert_eq!(ups(12, &[], &frame), "0");
    assert_eq!(ups(12, &[], &frame), "2");
    assert_eq!(ups(4, &[], &frame), "4", "the first line takes three lines of four");
    let nothing = buffer(&[], 12);
    assert_eq!(ups(12, &["note".to_owned()], &nothing), "2");
    assert_eq!(ups(12, &[], &nothing), "0", "a note is not drawn over");
}
