//! Which snapshot files count as drafts, and which as left over.

use super::{pending, unread};

fn files(paths: &[&str]) -> Vec<String> {
    paths.iter().copied().map(String::from).collect()
}

#[test]
fn drafts_wait_for_review() {
    let tree = files(&["a/kept.snap", "a/new.snap.new", "a/.kind.rs.pending-snap", "a/kind.rs"]);
    let found: Vec<_> = pending(&tree).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "a/new.snap.new:1: snapshot waits for review",
            "a/.kind.rs.pending-snap:1: snapshot waits for review"
        ]
    );
}

#[test]
fn a_snapshot_that_no_test_read_is_left_over() {
    let tree = files(&["a/read.snap", "b/left.snap", "b/left.rs"]);
    let read = ["a/read.snap".to_owned()].into();
    let found: Vec<_> = unread(&tree, &read).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["b/left.snap:1: no test reads this snapshot"]);
}
