//! Sums.

use std::thread;

use super::*;

fn rollup(
    own: (u64, u64),
    inclusive: (u64, u64),
    own_cost: Option<u64>,
    inclusive_cost: Option<u64>,
) -> Rollup {
    let (own, inclusive) = (Usage::new(own.0, own.1), Usage::new(inclusive.0, inclusive.1));
    Rollup { own, inclusive, own_cost, inclusive_cost }
}

fn add_child(meter: &Meter, child: &Rollup) {
    meter.with(|sum| sum.add_child(child));
}

/// On whichever thread: a child whose end is recorded before its parent's is in the parent's sum.
#[test]
fn a_child_that_ends_with_its_parent_is_counted_if_its_end_is_first() {
    for _ in 0..2_000 {
        let (parent, child, ends) = (Meter::default(), Meter::default(), Mutex::new(Vec::new()));
        child.add_own(Usage::new(1, 0), Some(1));
        let end = |who, sum: Rollup| ends.lock().unwrap().push((who, sum.inclusive.input_tokens));
        thread::scope(|threads| {
            threads.spawn(|| child.end(Some(&parent), |sum| end("child", sum)));
            threads.spawn(|| parent.end(None, |sum| end("parent", sum)));
        });
        let ends = ends.into_inner().unwrap();
        assert!(
            [[("child", 1), ("parent", 1)], [("parent", 0), ("child", 1)]].contains(&[ends[0], ends[1]]),
            "{ends:?}"
        );
        assert_eq!(parent.read().inclusive.input_tokens, 1);
    }
}

#[test]
fn own_calls_count_twice_and_children_once() {
    let meter = Meter::default();
    let same = meter.clone();
    assert_eq!(meter.read(), rollup((0, 0), (0, 0), Some(0), Some(0)));
    meter.add_own(Usage::new(1, 2), Some(5));
    same.add_own(Usage::new(10, 20), Some(7));
    assert_eq!(meter.read(), rollup((11, 22), (11, 22), Some(12), Some(12)));
    add_child(&meter, &rollup((100, 0), (300, 1), Some(1), Some(3)));
    assert_eq!(meter.read(), rollup((11, 22), (311, 23), Some(12), Some(15)));
    meter.add_own(Usage::new(u64::MAX, 0), Some(u64::MAX));
    assert_eq!(meter.read().inclusive.input_tokens, u64::MAX, "nonsense does not overflow");
    assert_eq!(meter.read().inclusive_cost, Some(u64::MAX));
}

#[test]
fn what_is_unknown_makes_the_sum_unknown_and_no_other() {
    let meter = Meter::default();
    meter.add_own(Usage::new(1, 0), Some(1));
    add_child(&meter, &rollup((1, 0), (1, 0), None, None));
    add_child(&meter, &rollup((1, 0), (1, 0), Some(1), Some(1)));
    assert_eq!(meter.read(), rollup((1, 0), (3, 0), Some(1), None));
    meter.add_own(Usage::default(), None);
    assert_eq!(meter.read(), rollup((1, 0), (3, 0), None, None));
}
