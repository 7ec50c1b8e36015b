//! The screen at some sizes and positions of the demo, and what keys do.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use mainstem::{message::AgentKey, prelude::Decision};
use mainstem_event::{AgentEvent, EventKind, fold::ROOT};
use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    state::{Action, State, Typing},
    view,
};
use crate::progress::{fixture, glyphs::Glyphs};

/// The demo at its end.
fn demo(glyphs: Glyphs) -> State {
    let mut state = State::new("demo", glyphs, None);
    fixture::demo().into_iter().for_each(|event| state.event(event));
    state
}

fn press(state: &mut State, keys: &str) -> Option<Action> {
    let mut action = None;
    for c in keys.chars() {
        let code = match c {
            '↑' => KeyCode::Up,
            '↓' => KeyCode::Down,
            '←' => KeyCode::Left,
            '→' => KeyCode::Right,
            '⇞' => KeyCode::PageUp,
            '⇟' => KeyCode::PageDown,
            '⏎' => KeyCode::Enter,
            '⎋' => KeyCode::Esc,
            '⌫' => KeyCode::Backspace,
            '⇥' => KeyCode::Tab,
            c => KeyCode::Char(c),
        };
        action = state.key(KeyEvent::new(code, KeyModifiers::NONE), 5);
    }
    action
}

fn screen(state: &mut State, (width, height): (u16, u16)) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    view::draw(state, area, &mut buffer);
    let mut text = String::new();
    for y in 0..height {
        let mut skip = 0;
        let mut line = String::new();
        for x in 0..width {
            let symbol = buffer[(x, y)].symbol();
            if skip == 0 {
                line.push_str(symbol);
                skip = ratatui::text::Span::raw(symbol).width().saturating_sub(1);
            } else {
                skip -= 1;
            }
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[test]
fn the_demo() {
    let mut shots = String::new();
    for (size, glyphs) in
        [((120, 40), Glyphs::UNICODE), ((80, 24), Glyphs::UNICODE), ((40, 12), Glyphs::ASCII)]
    {
        let mut state = demo(glyphs);
        for keys in ["", "↓↓", "<<<<", "⇥", "/tester⏎", "⎋?"] {
            press(&mut state, keys);
            shots += &format!("--- {size:?} {keys}\n{}\n", screen(&mut state, size));
        }
    }
    insta::assert_snapshot!(shots);
}

#[test]
fn the_selected_agent_has_the_cost_of_its_subtree_and_how_full_its_window_is() {
    let mut state = State::new("demo", Glyphs::UNICODE, None);
    for event in fixture::demo() {
        let mut kind = event.kind.clone();
        match &mut kind {
            EventKind::ModelCallStart { context_window, .. } => *context_window = Some(1_000),
            EventKind::AgentEnd { usage, .. } => {
                usage.inclusive_cost = Some(if event.is_root() { 70_000 } else { 20_000 });
            }
            _ => {}
        }
        state.event(AgentEvent::new(event.seq, event.at, event.origin.clone(), kind));
    }
    let check = |state: &mut State, expected: &str| {
        let screen = screen(state, (120, 40));
        assert!(screen.contains(expected), "{expected}: {screen}");
    };
    check(&mut state, "main · 296 tok · 905 tok with 5 below · $0.0700 · 15% full");
    press(&mut state, "↓");
    check(&mut state, " · $0.0200");
    // Before its end, nothing is known of an agent.
    press(&mut state, "↑,");
    check(&mut state, "main · 296 tok · 905 tok with 5 below · 15% full");
}

#[test]
fn any_size_is_drawn() {
    for width in [0, 1, 7, 8, 20, 71, 72, 300] {
        for height in [0, 1, 2, 3, 4, 10, 100] {
            let mut state = demo(Glyphs::UNICODE);
            press(&mut state, "↓↓↓");
            screen(&mut state, (width, height));
            press(&mut state, "⇥⇞⇞⇞");
            screen(&mut state, (width, height));
        }
    }
}

#[test]
fn keys_move_in_time() {
    let mut state = demo(Glyphs::UNICODE);
    let len = state.film.len();
    let mut check = |keys: &str, at: usize| {
        press(&mut state, keys);
        assert_eq!(state.film.at(), at, "{keys}");
    };
    check("", len);
    check(",", len - 1);
    check(",,", len - 3);
    check("...", len);
    check(".", len);
    check("0", 0);
    check("→", (len as f64 * 0.01).round() as usize);
    check("←←", 0);
    check(">", (len as f64 * 0.1).round() as usize);
    check("l", len);
}

#[test]
fn a_record_is_played_in_its_time() {
    let mut state = demo(Glyphs::UNICODE);
    press(&mut state, ",0 ");
    assert!(state.is_playing);
    let first = state.film.next().unwrap().at;
    state.pass(std::time::Duration::from_secs(2));
    let (now, _) = state.film.times().unwrap();
    assert!((1_500..=2_000).contains(&now.millis_since(first)), "{now}");
    press(&mut state, "+++");
    state.pass(std::time::Duration::from_secs(60));
    assert!(state.film.next().is_none() && !state.is_playing, "it ends");
}

#[test]
fn a_position_in_the_past_stays_while_events_arrive() {
    let events = fixture::demo();
    let mut state = State::new("demo", Glyphs::UNICODE, None);
    events[..100].iter().cloned().for_each(|event| state.event(event));
    press(&mut state, ",,");
    events[100..].iter().cloned().for_each(|event| state.event(event));
    assert_eq!((state.film.at(), state.film.len()), (98, events.len()));
    press(&mut state, "l");
    assert_eq!(state.film.at(), events.len());
}

#[test]
fn what_is_asked_for_is_returned() {
    let mut state = demo(Glyphs::UNICODE);
    let root = AgentKey::from_lossy(ROOT);
    assert_eq!(press(&mut state, "mFaster⏎"), Some(Action::Send(root, "Faster".to_owned())));
    assert_eq!(press(&mut state, "c"), None);
    assert!(state.note.contains("select a child"), "{}", state.note);
    press(&mut state, "↓");
    let key = state.selected.clone().unwrap();
    assert_eq!(press(&mut state, "mGo x⌫on⏎"), Some(Action::Send(key.clone(), "Go on".to_owned())));
    assert_eq!(press(&mut state, "m⏎"), None, "an empty message is not sent");
    assert_eq!(press(&mut state, "mno⎋"), None);
    assert_eq!(press(&mut state, "cn⏎"), None);
    assert_eq!(press(&mut state, "c⏎"), Some(Action::Cancel(key)));
    assert_eq!(press(&mut state, "y"), None);
    assert_eq!(state.note, "no question is open");
    let last = fixture::demo().pop().unwrap();
    let calls = vec![mainstem::message::ToolCall::new("1", "shell", r#"{"command":"ls"}"#)];
    let kind = EventKind::require_user_confirm("q".parse().unwrap(), calls);
    state.event(AgentEvent::new(last.seq + 1, last.at, last.origin.clone(), kind));
    assert!(screen(&mut state, (80, 24)).contains("wants to run a command with shell:\n  ls\n  y: allow"));
    assert_eq!(press(&mut state, "n"), None);
    assert_eq!(state.prompt.as_ref().unwrap().what, Typing::Reason("q".parse().unwrap()));
    let denied = Decision::Deny("not now".to_owned());
    assert_eq!(press(&mut state, "not now⏎"), Some(Action::Confirm("q".parse().unwrap(), denied)));
    assert_eq!(press(&mut state, "yyyy⏎"), None, "a key that is held down allows nothing");
    assert_eq!(press(&mut state, "y⏎"), Some(Action::Confirm("q".parse().unwrap(), Decision::Allow)));
    assert_eq!(press(&mut state, "q"), Some(Action::Quit));

    let mut fixed = State::new("demo", Glyphs::UNICODE, Some("it is a record"));
    for key in ["m", "c", "y", "n"] {
        assert_eq!((press(&mut fixed, key), &*fixed.note), (None, "it is a record"));
    }
}

#[test]
fn a_stall_is_shown_until_it_is_over_and_what_is_typed_goes_before_it() {
    let mut state = demo(Glyphs::UNICODE);
    state.stall = Some("the process of session \"s\" ended before its run".to_owned());
    let has = |state: &mut State| screen(state, (80, 24)).contains("ended before its run");
    assert!(has(&mut state));
    press(&mut state, "/x");
    assert!(!has(&mut state), "a filter is typed");
    press(&mut state, "⎋");
    assert!(has(&mut state));
    state.stall = None;
    assert!(!has(&mut state));
}
