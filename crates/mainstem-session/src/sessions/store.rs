//! The sessions that are open in this process, within a limit that tenants share.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use dashmap::{DashMap, mapref::multiple::RefMulti};
use mainstem_api::SessionView;
use mainstem_journal::JournalError;
use mainstem_message::SessionId;
use mainstem_policy::{Share, Shares, Tenant};

use super::{InUse, OpenError, place::Place};
use crate::{
    Session,
    copy::{SessionCopy, WeakCopy},
    view,
};

/// Callers choose the ids of their sessions, so a tenant may use another one's.
pub(super) type Key = (Tenant, SessionId);

/// The open sessions of all tenants of a harness.
///
/// Without a limit each stays open until it is [closed](super::Sessions::close). Sessions in memory
/// alone, whose events would be lost, are never closed to make room or because they are idle.
#[derive(Default)]
pub struct Store {
    places: DashMap<Key, Arc<Place>>,
    limit: OnceLock<Arc<Shares>>,
    /// The copies of sessions that other processes write, as long as they have readers.
    copies: DashMap<Key, WeakCopy>,
    evicted: AtomicU64,
}

impl Store {
    /// A store without a limit.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Limits how many sessions are open at once; returns `false` if the store has a limit already.
    /// Sessions that are open do not count. Beyond it, the least recently used session is closed
    /// that can be; if there is none, a further one is refused.
    pub fn set_limit(&self, shares: Arc<Shares>) -> bool {
        self.limit.set(shares).is_ok()
    }

    /// Returns the limit.
    pub fn limit(&self) -> Option<&Arc<Shares>> {
        self.limit.get()
    }

    /// Returns how many sessions are open.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns `true` if no session is open.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns how many sessions were closed to make room for others.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Returns `true` if the record of an open session has failed.
    pub fn has_failed(&self) -> bool {
        self.places.iter().any(|place| place.has_failed())
    }

    /// Closes the sessions whose record has failed and that have no run; the next request opens
    /// them again, from what was committed.
    pub fn close_failed(&self) {
        self.places.retain(|_, place| !place.is_lost());
    }

    /// Closes the recorded sessions that are not in use and were not requested for this long;
    /// returns how many. The next request opens them again.
    pub fn close_idle(&self, after: Duration) -> usize {
        let idle = self.keys(|_, place| place.is_idle_for(after));
        idle.iter().filter(|key| self.evict(key, after)).count()
    }

    /// Begins to open a session, which may be open. A lost session loses its place.
    pub(super) fn opening(&self, key: Key) -> Result<Opening<'_>, OpenError> {
        self.places.remove_if(&key, |_, place| place.is_lost());
        let known = self.places.get(&key).map(|known| known.clone());
        let place = match known {
            Some(known) => known,
            None => {
                let share = self.take_share(&key.0)?;
                self.places.entry(key.clone()).or_insert_with(|| Arc::new(Place::new(share))).clone()
            }
        };
        place.touch();
        Ok(Opening { store: self, key, place: Some(place) })
    }

    /// Takes a share of the limit; closes the least recently used session if none is free.
    fn take_share(&self, tenant: &Tenant) -> Result<Option<Share>, OpenError> {
        let Some(shares) = self.limit.get() else { return Ok(None) };
        let taken = shares.take(tenant).or_else(|| {
            self.evict_one(tenant, shares);
            shares.take(tenant)
        });
        taken.map(Some).ok_or_else(|| OpenError::TooMany { most: shares.most() })
    }

    /// Closes the least recently used session of the tenant, else of the tenants that exceed their
    /// guarantee.
    fn evict_one(&self, tenant: &Tenant, shares: &Shares) {
        let mut idle = self.keys(|(of, _), _| of == tenant || shares.has_common(of));
        idle.sort_by_key(|key| (key.0 != *tenant, self.places.get(key).map(|place| place.used())));
        if idle.iter().any(|key| self.evict(key, Duration::ZERO)) {
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Closes a session if it is idle; returns whether it was.
    fn evict(&self, key: &Key, after: Duration) -> bool {
        self.places.remove_if(key, |_, place| place.is_idle_for(after)).is_some()
    }

    fn keys(&self, which: impl Fn(&Key, &Arc<Place>) -> bool) -> Vec<Key> {
        let which = self.places.iter().filter(|place| which(place.key(), place.value()));
        which.map(|place| place.key().clone()).collect()
    }

    /// Returns the copy of a session, if it has readers.
    pub(super) fn copy(&self, key: &Key) -> Option<SessionCopy> {
        self.copies.get(key)?.upgrade()
    }

    /// Adds a copy; returns the one that was added first by concurrent callers.
    pub(super) fn add_copy(&self, key: Key, copy: SessionCopy) -> SessionCopy {
        self.copies.retain(|_, copy| !copy.has_ended());
        let mut known = self.copies.entry(key).or_insert_with(|| copy.downgrade());
        if let Some(first) = known.upgrade() {
            return first;
        }
        *known = copy.downgrade();
        copy
    }

    pub(super) fn has(&self, key: &Key) -> bool {
        self.places.contains_key(key)
    }

    /// Returns a tenant's open sessions, by id.
    pub(super) fn of(&self, tenant: &Tenant) -> Vec<Session> {
        let mut sessions = self.read(tenant, |session| Some(session.clone()));
        sessions.sort_by(|one, other| one.id().as_str().cmp(other.id().as_str()));
        sessions
    }

    /// Reads from a tenant's open sessions without a clone of them, which would be in use. Each is
    /// locked meanwhile.
    pub(super) fn read<T>(&self, tenant: &Tenant, read: impl Fn(&Session) -> Option<T>) -> Vec<T> {
        let own = self.places.iter().filter(|place| place.key().0 == *tenant);
        own.filter_map(|place| place.session.get().and_then(&read)).collect()
    }

    /// Reads the open sessions of these tenants that are active.
    pub(super) fn active(&self, is_wanted: impl Fn(&Tenant) -> bool) -> Vec<(Tenant, SessionView)> {
        let wanted = self.places.iter().filter(|place| is_wanted(&place.key().0));
        let view = |place: RefMulti<'_, Key, Arc<Place>>| {
            let session =
                place.session.get().filter(|session| session.is_active() && !session.has_failed())?;
            Some((place.key().0.clone(), view::open(session)))
        };
        wanted.filter_map(view).collect()
    }

    pub(super) fn get(&self, key: &Key) -> Option<Session> {
        self.places.get(key)?.session.get().cloned()
    }

    pub(super) fn remove(&self, key: &Key) -> bool {
        self.places.remove(key).is_some()
    }

    /// Removes a session that is not in use; returns whether it was there.
    pub(super) fn remove_unused(&self, key: &Key) -> Result<bool, InUse> {
        let mut in_use = None;
        let removed = self.places.remove_if(key, |_, place| {
            in_use = place.in_use();
            in_use.is_none()
        });
        in_use.map_or_else(|| Ok(removed.is_some()), Err)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("open", &self.len()).finish_non_exhaustive()
    }
}

/// A request that opens a session.
pub(super) struct Opening<'a> {
    store: &'a Store,
    key: Key,
    /// `Some` until it is dropped.
    place: Option<Arc<Place>>,
}

impl Opening<'_> {
    /// Returns the session, or opens it; concurrent requests wait for one of them.
    pub(super) async fn open_with<F>(&self, open: impl FnOnce() -> F) -> Result<Session, JournalError>
    where
        F: Future<Output = Result<Session, JournalError>>,
    {
        match &self.place {
            Some(place) => place.session.get_or_try_init(open).await.cloned(),
            None => open().await,
        }
    }
}

impl Drop for Opening<'_> {
    /// Removes the place if no session was opened and no other request waits for that.
    fn drop(&mut self) {
        // Of two requests that end at once, the later one then finds the map's reference alone.
        self.place = None;
        let is_left = |known: &Arc<Place>| Arc::strong_count(known) == 1 && known.session.get().is_none();
        self.store.places.remove_if(&self.key, |_, known| is_left(known));
    }
}

#[cfg(test)]
mod tests;
