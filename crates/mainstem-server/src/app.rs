//! What all requests share: the harness, who may ask, the sessions and runs that there are, how
//! much is going on.

use std::{collections::BTreeSet, convert::Infallible, future::pending, sync::Arc, time::Duration};

use dashmap::DashMap;
use mainstem::{
    Harness,
    journal::{JournalError, SessionSummary},
    message::{Role, RunId, SessionId},
    prelude::Run,
};
use mainstem_api::Code;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    caller::Caller,
    capacity::Capacity,
    conversation::{Conversation, busy},
    health::Health,
    hosts::Hosts,
    live::Live,
    metrics::Metrics,
    once::Once,
    problem::Problem,
    runs::Found,
    shares::{Share, Shares, Tenant},
    tasks,
    tokens::Tokens,
    turns::Turns,
};

/// How much may go on at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) runs: usize,
    /// How many sessions are open; as many as there is room for without.
    pub(crate) sessions: Option<usize>,
    pub(crate) readers_per_session: usize,
    /// How long an idle session stays open; `None` for no limit.
    pub(crate) idle: Option<Duration>,
}

/// How many readers follow sessions, in all.
pub(crate) const READERS: usize = 512;

/// How many requests of a tenant are worked on at once.
pub(crate) const REQUESTS: usize = 8;

/// How many bodies are read at once.
pub(crate) const BODIES: usize = 64;

pub(crate) struct App {
    pub(crate) harness: Harness,
    pub(crate) tokens: Tokens,
    pub(crate) hosts: Hosts,
    pub(crate) limits: Limits,
    /// Who may lead a run besides the harness's own agent.
    pub(crate) agents: BTreeSet<String>,
    /// The roles that an input may have.
    pub(crate) roles: Vec<Role>,
    pub(crate) once: Once,
    pub(crate) metrics: Metrics,
    /// Which tenant has how many of the runs.
    run_shares: Arc<Shares>,
    pub(crate) reader_shares: Arc<Shares>,
    pub(crate) body_shares: Arc<Shares>,
    pub(crate) connection_shares: Arc<Shares>,
    pub(crate) session_shares: Arc<Shares>,
    pub(crate) capacity: Capacity,
    /// Each tenant's schemas are compiled one at a time: that takes a processor's time.
    pub(crate) schema_turns: Turns,
    pub(crate) request_turns: Turns,
    pub(crate) health: Health,
    /// No more runs, and readers are sent away.
    pub(crate) stop: CancellationToken,
    /// By tenant and id: callers choose the ids of their sessions.
    sessions: DashMap<Key, Arc<Conversation>>,
    /// Queued and active runs; sessions know their ended ones.
    runs: DashMap<RunId, Arc<Live>>,
}

/// The shortest interval between searches for idle sessions.
const SHORTEST: Duration = Duration::from_millis(100);

/// A session of a tenant.
pub(crate) type Key = (Tenant, String);

impl App {
    pub(crate) fn new(
        harness: Harness,
        tokens: Tokens,
        hosts: Hosts,
        limits: Limits,
        agents: BTreeSet<String>,
        roles: Vec<Role>,
    ) -> Self {
        let shares = |most| Shares::new(most, tokens.callers());
        let (run_shares, reader_shares) = (shares(limits.runs), shares(READERS));
        let capacity = Capacity::of_process();
        let session_shares = shares(limits.sessions.unwrap_or(capacity.sessions));
        let (body_shares, connection_shares) = (shares(BODIES), shares(capacity.connections));
        Self {
            harness,
            tokens,
            hosts,
            limits,
            agents,
            roles,
            once: Once::new(),
            metrics: Metrics::new(),
            run_shares,
            reader_shares,
            body_shares,
            connection_shares,
            session_shares,
            capacity,
            schema_turns: Turns::new(1),
            request_turns: Turns::new(REQUESTS),
            health: Health::default(),
            stop: CancellationToken::new(),
            sessions: DashMap::new(),
            runs: DashMap::new(),
        }
    }

    /// A caller's session, begun if need be.
    pub(crate) async fn open(&self, caller: &Caller, id: &str) -> Result<Arc<Conversation>, Problem> {
        if !is_id(id) {
            let detail = "a session's id has 1 to 128 letters, digits, -, _, . and :";
            return Err(Problem::new(Code::BadSessionId, detail));
        }
        if let Some(known) = self.opened(caller, id)? {
            return Ok(known);
        }
        let share = self.room_for_session(&caller.tenant)?;
        let recorded = self.recorded(caller, id).await?;
        let opened = caller.harness.open_session(id.to_owned()).await;
        let session = opened.map_err(|error| self.unreadable(&error))?;
        let begin = || Arc::new(Conversation::new(session, caller.harness.clone(), recorded.as_ref(), share));
        Ok(self.sessions.entry(key(caller, id)).or_insert_with(begin).clone())
    }

    /// Returns a caller's open session. A session whose record has failed is closed as soon as none
    /// of its runs is active, and is then opened again; until then it is an error, so that no
    /// reader sees events that a restart could take back.
    fn opened(&self, caller: &Caller, id: &str) -> Result<Option<Arc<Conversation>>, Problem> {
        let key = key(caller, id);
        let Some(found) = self.sessions.get(&key).map(|found| found.clone()) else { return Ok(None) };
        found.touch();
        if !found.is_lost() {
            return Ok(Some(found));
        }
        self.health.failed();
        if found.is_running() {
            return Err(unrecorded());
        }
        self.close(&key, &found);
        Ok(None)
    }

    /// Forgets a session that is open here, unless it was opened anew.
    fn close(&self, key: &Key, conversation: &Arc<Conversation>) {
        if self.sessions.remove_if(key, |_, known| Arc::ptr_eq(known, conversation)).is_some() {
            conversation.close();
        }
    }

    /// Whether the record of an open session has failed.
    pub(crate) fn has_lost_session(&self) -> bool {
        self.sessions.iter().any(|open| open.is_lost())
    }

    /// Closes the sessions whose record has failed, so that they are opened anew.
    pub(crate) fn close_lost(&self) {
        let lost = self.sessions.iter().filter(|open| open.is_lost() && !open.is_running());
        let lost: Vec<_> = lost.map(|open| (open.key().clone(), open.value().clone())).collect();
        lost.iter().for_each(|(key, conversation)| self.close(key, conversation));
    }

    /// Closes idle sessions periodically; never returns.
    pub(crate) async fn let_go_now_and_then(&self) -> Infallible {
        let Some(idle) = self.limits.idle else { return pending().await };
        loop {
            sleep(idle.max(SHORTEST)).await;
            self.let_go();
        }
    }

    /// Closes idle sessions; the next request opens them again.
    pub(crate) fn let_go(&self) {
        let Some(idle) = self.limits.idle else { return };
        let left = self.sessions.iter().filter(|entry| entry.is_left_for(idle));
        let left: Vec<_> = left.map(|entry| entry.key().clone()).collect();
        left.iter().for_each(|key| _ = self.close_left(key, idle));
    }

    /// Closes a session if it was idle for this long; returns whether it did.
    fn close_left(&self, key: &Key, idle: Duration) -> bool {
        let is_at_work = self.has_run(key);
        let closed = self.sessions.remove_if(key, |_, conversation| {
            // A request that found it in the meantime holds a reference.
            let is_alone = Arc::strong_count(conversation) == 1;
            let is_left = is_alone && !is_at_work && conversation.is_left_for(idle);
            if is_left {
                conversation.close();
            }
            is_left
        });
        closed.is_some()
    }

    /// Takes a place for one more open session of a tenant; if none is free, closes the least
    /// recently used session first.
    fn room_for_session(&self, tenant: &Tenant) -> Result<Share, Problem> {
        let shares = &self.session_shares;
        let taken = shares.take(tenant).or_else(|| {
            self.close_idlest(tenant);
            shares.take(tenant)
        });
        taken.ok_or_else(|| {
            self.metrics.session_refused();
            let detail = format!(
                "your share of the {} sessions that this server has open at once is in use, and none of yours can be closed: cancel a run, \
                 stop reading, or delete a session",
                shares.most()
            );
            Problem::new(Code::TooManySessions, detail).retry_after(5)
        })
    }

    /// Closes the least recently used session of the tenant, else of the tenants that exceed their
    /// guarantee.
    fn close_idlest(&self, tenant: &Tenant) {
        let has_too_many = |of: &Tenant| self.session_shares.has_common(of);
        let candidates =
            self.sessions.iter().filter(|open| open.key().0 == *tenant || has_too_many(&open.key().0));
        let mut idlest: Vec<_> =
            candidates.map(|open| (open.key().0 != *tenant, open.asked(), open.key().clone())).collect();
        idlest.sort_by_key(|(is_other, asked, _)| (*is_other, *asked));
        if idlest.iter().any(|(.., key)| self.close_left(key, Duration::ZERO)) {
            self.metrics.session_evicted();
        }
    }

    /// A caller's session that there is, here or in the journal.
    pub(crate) async fn session(&self, caller: &Caller, id: &str) -> Result<Arc<Conversation>, Problem> {
        match self.opened(caller, id)? {
            Some(found) => Ok(found),
            None if is_id(id) && self.recorded(caller, id).await?.is_some() => self.open(caller, id).await,
            None => Err(Problem::not_found("session", id)),
        }
    }

    /// A caller's sessions that are open here, by id.
    pub(crate) fn sessions(&self, caller: &Caller) -> Vec<(String, Arc<Conversation>)> {
        let own = self.sessions.iter().filter(|entry| entry.key().0 == caller.tenant);
        let mut sessions: Vec<_> = own.map(|entry| (entry.key().1.clone(), entry.value().clone())).collect();
        sessions.sort_by(|one, other| one.0.cmp(&other.0));
        sessions
    }

    /// Deletes a caller's session permanently, unless it is in use.
    pub(crate) async fn delete(&self, caller: &Caller, id: &str) -> Result<(), Problem> {
        let key = key(caller, id);
        // A closed session is not opened for this, so that a damaged one can be deleted, too.
        match self.opened(caller, id)? {
            Some(conversation) => {
                conversation.is_idle()?;
                if self.has_run(&key) {
                    return Err(busy("a run of it is queued or active: cancel that first"));
                }
                self.sessions.remove(&key);
                conversation.close();
            }
            None if is_id(id) && self.recorded(caller, id).await?.is_some() => {}
            None => return Err(Problem::not_found("session", id)),
        }
        let session = SessionId::new(id);
        // A new session of the same name would receive their results.
        let forgotten = caller.harness.tasks().forget_below(&session).await;
        forgotten.map_err(|error| tasks::unreadable(&error))?;
        if let Some(journal) = caller.harness.journal() {
            journal.delete(&session).await.map_err(|error| self.unreadable(&error))?;
        }
        Ok(())
    }

    /// Drives a run to its end. While it is queued or active it is known by its id; then it leaves
    /// every map and gauge at once.
    pub(crate) fn drive(self: &Arc<Self>, run: Run, tenant: &Tenant, share: Share) -> Arc<Live> {
        let live = Arc::new(Live::new(run.handle(), tenant));
        self.runs.insert(live.handle.id().clone(), live.clone());
        // Dropped last, also if the harness is shut down before the run's end.
        run.detach_with(Ending { app: self.clone(), live: live.clone(), _share: share });
        live
    }

    fn has_run(&self, key: &Key) -> bool {
        self.runs.iter().any(|run| run.of == *key)
    }

    /// A caller's run, of this process or an earlier one.
    pub(crate) async fn run(&self, caller: &Caller, id: &str) -> Result<Found, Problem> {
        let unknown = || Problem::not_found("run", id);
        let run = RunId::new(id);
        if let Some(live) = self.live(caller, &run) {
            let conversation = self.session(caller, live.handle.session().id().as_str()).await?;
            return Ok(Found::live(conversation, live));
        }
        let place = match caller.harness.journal() {
            Some(journal) => journal.run(&run).await.map_err(|error| self.unreadable(&error))?,
            None => None,
        };
        let open = match place {
            Some(place) if is_id(place.session.as_str()) => {
                vec![self.session(caller, place.session.as_str()).await?]
            }
            Some(_) => Vec::new(),
            None => self.sessions(caller).into_iter().map(|(_, conversation)| conversation).collect(),
        };
        let mut found = open.into_iter().filter_map(|conversation| {
            let record = conversation.session.runs().into_iter().find(|record| record.id == run)?;
            Some(Found::past(conversation, record))
        });
        found.next().ok_or_else(unknown)
    }

    fn live(&self, caller: &Caller, id: &RunId) -> Option<Arc<Live>> {
        let found = self.runs.get(id).map(|entry| entry.clone());
        found.filter(|run| run.of.0 == caller.tenant)
    }

    /// A session's runs: those that have begun, then those that wait for their turn.
    pub(crate) fn runs_of(&self, caller: &Caller, conversation: &Arc<Conversation>) -> Vec<Found> {
        let records = conversation.session.runs();
        let begun: Vec<_> = records.iter().map(|record| record.id.clone()).collect();
        let mut found: Vec<_> = records
            .into_iter()
            .map(|record| match self.live(caller, &record.id) {
                Some(live) => Found::live(conversation.clone(), live),
                None => Found::past(conversation.clone(), record),
            })
            .collect();
        let key = key(caller, conversation.session.id().as_str());
        let waits = |run: &Arc<Live>| run.of == key && !begun.contains(run.handle.id());
        let mut waiting: Vec<_> = self.runs.iter().map(|entry| entry.clone()).filter(waits).collect();
        waiting.sort_by_key(|run| run.handle.requested_at());
        found.extend(waiting.into_iter().map(|run| Found::live(conversation.clone(), run)));
        found
    }

    /// Returns what the journal has of a session.
    async fn recorded(&self, caller: &Caller, id: &str) -> Result<Option<SessionSummary>, Problem> {
        match caller.harness.journal() {
            Some(journal) => journal.session(&id.into()).await.map_err(|error| self.unreadable(&error)),
            None => Ok(None),
        }
    }

    /// Returns the problem of an unavailable journal, or of a session that another process writes.
    /// The cause names files and is logged for the operator only.
    pub(crate) fn unreadable(&self, error: &JournalError) -> Problem {
        if let JournalError::Busy { .. } = error {
            return Problem::new(Code::SessionBusy, error.to_string());
        }
        tracing::error!(%error, "the journal can't be read or written");
        self.health.failed();
        unrecorded()
    }

    /// Takes a place for one more run of a tenant.
    pub(crate) fn admit(&self, tenant: &Tenant) -> Result<Share, Problem> {
        if self.stop.is_cancelled() {
            let detail = "the server is shutting down";
            return Err(Problem::new(Code::ShuttingDown, detail).retry_after(5));
        }
        self.run_shares.take(tenant).ok_or_else(|| {
            let most = self.run_shares.most();
            let detail = format!("your share of the {most} runs that this server drives at once is in use");
            Problem::new(Code::TooManyRuns, detail).retry_after(5)
        })
    }

    /// How many runs are queued or active.
    pub(crate) fn live_runs(&self) -> usize {
        self.runs.len()
    }

    /// How many sessions are open, and how many readers they have.
    pub(crate) fn open_sessions(&self) -> (usize, usize) {
        let readers = self.sessions.iter().map(|open| open.readers()).sum();
        (self.sessions.len(), readers)
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Self { app, live, .. } = self;
        app.runs.remove(live.handle.id());
        app.metrics.ended(live.handle.status().outcome());
        live.over.cancel();
    }
}

/// Takes a run out of everything that knows live ones.
struct Ending {
    app: Arc<App>,
    live: Arc<Live>,
    _share: Share,
}

fn key(caller: &Caller, id: &str) -> Key {
    (caller.tenant.clone(), id.to_owned())
}

/// Returns the problem of an unavailable journal.
pub(crate) fn unrecorded() -> Problem {
    let detail = "sessions can't be read or recorded at the moment; the server's log says why";
    Problem::new(Code::JournalUnavailable, detail).retry_after(5)
}

/// What a session can be called here.
pub(crate) fn is_id(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    (1..=128).contains(&id.len()) && id.bytes().all(plain) && !id.starts_with('.')
}
