//! Sums.

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

#[test]
fn own_calls_count_twice_and_children_once() {
    let meter = Meter::default();
    let same = meter.clone();
    assert_eq!(meter.read(), rollup((0, 0), (0, 0), Some(0), Some(0)));
    meter.add_own(Usage::new(1, 2), Some(5));
    same.add_own(Usage::new(10, 20), Some(7));
    assert_eq!(meter.read(), rollup((11, 22), (11, 22), Some(12), Some(12)));
    meter.add_child(rollup((100, 0), (300, 1), Some(1), Some(3)));
    assert_eq!(meter.read(), rollup((11, 22), (311, 23), Some(12), Some(15)));
    meter.add_own(Usage::new(u64::MAX, 0), Some(u64::MAX));
    assert_eq!(meter.read().inclusive.input_tokens, u64::MAX, "nonsense does not overflow");
    assert_eq!(meter.read().inclusive_cost, Some(u64::MAX));
}

#[test]
fn what_is_unknown_makes_the_sum_unknown_and_no_other() {
    let meter = Meter::default();
    meter.add_own(Usage::new(1, 0), Some(1));
    meter.add_child(rollup((1, 0), (1, 0), None, None));
    meter.add_child(rollup((1, 0), (1, 0), Some(1), Some(1)));
    assert_eq!(meter.read(), rollup((1, 0), (3, 0), Some(1), None));
    meter.add_own(Usage::default(), None);
    assert_eq!(meter.read(), rollup((1, 0), (3, 0), None, None));
}
