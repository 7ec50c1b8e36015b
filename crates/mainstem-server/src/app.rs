//! The state that all requests share: the harness, the limits, and counters.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    future::pending,
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use mainstem::{
    Harness,
    event::OnLost,
    journal::JournalError,
    message::{Role, RunId, SessionId},
    policy::{Share, Shares, Tenant},
    prelude::{Run, RunHandle, Session},
    session::{DeleteError, FoundRun, Keep, OpenError, refusal},
};
use mainstem_api::{AnySession, Code, Host as _};
use mainstem_outbound::Reach;
use tokio::{
    sync::{Notify, Semaphore},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::{
    body::DATA_AT_ONCE,
    caller::Caller,
    capacity::Capacity,
    health::Health,
    hosts::Hosts,
    idempotency::Idempotency,
    live::LiveLists,
    metrics::{self, Metrics},
    observe::RequestSpans,
    problem::Problem,
    protocols::{Protocol, Pushes},
    readers::Readers,
    relay::Elsewhere,
    take_over, tasks,
    tenant_semaphores::TenantSemaphores,
    tokens::Tokens,
};

/// Limits of concurrent work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) runs: usize,
    /// How many sessions are open; `None` for what the limit of open files allows.
    pub(crate) sessions: Option<usize>,
    pub(crate) readers_per_session: usize,
    /// How long an idle session stays open; `None` for no limit.
    pub(crate) idle: Option<Duration>,
    /// How many jobs this server runs at once; 0 for none.
    pub(crate) jobs: usize,
    /// How many jobs of a tenant all servers run at once; `None` for no limit.
    pub(crate) jobs_per_tenant: Option<usize>,
    /// Which sessions are kept.
    pub(crate) keep: Keep,
}

/// What callers can ask for.
#[derive(Debug)]
pub(crate) struct Served {
    /// The agents that may lead a run besides the harness's own.
    pub(crate) agents: BTreeSet<String>,
    /// The models that callers may choose.
    pub(crate) models: BTreeSet<String>,
    /// The roles that an input may have.
    pub(crate) roles: Vec<Role>,
    /// The protocols beside `/v1`.
    pub(crate) protocols: BTreeSet<Protocol>,
    pub(crate) spans: RequestSpans,
    pub(crate) on_lost: OnLost,
    /// Where notifications may go that callers ask for.
    pub(crate) reach: Reach,
}

impl Served {
    /// Checks that a protocol is served.
    pub(crate) fn require(&self, protocol: Protocol) -> Result<(), Problem> {
        if self.protocols.contains(&protocol) {
            return Ok(());
        }
        let detail = format!("this server does not speak {protocol}; `serve --protocol {protocol}` does");
        Err(Problem::new(Code::BadQuery, detail))
    }
}

/// How many readers follow sessions at once, in all.
pub(crate) const READERS: usize = 512;

/// How many requests of a tenant are handled at once.
pub(crate) const REQUESTS: usize = 8;

/// How many bodies are read at once.
pub(crate) const BODIES: usize = 64;

/// How many states of sessions of other nodes are computed at once.
const FOLDS: usize = 2;

pub(crate) struct App {
    pub(crate) harness: Harness,
    pub(crate) tokens: Tokens,
    pub(crate) hosts: Hosts,
    pub(crate) limits: Limits,
    pub(crate) served: Served,
    pub(crate) idempotency: Idempotency,
    pub(crate) metrics: Metrics,
    /// The runs, shared among tenants.
    run_shares: Arc<Shares>,
    pub(crate) readers: Readers,
    pub(crate) live: LiveLists,
    /// Limits how many states of sessions of other nodes are computed at once: that of a long
    /// session takes seconds of a processor.
    pub(crate) folds: Arc<Semaphore>,
    pub(crate) body_shares: Arc<Shares>,
    pub(crate) connection_shares: Arc<Shares>,
    /// The connections of readers with links, which leave those of their tenant alone.
    pub(crate) link_connection_shares: Arc<Shares>,
    pub(crate) capacity: Capacity,
    /// One a tenant: to compile a schema takes a processor's time.
    pub(crate) schema_permits: TenantSemaphores,
    pub(crate) request_permits: TenantSemaphores,
    /// Those of readers with links.
    pub(crate) link_request_permits: TenantSemaphores,
    /// How many bodies of data are read at once, of a tenant and in all.
    pub(crate) tenant_data_permits: TenantSemaphores,
    pub(crate) data_permits: Arc<Semaphore>,
    /// How many tokens of links are looked up at once.
    pub(crate) link_permits: Semaphore,
    pub(crate) health: Health,
    /// How many jobs this server runs.
    pub(crate) active_jobs: AtomicUsize,
    /// Told when a job is added or cancelled here.
    pub(crate) jobs_added: Notify,
    /// The notifications of A2A's tasks.
    pub(crate) pushes: Pushes,
    /// Cancelled when the server begins to drain: runs are refused.
    pub(crate) draining: CancellationToken,
    /// Cancelled when the server stops: streams end.
    pub(crate) stop: CancellationToken,
}

/// The shortest interval between searches for idle sessions.
const SHORTEST: Duration = Duration::from_millis(100);

impl App {
    pub(crate) fn new(
        harness: Harness,
        tokens: Tokens,
        hosts: Hosts,
        limits: Limits,
        served: Served,
    ) -> Self {
        let shares = |most| Shares::new(most, tokens.callers());
        let run_shares = shares(limits.runs);
        let readers = Readers::new(shares(READERS), limits.readers_per_session);
        let capacity = Capacity::of_process();
        // A harness that is served twice has one limit.
        harness.sessions().store().set_limit(shares(limits.sessions.unwrap_or(capacity.sessions)));
        let pushes = Pushes::new(served.reach.clone(), tokens.callers());
        let metrics = Metrics::new(metrics::figures(&harness));
        let (body_shares, connection_shares) = (shares(BODIES), shares(capacity.connections));
        let link_connection_shares = shares(capacity.connections / 4);
        Self {
            harness,
            tokens,
            hosts,
            limits,
            served,
            idempotency: Idempotency::new(),
            metrics,
            run_shares,
            readers,
            live: LiveLists::default(),
            folds: Arc::new(Semaphore::new(FOLDS)),
            body_shares,
            connection_shares,
            link_connection_shares,
            capacity,
            schema_permits: TenantSemaphores::new(1),
            request_permits: TenantSemaphores::new(REQUESTS),
            link_request_permits: TenantSemaphores::new(REQUESTS / 2),
            tenant_data_permits: TenantSemaphores::new(1),
            data_permits: Arc::new(Semaphore::new(DATA_AT_ONCE)),
            link_permits: Semaphore::new(REQUESTS),
            health: Health::default(),
            active_jobs: AtomicUsize::new(0),
            jobs_added: Notify::new(),
            pushes,
            draining: CancellationToken::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Opens a caller's session, which may be new.
    pub(crate) async fn open(self: &Arc<Self>, caller: &Caller, id: &str) -> Result<Session, Problem> {
        self.leave_to_others(caller, &id.parse::<SessionId>()?).await?;
        let opened = caller.harness.open_session(id).await;
        let session = self.usable(opened.map_err(|error| self.unopened(&error))?)?;
        take_over::take_up(self, &session, &caller.tenant).await;
        Ok(session)
    }

    /// Returns a caller's session that is open or recorded.
    pub(crate) async fn session(self: &Arc<Self>, caller: &Caller, id: &str) -> Result<Session, Problem> {
        self.find(caller, &id.parse::<SessionId>()?).await
    }

    async fn find(self: &Arc<Self>, caller: &Caller, id: &SessionId) -> Result<Session, Problem> {
        self.leave_to_others(caller, id).await?;
        let found = caller.harness.sessions().find(id).await;
        let found = found.map_err(|error| self.unopened(&error))?;
        let session = self.usable(found.ok_or_else(|| Problem::not_found("session", id.as_str()))?)?;
        take_over::take_up(self, &session, &caller.tenant).await;
        Ok(session)
    }

    /// Returns the record of a session that another process has open for writing.
    ///
    /// # Errors
    /// `refused`, if it has another cause, or if the servers share a database: then the request
    /// goes to the node that has the session open.
    pub(crate) fn record(
        &self,
        caller: &Caller,
        id: &str,
        refused: Problem,
    ) -> Result<Arc<dyn AnySession>, Problem> {
        let sessions = caller.harness.sessions();
        let is_alone = sessions.journal().is_some_and(|journal| journal.node().is_none());
        if !is_alone || refused.body().code != Code::SessionBusy {
            return Err(refused);
        }
        Ok(sessions.records().session(&id.parse()?))
    }

    /// Refuses a session that is not open here while this node drains: it would end the turn that
    /// another node has left, and not take it up.
    async fn leave_to_others(&self, caller: &Caller, id: &SessionId) -> Result<(), Problem> {
        let is_left = self.draining.is_cancelled() && take_over::is_shared(self);
        let Some(journal) = caller.harness.journal().filter(|_| is_left) else { return Ok(()) };
        if caller.harness.sessions().get(id).is_some() {
            return Ok(());
        }
        match journal.is_open(id).await {
            Ok(true) => Err(self.unreadable(&JournalError::Busy { session: id.clone() })),
            Ok(false) => Err(shutting_down().left_to_others()),
            Err(error) => Err(self.unreadable(&error)),
        }
    }

    /// Refuses a session whose record has failed, so that no reader sees events that a restart
    /// could take back. It is opened again once it has no run.
    fn usable(&self, session: Session) -> Result<Session, Problem> {
        if !session.has_failed() {
            return Ok(session);
        }
        self.health.failed();
        Err(unrecorded())
    }

    /// Closes idle sessions periodically; never returns.
    pub(crate) async fn close_idle_sessions(&self) -> Infallible {
        let Some(idle) = self.limits.idle else { return pending().await };
        loop {
            sleep(idle.max(SHORTEST)).await;
            self.harness.sessions().store().close_idle(idle);
        }
    }

    /// Closes sessions while the server drains, so that other nodes open them; never returns.
    pub(crate) async fn hand_over_sessions(&self) -> Infallible {
        self.draining.cancelled().await;
        loop {
            self.harness.sessions().store().close_idle(SHORTEST);
            sleep(SHORTEST).await;
        }
    }

    /// Deletes a caller's session permanently, unless it is in use.
    pub(crate) async fn delete(&self, caller: &Caller, id: &str) -> Result<(), Problem> {
        let deleted = caller.harness.delete_session(&id.parse()?).await;
        deleted.map_err(|error| match error {
            DeleteError::Journal(error) => self.unreadable(&error),
            DeleteError::Tasks(error) => tasks::unreadable(&error),
            DeleteError::InUse(_) => Problem::from(refusal::not_deleted(&error)).retry_after(5),
            _ => refusal::not_deleted(&error).into(),
        })
    }

    /// Drives a run to its end.
    pub(crate) fn drive(self: &Arc<Self>, run: Run, share: Share) -> RunHandle {
        let ending = Ending { app: self.clone(), run: run.handle(), _share: share };
        run.detach_with(ending)
    }

    /// Returns a caller's run, of this process or an earlier one.
    pub(crate) async fn run(self: &Arc<Self>, caller: &Caller, id: &str) -> Result<FoundRun, Problem> {
        self.find_run(caller, &id.parse()?).await
    }

    /// Returns a caller's run of this id.
    pub(crate) async fn find_run(self: &Arc<Self>, caller: &Caller, id: &RunId) -> Result<FoundRun, Problem> {
        let unknown = || Problem::not_found("run", id.as_str());
        let session = caller.harness.sessions().session_of(id).await;
        let session = session.map_err(|error| self.unreadable(&error))?;
        // The harness without a tenant finds the runs of tenants, too.
        let visible = session.filter(|session| session.tenant().is_none()).ok_or_else(unknown)?;
        if let Some(found) = self.find(caller, &visible).await?.find_run(id) {
            return Ok(found);
        }
        let Some(journal) = caller.harness.journal() else { return Err(unknown()) };
        match journal.queued_run(id).await.map_err(|error| self.unreadable(&error))? {
            Some(_) => {
                let detail = "the run is queued, and waits until this server has room for it";
                Err(Problem::new(Code::TooManyRuns, detail).retry_after(5))
            }
            None => Err(unknown()),
        }
    }

    /// Returns why a session can't be opened.
    fn unopened(&self, error: &OpenError) -> Problem {
        match error {
            OpenError::Id(error) => error.clone().into(),
            OpenError::Journal(error) => self.unreadable(error),
            _ => {
                self.metrics.session_refused();
                Problem::new(Code::TooManySessions, error.to_string()).retry_after(5)
            }
        }
    }

    /// Returns the problem of an unavailable journal, or of a session that another process writes.
    /// The cause names files and is logged for the operator only.
    pub(crate) fn unreadable(&self, error: &JournalError) -> Problem {
        if let JournalError::Busy { session } = error {
            return Problem::new(Code::SessionBusy, error.to_string())
                .with(Elsewhere::MEMBER, session.as_str());
        }
        tracing::error!(%error, "the journal can't be read or written");
        self.health.failed();
        unrecorded()
    }

    /// Reserves one of the runs for a tenant.
    pub(crate) fn admit(&self, tenant: &Tenant) -> Result<Share, Problem> {
        if self.draining.is_cancelled() {
            return Err(shutting_down().left_to_others());
        }
        self.run_shares.take(tenant).ok_or_else(|| {
            let most = self.run_shares.most();
            let detail = format!("your share of the {most} runs that this server drives at once is in use");
            Problem::new(Code::TooManyRuns, detail).retry_after(5)
        })
    }

    /// Returns whether a tenant has a token here; the harness without a tenant is always served.
    pub(crate) fn serves(&self, tenant: &Tenant) -> bool {
        tenant.as_ref().is_none_or(|tenant| self.tokens.tenants().any(|known| known == tenant.as_str()))
    }

    /// Returns what limits the runs.
    pub(crate) fn run_shares(&self) -> &Shares {
        &self.run_shares
    }

    /// Returns how many runs are queued or active.
    pub(crate) fn live_runs(&self) -> usize {
        self.run_shares.taken()
    }
}

/// Held by a run until it is over.
struct Ending {
    app: Arc<App>,
    run: RunHandle,
    _share: Share,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.app.metrics.ended(self.run.status().outcome());
    }
}

/// Returns the problem of a request for a run while the server drains.
pub(crate) fn shutting_down() -> Problem {
    Problem::new(Code::ShuttingDown, "the server is shutting down").retry_after(5)
}

/// Returns the problem of an unavailable journal.
pub(crate) fn unrecorded() -> Problem {
    let detail = "sessions can't be read or recorded at the moment; the server's log says why";
    Problem::new(Code::JournalUnavailable, detail).retry_after(5)
}
