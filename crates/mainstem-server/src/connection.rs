//! Connections: guests until a request of theirs shows a token, and then a share of their tenant's.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use tokio_util::sync::CancellationToken;

use mainstem::policy::{Share, Shares, Tenant};

/// How many requests without a token are answered on one connection; after that it is closed, so
/// that what a guest sends ahead is not worked on.
pub(crate) const GUEST_REQUESTS: u32 = 8;

/// The connections that have not shown a token. When there are too many, a further one closes the
/// one that has been there longest; half of them can come from one address.
pub(crate) struct Guests {
    most: usize,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    next: u64,
    /// The oldest first.
    guests: BTreeMap<u64, Guest>,
}

struct Guest {
    address: IpAddr,
    close: CancellationToken,
}

/// A connection as its requests see it.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Inner>);

struct Inner {
    guests: Arc<Guests>,
    number: u64,
    close: CancellationToken,
    share: OnceLock<Share>,
    requests: AtomicU32,
}

impl Guests {
    /// Room for so many.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, list: Mutex::default() }
    }

    /// Takes a new connection in; if there are too many, the oldest is closed.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Connection {
        let close = CancellationToken::new();
        let mut list = self.lock();
        let of_address = list.guests.values().filter(|guest| guest.address == address).count();
        let leaves = match of_address >= self.most / 2 {
            true => list.guests.iter().find(|(_, guest)| guest.address == address),
            false if list.guests.len() >= self.most => list.guests.iter().next(),
            false => None,
        };
        if let Some(number) = leaves.map(|(number, _)| *number)
            && let Some(guest) = list.guests.remove(&number)
        {
            guest.close.cancel();
        }
        let number = list.next;
        list.next += 1;
        list.guests.insert(number, Guest { address, close: close.clone() });
        drop(list);
        let (share, requests) = Default::default();
        Connection(Arc::new(Inner { guests: self.clone(), number, close, share, requests }))
    }

    fn leave(&self, number: u64) -> bool {
        self.lock().guests.remove(&number).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Resolves when the connection has to make room for another.
    pub(crate) async fn closed(&self) {
        self.0.close.cancelled().await;
    }

    /// Counts a request.
    pub(crate) fn ask(&self) {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns `true` if no more requests are answered: there were enough, and none showed a token.
    pub(crate) fn is_used_up(&self) -> bool {
        self.0.share.get().is_none() && self.0.requests.load(Ordering::Relaxed) >= GUEST_REQUESTS
    }

    /// Makes the connection one of a tenant's; `false` if the tenant has all its share.
    pub(crate) fn admit(&self, shares: &Arc<Shares>, tenant: &Tenant) -> bool {
        if self.0.share.get().is_some() {
            return true;
        }
        let Some(share) = shares.take(tenant) else { return false };
        self.0.guests.leave(self.0.number);
        // A second request at the same time gives its own back.
        let _ = self.0.share.set(share);
        true
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.guests.leave(self.number);
    }
}

#[cfg(test)]
mod tests;
