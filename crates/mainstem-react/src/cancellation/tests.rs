//! Which reason counts.

use std::time::Duration;

use super::*;

#[test]
fn the_first_reason_counts_and_goes_down() {
    let root = Cancellation::new();
    let (left, right) = (root.below(&"main".into()), root.below(&"main".into()));
    assert_eq!(root.reason(), None);
    let closed = CancelReason::Subtree { agent: "left".into(), by: CancelReason::agent("main") };
    left.cancel(closed.clone());
    assert_eq!((left.reason(), right.reason()), (Some(closed.clone()), None));
    let timeout = CancelReason::Timeout { after: Duration::from_secs(2) };
    root.cancel(timeout.clone());
    root.cancel(CancelReason::RunEnded);
    assert_eq!((root.reason(), left.reason()), (Some(timeout.clone()), Some(closed)));
    assert_eq!(right.reason(), Some(timeout.below(&"main".into())));
}

#[test]
fn a_token_is_cancelled_for_one_reason() {
    let token = CancellationToken::new();
    let one = Cancellation::below_token(&token, CancelReason::Shutdown);
    token.cancel();
    assert_eq!(one.reason(), Some(CancelReason::Shutdown));
    let own = Cancellation::new();
    own.token().cancel();
    assert_eq!(own.reason(), Some(CancelReason::User { how: None }));
}
