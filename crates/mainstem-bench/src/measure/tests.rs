//! Medians, and clocks that advance.

use super::*;

#[test]
fn middle_of_many() {
    let check = |values: &[f64], share, expected: f64| {
        assert_eq!(
            quantile(values.iter().copied(), share).to_bits(),
            expected.to_bits(),
            "{values:?} {share}"
        );
    };
    check(&[], 0.5, 0.0);
    check(&[7.0], 0.99, 7.0);
    check(&[3.0, 1.0, 2.0], 0.5, 2.0);
    check(&[4.0, 1.0, 3.0, 2.0], 0.0, 1.0);
    check(&[4.0, 1.0, 3.0, 2.0], 1.0, 4.0);
    let hundred: Vec<_> = (0..=100).map(f64::from).collect();
    check(&hundred, 0.99, 99.0);
}

#[test]
fn work_costs_time_and_memory() {
    let (cpu_before, before, resident_before) = (cpu(), now(), resident().unwrap());
    let much = std::hint::black_box(vec![1_u8; 64 << 20]);
    assert!(much.iter().map(|byte| u64::from(*byte)).sum::<u64>() == 64 << 20);
    assert!(cpu() > cpu_before && now() > before);
    assert!(resident().unwrap() > resident_before + (32 << 20));
}

#[test]
fn pairs_are_compared_one_by_one() {
    let (mut ours, mut theirs) = ([2.0, 30.0, 12.0].into_iter(), [1.0, 10.0, 6.0].into_iter());
    let pairs = Pairs::take(3, || Ok(ours.next().unwrap()), || Ok(theirs.next().unwrap())).unwrap();
    let middles = [pairs.ours(), pairs.theirs(), pairs.ratio(), pairs.difference()];
    assert_eq!(middles.map(f64::to_bits), [12.0, 6.0, 2.0, 6.0].map(f64::to_bits));
}
