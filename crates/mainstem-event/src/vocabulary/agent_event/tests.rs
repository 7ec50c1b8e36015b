//! Accessors of events.

use crate::{Outcome, fixture::*};

#[test]
fn an_event_knows_whose_it_is() {
    let root = event(1, "", text("b", "x"));
    assert!(root.is_root());
    assert_eq!((root.depth(), root.agent_label(), root.agent_key()), (0, "main", None));
    let child = event(2, "a/b", text("b", "x"));
    assert!(!child.is_root());
    assert_eq!((child.depth(), child.agent_label()), (2, "b"));
    assert_eq!(child.agent_key().unwrap(), "agent:a.b");
    assert_eq!(
        (child.session_id().as_str(), child.run_id().unwrap().as_str(), child.reply_id().unwrap().as_str()),
        ("s", "run-1", "reply-a.b")
    );
}

#[test]
fn a_run_ends_with_the_roots_end() {
    assert!(event(1, "", end(Outcome::Cancelled)).is_run_end());
    assert!(!event(1, "a", end(Outcome::Success)).is_run_end());
    assert!(!event(1, "", result("bye")).is_run_end());
}

#[test]
fn metadata_is_added_to_a_copy() {
    let plain = event(1, "", text("b", "x"));
    let marked = plain.clone().with_metadata([("trace".to_owned(), "t".into())].into_iter().collect());
    assert_eq!(plain.metadata, None);
    assert_eq!(marked.metadata.as_ref().unwrap()["trace"], "t");
    assert_eq!((marked.seq, &marked.kind), (plain.seq, &plain.kind));
}
