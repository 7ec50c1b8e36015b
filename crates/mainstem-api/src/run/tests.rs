//! Requests as JSON and back.

use super::*;

#[test]
fn a_request_is_as_short_as_it_can_be_and_reads_back() {
    #[track_caller]
    fn check(run: &NewRun, expected: &Value) {
        let json = serde_json::to_value(run).unwrap();
        assert_eq!(json, *expected);
        assert_eq!(serde_json::from_value::<NewRun>(json).unwrap(), *run);
    }
    let message = serde_json::to_value(Message::user("hi")).unwrap();
    check(&NewRun::new("hi"), &json!({ "input": message }));
    check(&NewRun::resuming().with_queue(true), &json!({ "resume": true, "queue": true }));
    let options = RunOptions { approval: Some(false), background: Background::Wait, ..RunOptions::default() };
    let expected = json!({ "resume": true, "options": { "approval": false, "background": "wait" } });
    check(&NewRun::resuming().with_options(options), &expected);
}

#[test]
fn every_state_has_the_word_of_its_outcome() {
    for outcome in [
        Outcome::Success,
        Outcome::Error,
        Outcome::Cancelled,
        Outcome::Timeout,
        Outcome::MaxIterations,
        Outcome::Suspended,
    ] {
        let state = RunState::from(outcome);
        assert_eq!(serde_json::to_value(state).unwrap(), outcome.as_str());
        assert_eq!((state.outcome(), state.is_over()), (Some(outcome), true));
    }
    assert!(!RunState::Queued.is_over() && !RunState::Running.is_over() && RunState::Dropped.is_over());
}

#[test]
fn a_reason_keeps_its_meaning_across_the_wire() {
    #[track_caller]
    fn check(reason: &CancelReason, expected: &CancelReason) {
        assert_eq!(CancelQuery::from(reason).reason(Duration::from_secs(9)), *expected);
    }
    let timeout = CancelReason::Timeout { after: Duration::from_millis(250) };
    check(&timeout, &timeout);
    check(&CancelReason::user("Ctrl-C"), &CancelReason::user("over HTTP"));
    let signal = CancelReason::Signal { name: "a signal to the client".into() };
    check(&CancelReason::Signal { name: "SIGTERM".into() }, &signal);
    let waited = CancelQuery { reason: CancelCode::Timeout, after_ms: None };
    assert_eq!(
        waited.reason(Duration::from_secs(9)),
        CancelReason::Timeout { after: Duration::from_secs(9) }
    );
}

#[test]
fn an_input_has_text_and_data_only() {
    let input = |json: Value| serde_json::from_value::<Input>(json);
    assert!(input(json!(" ")).is_err());
    assert_eq!(input(json!("hi")).unwrap().problem(), None);
    let blank = input(json!({ "role": "user", "content": [{ "type": "text", "text": " " }] }));
    assert_eq!(blank.unwrap().problem().unwrap().0, "/input/content");
}
