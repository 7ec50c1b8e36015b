//! The readers of sessions: their limits, and the frames that they share.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use dashmap::DashMap;
use mainstem::{
    policy::{Share, Shares},
    prelude::Session,
};
use mainstem_api::Code;

use crate::{app::App, caller::Caller, encoded::Encoded, problem::Problem};

/// The readers of all sessions.
pub(crate) struct Readers {
    shares: Arc<Shares>,
    /// The limit for one session.
    max_per_session: usize,
    /// By the address of the session's log, which is another one after the session is reopened.
    groups: DashMap<usize, Arc<Group>>,
}

/// The readers of one session.
#[derive(Default)]
struct Group {
    /// Changed only while the map is locked.
    count: AtomicUsize,
    encoded: Encoded,
}

impl Readers {
    pub(crate) fn new(shares: Arc<Shares>, max_per_session: usize) -> Self {
        Self { shares, max_per_session, groups: DashMap::new() }
    }

    /// Returns how many readers there are.
    pub(crate) fn count(&self) -> usize {
        self.shares.taken()
    }
}

/// The permit of a reader, which counts for its session and its tenant. The session stays open
/// until it is dropped.
pub(crate) struct ReaderPermit {
    app: Arc<App>,
    session: Session,
    group: Arc<Group>,
    _share: Share,
}

impl ReaderPermit {
    /// Acquires a permit.
    ///
    /// # Errors
    /// The session or the tenant has as many readers as it may have.
    pub(crate) fn acquire(app: &Arc<App>, caller: &Caller, session: &Session) -> Result<Self, Problem> {
        let refused = |detail: String| Problem::new(Code::TooManyReaders, detail).retry_after(2);
        let Readers { shares, max_per_session, groups } = &app.readers;
        let share = shares.take(&caller.tenant).ok_or_else(|| {
            let all = shares.most();
            refused(format!("your share of the {all} readers that this server has at once is in use"))
        })?;
        let group = groups.entry(address(session)).or_default();
        if group.count.load(Ordering::Acquire) >= *max_per_session {
            return Err(refused(format!(
                "{max_per_session} readers follow this session, which is the limit"
            )));
        }
        group.count.fetch_add(1, Ordering::AcqRel);
        Ok(Self { app: app.clone(), session: session.clone(), group: group.clone(), _share: share })
    }

    /// Returns the frames that readers of the session share; `None` for its only reader.
    pub(crate) fn shared(&self) -> Option<&Encoded> {
        (self.group.count.load(Ordering::Acquire) > 1).then_some(&self.group.encoded)
    }
}

impl Drop for ReaderPermit {
    fn drop(&mut self) {
        let is_last = |_: &usize, group: &Arc<Group>| group.count.fetch_sub(1, Ordering::AcqRel) == 1;
        self.app.readers.groups.remove_if(&address(&self.session), is_last);
    }
}

fn address(session: &Session) -> usize {
    Arc::as_ptr(session.log()).addr()
}
