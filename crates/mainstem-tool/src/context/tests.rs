//! A context returns the values of its host.

use serde_json::json;
use tokio_test::{assert_pending, assert_ready, task::spawn};

use crate::host::tests::{Bare, context, streamed};

#[test]
fn a_tool_knows_whose_call_it_works_on() {
    let cx = context();
    assert_eq!((cx.agent(), cx.call_id().as_str(), cx.session_id().as_str()), ("main", "call-1", "s"));
    assert_eq!((cx.source(), cx.run_id(), cx.user()), (None, None, Some("ann")));
    assert_eq!(cx.attributes()["tenant"], json!("acme"));
    assert!(cx.deadline().unwrap() > cx.now());
}

#[test]
fn values_are_found_by_their_type() {
    let cx = context();
    assert_eq!((cx.get::<u8>().as_deref(), cx.get::<u16>()), (Some(&7), None));
}

#[test]
fn progress_is_sent_before_the_first_wait() {
    let cx = context();
    drop(cx.progress("half "));
    assert_ready!(spawn(cx.progress("done")).poll());
    let line = |text: &str| format!("TOOL_RESULT_TEXT_DELTA {text:?} (call-1)");
    assert_eq!(streamed(&cx), [line("half "), line("done")]);
}

#[test]
fn a_cancel_is_seen_in_every_clone() {
    let cx = context();
    let clone = cx.clone();
    let mut cancelled = spawn(clone.cancelled());
    assert_pending!(cancelled.poll());
    cx.host::<Bare>().unwrap().cancel.cancel();
    assert!(cancelled.is_woken() && clone.is_cancelled());
}
