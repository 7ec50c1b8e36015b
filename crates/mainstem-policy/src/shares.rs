//! Fair shares of a limit: half of it is divided among the tenants, the other half is first come,
//! first served.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mainstem_message::TenantName;

/// A tenant; `None` stands for the harness's own caller.
pub type Tenant = Option<TenantName>;

/// A limit that tenants share.
///
/// ```
/// use std::sync::Arc;
/// use mainstem_policy::Shares;
///
/// let places = Shares::new(4, 2);
/// let tenant = Some("one".parse()?);
/// let taken: Vec<_> = std::iter::from_fn(|| places.take(&tenant)).collect();
/// assert_eq!(taken.len(), 3, "one of the four is reserved for the other tenant");
/// drop(taken);
/// assert_eq!(places.taken(), 0);
/// # Ok::<(), mainstem_message::IdError>(())
/// ```
#[derive(Debug)]
pub struct Shares {
    most: usize,
    /// Guaranteed to each tenant.
    own: usize,
    /// Common to all tenants, beyond their guarantees.
    common: usize,
    taken: Mutex<HashMap<Tenant, usize>>,
}

impl Shares {
    /// Divides `most` among `tenants`, each of which is guaranteed at least 1.
    pub fn new(most: usize, tenants: usize) -> Arc<Self> {
        let tenants = tenants.max(1);
        let own = (most / 2 / tenants).max(1);
        let common = most.saturating_sub(own * tenants);
        Arc::new(Self { most, own, common, taken: Mutex::default() })
    }

    /// Returns the limit.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Takes one for a tenant, until the share is dropped; `None` if the tenant's guarantee and the
    /// common part are used up.
    #[must_use]
    pub fn take(self: &Arc<Self>, tenant: &Tenant) -> Option<Share> {
        let mut taken = self.lock();
        let has = taken.get(tenant).copied().unwrap_or(0);
        let common_taken: usize = taken.values().map(|count| count.saturating_sub(self.own)).sum();
        if has >= self.own && common_taken >= self.common {
            return None;
        }
        taken.insert(tenant.clone(), has + 1);
        Some(Share { of: self.clone(), tenant: tenant.clone() })
    }

    /// Returns `true` if a tenant has more than its guarantee, so that what it returns is common.
    pub fn has_common(&self, tenant: &Tenant) -> bool {
        self.lock().get(tenant).is_some_and(|count| *count > self.own)
    }

    /// Returns how many are taken.
    pub fn taken(&self) -> usize {
        self.lock().values().sum()
    }

    /// Returns how many each tenant has taken.
    pub fn by_tenant(&self) -> HashMap<Tenant, usize> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Tenant, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One unit of the limit; returned when dropped.
#[derive(Debug)]
#[must_use = "a share is returned when it is dropped"]
pub struct Share {
    of: Arc<Shares>,
    tenant: Tenant,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.of.lock();
        match taken.get_mut(&self.tenant) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.tenant)),
        }
    }
}

#[cfg(test)]
mod tests;
