//! Questions and answers in order, without a terminal.

use mainstem::message::ToolCall;
use mainstem_event::{EventSink, Origin, SessionLog, Timestamp};
use serde_json::json;

use super::*;

/// Progress that has no frame; collects what is shown.
#[derive(Default)]
struct Shown(Vec<String>);

impl Progress for Shown {
    fn event(&mut self, _: &AgentEvent) {}
    fn tick(&mut self, _: Timestamp) {}
    fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
    fn finish(&mut self, _: Timestamp) {}
}

/// The approvals after these calls were asked about, with the ids `1`, `2`, ….
fn asked(calls: &[(&str, &str)]) -> (Approvals, Shown) {
    let mut approvals = Approvals::default();
    let log = SessionLog::new("s".parse().unwrap());
    let mut cursor = log.subscribe_from(1);
    let sink = EventSink::root(log, Origin::session("s".parse().unwrap(), None));
    for (number, (tool, command)) in (1..).zip(calls) {
        let arguments = json!({ "command": command }).to_string();
        let calls = vec![ToolCall::new("call-1", *tool, arguments)];
        sink.emit(EventKind::require_user_confirm(number.to_string().try_into().unwrap(), calls));
        approvals.event(&cursor.try_next().unwrap());
    }
    let mut shown = Shown::default();
    approvals.ask(&mut shown);
    (approvals, shown)
}

fn typed(text: &str, below: u64) -> Input {
    Input::Line(Some(Line { text: text.to_owned(), below }))
}

fn given(id: &str, decision: Decision) -> Taken {
    Taken::Answers(vec![(ConfirmId::try_from(id).unwrap(), decision)])
}

#[test]
fn each_question_has_its_own_answer() {
    let (mut approvals, mut shown) = asked(&[("poke", "a"), ("poke", "b")]);
    approvals.ask(&mut shown);
    assert_eq!(shown.0.len(), 1, "it is put once: {shown:?}", shown = shown.0);
    assert_eq!(approvals.input(typed("what?", 1), &mut shown), Taken::Answers(Vec::new()));
    assert!(shown.0[1].contains("type y, n"), "{}", shown.0[1]);
    assert_eq!(approvals.input(typed("y", 1), &mut shown), given("1", Decision::Allow));
    assert_eq!(
        approvals.input(typed("y", 1), &mut shown),
        Taken::Answers(Vec::new()),
        "typed before the second was put"
    );
    assert_eq!(approvals.input(typed("y", 2), &mut shown), given("2", Decision::Allow));
    assert!(!approvals.is_open());
}

#[tokio::test]
async fn after_the_end_of_stdin_the_answer_is_no() {
    let (mut approvals, mut shown) = asked(&[("poke", "a"), ("poke", "b")]);
    let no_answer = || Decision::Deny("there was no answer".to_owned());
    assert_eq!(approvals.input(Input::Line(None), &mut shown), given("1", no_answer()));
    let next = approvals.next().await;
    assert_eq!(approvals.input(next, &mut shown), given("2", no_answer()));
    assert!(!approvals.is_open());
}
