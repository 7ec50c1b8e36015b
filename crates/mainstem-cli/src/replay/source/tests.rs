//! Lines of any length.

use mainstem::{
    event::{EventKind, Origin, Timestamp},
    message::Message,
    react::AnswerLimits,
};

use super::*;

/// An event of a reply, as a line without its end.
fn reply(text: &str) -> String {
    let result = Message::assistant(text).into();
    let origin = Origin::session("s".parse().unwrap(), None).into();
    let event = AgentEvent::new(1, Timestamp::from_micros(0), origin, EventKind::AgentResult { result });
    serde_json::to_string(&event).unwrap()
}

#[test]
fn a_line_is_read_to_its_bound() {
    const MAX: usize = 1 << 20;
    let check = |text: &str, expected: Result<Vec<u64>, &str>| {
        let mut lines = Lines::new(Path::new("r"), text.as_bytes(), MAX);
        let events = std::iter::from_fn(|| lines.event().transpose());
        let read: anyhow::Result<Vec<_>> = events.map(|event| Ok(event?.seq)).collect();
        assert_eq!(read.map_err(|error| format!("{error:#}")), expected.map_err(str::to_owned));
    };
    let line = reply("Yes.");
    let longest = line.clone() + &" ".repeat(MAX - line.len());
    check(&format!("{line}\r\n\n  \n{line}"), Ok(vec![1, 1]));
    check(&format!("{longest}\n{longest}"), Ok(vec![1, 1]));
    let too_long = || Err("r:3: the line is longer than 1 MiB");
    check(&format!("{line}\n\n{longest} \n{line}\n"), too_long());
    check(&format!("{line}\n\n{longest} "), too_long());
}

#[test]
fn the_largest_event_is_read() {
    // The character whose JSON is the longest.
    let most = AnswerLimits::default().answer;
    let line = reply(&"\u{1}".repeat(most));
    let mut lines = Lines::new(Path::new("r"), line.as_bytes(), MAX_LINE_BYTES);
    let event = lines.event().unwrap().unwrap();
    assert!(matches!(&event.kind, EventKind::AgentResult { result } if result.text().len() == most));
}
