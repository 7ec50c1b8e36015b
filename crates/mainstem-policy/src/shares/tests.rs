//! Who gets how many.

use super::*;

/// Takes as many as it gets.
fn fill(shares: &Arc<Shares>, tenant: &str) -> Vec<Share> {
    let tenant = Some(tenant.parse().unwrap());
    std::iter::from_fn(|| shares.take(&tenant)).collect()
}

#[test]
fn a_tenant_can_take_what_is_common_and_never_what_is_anothers() {
    #[track_caller]
    fn check(most: usize, tenants: usize, first: usize, second: usize) {
        let shares = Shares::new(most, tenants);
        let (one, other) = (fill(&shares, "one"), fill(&shares, "other"));
        assert_eq!((one.len(), other.len()), (first, second), "{most} for {tenants}");
        assert_eq!(shares.taken(), first + second);
    }
    check(64, 1, 64, 32);
    check(64, 2, 48, 16);
    check(64, 4, 40, 8);
    check(8, 2, 6, 2);
    // Too few to divide: each has one.
    check(1, 2, 1, 1);
    check(0, 1, 1, 1);
}

#[test]
fn what_is_dropped_can_be_taken_again() {
    let shares = Shares::new(4, 2);
    let mut one = fill(&shares, "one");
    assert_eq!(one.len(), 3);
    one.pop();
    assert_eq!(fill(&shares, "one").len(), 1);
    drop(one);
    assert_eq!(shares.taken(), 0);
    assert!(shares.lock().is_empty(), "nothing is left behind");
}
