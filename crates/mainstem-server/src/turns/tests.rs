//! So many at once, and no more.

use std::pin::pin;

use futures_util::future::poll_immediate;

use super::*;
use crate::app::REQUESTS;

#[tokio::test]
async fn requests_of_a_tenant_are_worked_on_so_many_at_once() {
    let (turns, tenant) = (Turns::new(REQUESTS), Some("acme".parse().unwrap()));
    let mut held = Vec::new();
    for _ in 0..REQUESTS {
        held.push(turns.take(&tenant).await);
    }
    let mut next = pin!(turns.take(&tenant));
    assert!(poll_immediate(&mut next).await.is_none());
    assert!(turns.take(&Some("globex".parse().unwrap())).await.is_some(), "another tenant has its own");
    held.pop();
    assert!(next.await.is_some());
}
