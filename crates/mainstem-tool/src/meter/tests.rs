//! Sums.

use super::*;

#[test]
fn own_calls_count_twice_and_children_once() {
    let meter = Meter::default();
    let same = meter.clone();
    meter.add_own(Usage::new(1, 2));
    same.add_own(Usage::new(10, 20));
    assert_eq!(meter.read(), Rollup { own: Usage::new(11, 22), inclusive: Usage::new(11, 22) });
    meter.add_child(Rollup { own: Usage::new(100, 0), inclusive: Usage::new(300, 1) });
    assert_eq!(meter.read(), Rollup { own: Usage::new(11, 22), inclusive: Usage::new(311, 23) });
    meter.add_own(Usage::new(u64::MAX, 0));
    assert_eq!(meter.read().inclusive.input_tokens, u64::MAX, "nonsense does not overflow");
}
