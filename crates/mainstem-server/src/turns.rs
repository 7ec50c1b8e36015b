//! A semaphore per tenant.

use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use mainstem::policy::Tenant;

pub(crate) struct Turns {
    most: usize,
    tenants: DashMap<Tenant, Arc<Semaphore>>,
}

impl Turns {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, tenants: DashMap::new() }
    }

    /// Waits for a turn; it is given back when it is dropped.
    pub(crate) async fn take(&self, tenant: &Tenant) -> Option<OwnedSemaphorePermit> {
        let turns = self.tenants.entry(tenant.clone());
        let turns = turns.or_insert_with(|| Arc::new(Semaphore::new(self.most))).clone();
        // The semaphores are never closed.
        turns.acquire_owned().await.ok()
    }
}

/// A request's permit: taken after its body is read, released while the request waits. Cheap to
/// clone; clones share the permit.
#[derive(Clone, Default)]
pub(crate) struct Turn(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl Turn {
    pub(crate) fn begin(&self, permit: Option<OwnedSemaphorePermit>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }

    pub(crate) fn end(&self) {
        self.begin(None);
    }
}

#[cfg(test)]
mod tests;
