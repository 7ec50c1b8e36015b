//! What openings that end at once leave in the store.

use std::sync::Barrier;

use super::*;

#[test]
fn openings_that_end_at_once_leave_no_place() {
    let store = Store::default();
    let key: Key = (None, "one".parse().unwrap());
    for _ in 0..2_000 {
        let openings = [0, 1, 2].map(|_| store.opening(key.clone()).unwrap());
        let barrier = Barrier::new(openings.len());
        std::thread::scope(|scope| {
            for opening in openings {
                let end = || {
                    barrier.wait();
                    drop(opening);
                };
                scope.spawn(end);
            }
        });
        assert!(store.is_empty());
    }
}
