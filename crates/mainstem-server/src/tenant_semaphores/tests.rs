//! Permits of one tenant, and of another.

use std::pin::pin;

use futures_util::future::poll_immediate;

use super::*;
use crate::app::REQUESTS;

#[tokio::test]
async fn a_tenant_has_a_fixed_number_of_permits() {
    let (requests, tenant) = (TenantSemaphores::new(REQUESTS), Some("acme".parse().unwrap()));
    let mut held = Vec::new();
    for _ in 0..REQUESTS {
        held.push(requests.acquire(&tenant).await);
    }
    let mut next = pin!(requests.acquire(&tenant));
    assert!(poll_immediate(&mut next).await.is_none());
    let globex = Some("globex".parse().unwrap());
    assert!(requests.acquire(&globex).await.is_some(), "another tenant has its own");
    held.pop();
    assert!(next.await.is_some());
}
