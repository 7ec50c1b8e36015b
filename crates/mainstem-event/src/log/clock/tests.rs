//! The machine's time, and ids.

use super::*;

#[test]
fn the_machine_has_a_clock() {
    assert!(SystemClock.now() > "2020-01-01T00:00:00Z".parse().unwrap());
}

#[test]
fn random_ids_differ_and_keep_their_prefix() {
    let (one, two) = (RandomIds.next("run-"), RandomIds.next("run-"));
    assert_ne!(one, two);
    assert!(one.starts_with("run-") && one.len() == "run-".len() + 36, "{one}");
}
