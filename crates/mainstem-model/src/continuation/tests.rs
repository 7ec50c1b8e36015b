//! Parts in, one answer out.

use std::sync::Mutex;

use futures_util::{FutureExt, StreamExt};

use super::*;
use crate::{
    ErrorKind, ModelOptions,
    scripted::{ScriptedModel, Turn},
};

/// Plays a turn for each call, and notes the messages that it gets.
struct Playing {
    turns: Mutex<Vec<Turn>>,
    asked: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Model for Playing {
    fn name(&self) -> &str {
        "playing"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.asked.lock().unwrap().push(request.messages.iter().map(|message| message.text()).collect());
        let turn = self.turns.lock().unwrap().remove(0);
        let request = ModelRequest { messages: Vec::new(), agent: "a".into(), ..request };
        ScriptedModel::new().agent("a", [turn]).stream(request)
    }
}

fn cut(text: &str) -> Turn {
    Turn::new().text(text).usage(Usage::new(10, 5)).stop(StopReason::Length)
}

/// Returns the answer: its text, the last usage, and how it ended.
#[track_caller]
fn check(turns: Vec<Turn>, options: ModelOptions, calls: usize, expected: (&str, u64, &str)) {
    let asked = Arc::default();
    let model = Continuation::new(Playing { turns: Mutex::new(turns), asked: Arc::clone(&asked) });
    let messages = vec![Arc::new(Message::user("Tell."))];
    let request = ModelRequest { messages, options: Arc::new(options), ..ModelRequest::default() };
    let deltas: Vec<_> = model.stream(request).collect::<Vec<_>>().now_or_never().unwrap();
    let (mut text, mut used, mut end) = (String::new(), 0, String::new());
    for delta in deltas {
        match delta {
            Ok(ModelDelta::Text(more)) => text.push_str(&more),
            Ok(ModelDelta::Usage(usage)) => used = usage.total_tokens(),
            Ok(ModelDelta::Stop(stop)) => end = format!("{end}{stop}"),
            Ok(_) => {}
            Err(error) => end = format!("{end}!{error}"),
        }
    }
    assert_eq!((&*text, used, &*end), expected);
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), calls);
    for (part, messages) in asked.iter().enumerate().skip(1) {
        assert_eq!(messages.len(), 3, "part {part} has the answer so far, and what to do");
        assert!(text.starts_with(&messages[1]) && messages[2].contains("Go on"), "{messages:?}");
    }
}

#[test]
fn an_answer_goes_on_until_it_is_whole() {
    let end = || Turn::new().text(" upon a time.").usage(Usage::new(12, 3));
    let none = ModelOptions::new;
    check(vec![end()], none(), 1, (" upon a time.", 15, "stop"));
    check(vec![cut("Once"), end()], none(), 2, ("Once upon a time.", 30, "stop"));
    check(vec![cut("a"), cut("b"), cut("c"), cut("d"), end()], none(), 4, ("abcd", 60, "length"));
    // Limits of the caller, answers that are more than text, and those without any.
    let mut limited = none();
    limited.max_output_tokens = Some(5);
    check(vec![cut("Once"), end()], limited, 1, ("Once", 15, "length"));
    check(vec![cut(" "), end()], none(), 1, (" ", 15, "length"));
    let calls = Turn::new().text("Let me").call("f", serde_json::json!({})).stop(StopReason::Length);
    check(vec![calls, end()], none(), 1, ("Let me", 2, "length"));
    // A later part that is refused leaves the answer cut. Other failures are errors, as that of the
    // first part is.
    let fails = |kind| Turn::new().text(" up").fail(ModelError::new(kind, "no"));
    check(vec![cut("Once"), fails(ErrorKind::ContextOverflow)], none(), 2, ("Once up", 15, "length"));
    check(vec![cut("Once"), fails(ErrorKind::Server)], none(), 2, ("Once up", 15, "!no"));
    check(vec![fails(ErrorKind::ContextOverflow)], none(), 1, (" up", 0, "!no"));
    // Later parts may call tools.
    let calls = Turn::new().text(" a").call("f", serde_json::json!({}));
    check(vec![cut("Once"), calls], none(), 2, ("Once a", 16, "tool_calls"));
}
