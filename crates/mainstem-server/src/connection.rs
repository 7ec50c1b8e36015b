//! Connections: guests until a request of theirs shows a token, and then a share of their tenant's.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use tokio_util::sync::CancellationToken;

use crate::shares::{Share, Shares, Tenant};

/// How many connections there are that have not shown a token. A further one closes the one that has been there longest.
pub(crate) const GUESTS: usize = 256;

/// How many of them come from one address.
pub(crate) const GUESTS_OF_ADDRESS: usize = 128;

/// The connections that have not shown a token.
#[derive(Default)]
pub(crate) struct Guests(Mutex<List>);

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
}

impl Guests {
    /// Takes a new connection in; if there are too many, the oldest is closed.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Connection {
        let close = CancellationToken::new();
        let mut list = self.lock();
        let of_address = list.guests.values().filter(|guest| guest.address == address).count();
        let leaves = match of_address >= GUESTS_OF_ADDRESS {
            true => list.guests.iter().find(|(_, guest)| guest.address == address),
            false if list.guests.len() >= GUESTS => list.guests.iter().next(),
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
        Connection(Arc::new(Inner { guests: self.clone(), number, close, share: OnceLock::new() }))
    }

    fn leave(&self, number: u64) -> bool {
        self.lock().guests.remove(&number).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Resolves when the connection has to make room for another.
    pub(crate) async fn closed(&self) {
        self.0.close.cancelled().await;
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
