//! Every pair.

use super::*;

#[test]
fn what_may_become_what() {
    let all = [Pending, Running, WaitingConfirm, Completed, Failed, Cancelled];
    let legal = |from| all.into_iter().filter(|to| can_become(from, *to)).collect::<Vec<_>>();
    assert_eq!(legal(Pending), [Running, Failed, Cancelled]);
    assert_eq!(legal(Running), [WaitingConfirm, Completed, Failed, Cancelled]);
    assert_eq!(legal(WaitingConfirm), [Running, Completed, Failed, Cancelled]);
    for end in [Completed, Failed, Cancelled] {
        assert!(end.is_terminal() && legal(end).is_empty(), "{end:?} is final");
    }
    assert!(![Pending, Running, WaitingConfirm].into_iter().any(TaskStatus::is_terminal));
}
