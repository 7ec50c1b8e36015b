//! The place of an open session: when it was requested, and whether it can be closed.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use mainstem_policy::Share;
use tokio::{sync::OnceCell, time::Instant};

use super::InUse;
use crate::Session;

/// The place of a session that is open, or is being opened.
pub(super) struct Place {
    pub(super) session: OnceCell<Session>,
    /// When it was last requested.
    used: Mutex<Instant>,
    _share: Option<Share>,
}

impl Place {
    pub(super) fn new(share: Option<Share>) -> Self {
        Self { session: OnceCell::new(), used: Mutex::new(Instant::now()), _share: share }
    }

    fn used_at(&self) -> MutexGuard<'_, Instant> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn used(&self) -> Instant {
        *self.used_at()
    }

    pub(super) fn touch(&self) {
        *self.used_at() = Instant::now();
    }

    pub(super) fn has_failed(&self) -> bool {
        self.session.get().is_some_and(Session::has_failed)
    }

    /// Returns `true` if the record has failed and no run is left that would report the failure.
    pub(super) fn is_lost(&self) -> bool {
        let is_running = |session: &Session| matches!(session.in_use(), Some(InUse::Run | InUse::Tasks));
        self.session.get().is_some_and(|session| session.has_failed() && !is_running(session))
    }

    /// Returns what the session is in use for. Right only while the map is locked: a request that
    /// has found the place holds it until it has its clone of the session.
    pub(super) fn in_use(self: &Arc<Self>) -> Option<InUse> {
        if Arc::strong_count(self) > 1 {
            return Some(InUse::Held);
        }
        self.session.get().and_then(Session::in_use)
    }

    /// Returns `true` if the session was not requested for this long, is not in use, and can be
    /// opened again from its record.
    pub(super) fn is_idle_for(self: &Arc<Self>, time: Duration) -> bool {
        let is_recorded = self.session.get().is_some_and(Session::is_recorded);
        is_recorded && self.used().elapsed() >= time && self.in_use().is_none()
    }
}
