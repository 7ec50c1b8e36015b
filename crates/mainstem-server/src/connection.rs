//! Connections: guests until a request has a valid token, then counted for their tenant.

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

/// How many requests without a token are answered on one connection. Then it is closed, so that
/// requests that a guest has pipelined are not handled.
pub(crate) const GUEST_REQUESTS: u32 = 8;

/// The connections without a valid token so far. If there are too many, a further one closes the
/// oldest; half of them can come from one address.
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
    /// Creates a list of at most this many.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, list: Mutex::default() }
    }

    /// Adds a connection; if there are too many, closes the oldest.
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
    /// Waits until the connection is closed in favour of another.
    pub(crate) async fn closed(&self) {
        self.0.close.cancelled().await;
    }

    /// Counts a request.
    pub(crate) fn count_request(&self) {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns `true` if no more requests are answered: the connection has sent as many as a guest
    /// may, and none had a valid token.
    pub(crate) fn is_used_up(&self) -> bool {
        self.0.share.get().is_none() && self.0.requests.load(Ordering::Relaxed) >= GUEST_REQUESTS
    }

    /// Counts the connection for a tenant; returns `false` if the tenant's share is in use.
    pub(crate) fn admit(&self, shares: &Arc<Shares>, tenant: &Tenant) -> bool {
        if self.0.share.get().is_some() {
            return true;
        }
        let Some(share) = shares.take(tenant) else { return false };
        self.0.guests.leave(self.0.number);
        // A concurrent second request drops its own share here.
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
