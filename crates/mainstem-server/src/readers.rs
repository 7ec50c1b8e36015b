//! The readers of sessions: their limits, and the frames that they share.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use dashmap::DashMap;
use mainstem::{
    event::{FleetState, SessionLog},
    policy::{Share, Shares, Tenant},
    prelude::Session,
    session::SessionCopy,
};
use mainstem_api::Code;
use tokio::{sync::Semaphore, time::sleep};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    app::{App, unrecorded},
    caller::Caller,
    encoded::Encoded,
    links::LinkWatch,
    problem::Problem,
    sessions::committed_fleet,
    take_over::is_shared,
};

/// How often a node that drains looks whether a session with a reader is idle.
const IDLE_POLL: Duration = Duration::from_millis(100);

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

    /// Reserves a reader for a tenant.
    pub(crate) fn admit(&self, tenant: &Tenant) -> Result<Share, Problem> {
        let all = self.shares.most();
        let detail = || format!("your share of the {all} readers that this server has at once is in use");
        self.shares.take(tenant).ok_or_else(|| refused(detail()))
    }

    /// Returns what limits the readers of all sessions.
    pub(crate) fn shares(&self) -> &Shares {
        &self.shares
    }

    /// Returns how many readers there are.
    pub(crate) fn count(&self) -> usize {
        self.shares.taken()
    }
}

fn refused(detail: String) -> Problem {
    Problem::new(Code::TooManyReaders, detail).retry_after(2)
}

/// Where the events of a session come from.
#[derive(Clone)]
pub(crate) enum Source {
    /// From the session itself, which is open in this process.
    Open(Session),
    /// From the journal: another process writes it.
    Elsewhere(SessionCopy),
}

impl Source {
    pub(crate) fn log(&self) -> &Arc<SessionLog> {
        match self {
            Self::Open(session) => session.log(),
            Self::Elsewhere(copy) => copy.log(),
        }
    }

    /// Returns the state of the fleet after an event; `None` if there is none.
    pub(crate) async fn fleet_at(&self, app: &App, seq: u64) -> Option<FleetState> {
        match self {
            Self::Open(session) => session.fleet_at(seq).await,
            Self::Elsewhere(copy) => fleet_of_copy(&app.folds, copy, seq).await,
        }
    }

    /// Returns the state of the fleet after the events that are committed.
    pub(crate) async fn fleet(&self, app: &App) -> Result<FleetState, Problem> {
        match self {
            Self::Open(session) => committed_fleet(session).await,
            Self::Elsewhere(copy) => {
                fleet_of_copy(&app.folds, copy, copy.log().last_seq()).await.ok_or_else(unrecorded)
            }
        }
    }

    /// Identifies the log among all of this process.
    fn address(&self) -> usize {
        Arc::as_ptr(self.log()).addr()
    }
}

impl From<&Session> for Source {
    fn from(session: &Session) -> Self {
        Self::Open(session.clone())
    }
}

/// Returns the state of a copy's fleet after an event; `None` if there is none. It is computed in a
/// task of its own: a caller that is not polled holds no permit.
pub(crate) async fn fleet_of_copy(
    folds: &Arc<Semaphore>,
    copy: &SessionCopy,
    seq: u64,
) -> Option<FleetState> {
    let (folds, copy) = (folds.clone(), copy.clone());
    let fold = async move {
        let _permit = folds.acquire_owned().await;
        copy.fleet_at(seq).await
    };
    #[expect(clippy::disallowed_methods, reason = "it is aborted when the caller is dropped")]
    let fold = AbortOnDropHandle::new(tokio::spawn(fold));
    fold.await.ok()?
}

/// The permit of a reader, which counts for its session and its tenant. The source stays open until
/// it is dropped.
pub(crate) struct ReaderPermit {
    app: Arc<App>,
    source: Source,
    group: Arc<Group>,
    /// The link that the reader has.
    pub(crate) link: Option<LinkWatch>,
    _share: Share,
}

impl ReaderPermit {
    /// Acquires a permit.
    ///
    /// # Errors
    /// The session or the tenant has as many readers as it may have.
    pub(crate) fn acquire(
        app: &Arc<App>,
        caller: &Caller,
        source: impl Into<Source>,
    ) -> Result<Self, Problem> {
        let source = source.into();
        let share = app.readers.admit(&caller.tenant)?;
        let Readers { max_per_session, groups, .. } = &app.readers;
        // Readers with links leave room for the session's tenant.
        let most = if caller.link.is_some() { max_per_session / 2 } else { *max_per_session };
        let group = groups.entry(source.address()).or_default();
        if group.count.load(Ordering::Acquire) >= most {
            return Err(refused(format!("{most} readers follow this session, which is the limit")));
        }
        group.count.fetch_add(1, Ordering::AcqRel);
        let link = caller.harness.journal().zip(caller.link.as_ref());
        let link = link.map(|(journal, link)| LinkWatch::new(journal.clone(), link.clone()));
        Ok(Self { app: app.clone(), source, group: group.clone(), link, _share: share })
    }

    /// Waits until another node can have the session, because this one drains and the session is
    /// idle.
    pub(crate) async fn left_to_others(&self) {
        let Source::Open(session) = &self.source else { return pending().await };
        if !is_shared(&self.app) {
            return pending().await;
        }
        self.app.draining.cancelled().await;
        while session.is_active() {
            sleep(IDLE_POLL).await;
        }
    }

    /// Returns the frames that readers of the session share; `None` for its only reader.
    pub(crate) fn shared(&self) -> Option<&Encoded> {
        (self.group.count.load(Ordering::Acquire) > 1).then_some(&self.group.encoded)
    }
}

impl Drop for ReaderPermit {
    fn drop(&mut self) {
        let is_last = |_: &usize, group: &Arc<Group>| group.count.fetch_sub(1, Ordering::AcqRel) == 1;
        self.app.readers.groups.remove_if(&self.source.address(), is_last);
    }
}
