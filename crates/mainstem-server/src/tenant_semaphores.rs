//! A semaphore for each tenant.

use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use mainstem::policy::Tenant;

/// Semaphores with the same number of permits, one for each tenant.
pub(crate) struct TenantSemaphores {
    permits: usize,
    tenants: DashMap<Tenant, Arc<Semaphore>>,
}

impl TenantSemaphores {
    pub(crate) fn new(permits: usize) -> Self {
        Self { permits, tenants: DashMap::new() }
    }

    /// Waits for a permit of the tenant's. Never `None`, for the semaphores are never closed.
    pub(crate) async fn acquire(&self, tenant: &Tenant) -> Option<OwnedSemaphorePermit> {
        let semaphore = self.tenants.entry(tenant.clone());
        let semaphore = semaphore.or_insert_with(|| Arc::new(Semaphore::new(self.permits))).clone();
        semaphore.acquire_owned().await.ok()
    }
}

/// The permit of a request, which it acquires after its body is read, and releases while it waits
/// for something else. Cheap to clone; clones share the permit.
#[derive(Clone, Default)]
pub(crate) struct RequestPermit(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl RequestPermit {
    pub(crate) fn set(&self, permit: Option<OwnedSemaphorePermit>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }

    pub(crate) fn release(&self) {
        self.set(None);
    }
}

#[cfg(test)]
mod tests;
