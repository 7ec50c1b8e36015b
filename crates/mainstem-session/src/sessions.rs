//! Sessions by id: each is open once in a process, and is closed when it is not in use.

mod error;
mod live;
mod place;
mod store;

use std::{collections::HashMap, fmt, sync::Arc};

use mainstem_api::{Page, SessionView};
use mainstem_journal::{Journal, JournalError, Listing, Place, SessionSummary};
use mainstem_message::{IdError, RunId, SessionId};
use mainstem_policy::Tenant;
use mainstem_task::TaskSet;

use self::store::Key;
pub use self::{
    error::{DeleteError, InUse, OpenError},
    live::LiveSession,
    store::Store,
};
use crate::{Records, Session, SessionBuilder, SessionCopy, listing::merge, view};

/// The sessions of one tenant: those that are open in this process, and those that its journal has.
///
/// Cheap to clone; clones have the same sessions. A tenant's sessions share the [`Store`], and so
/// its limit, with those of other tenants.
///
/// ```
/// # use std::sync::Arc;
/// # use mainstem_session::{AgentSource, Records, Session, Sessions, Store};
/// use mainstem_task::TaskSet;
///
/// # async fn example(agents: Arc<dyn AgentSource>) -> Result<(), Box<dyn std::error::Error>> {
/// let begin = move || Session::builder(agents.clone());
/// let sessions = Sessions::new(Store::new(), None, Records::new(TaskSet::in_memory()), begin);
/// let session = sessions.open("greeting").await?;
/// assert_eq!(sessions.opened().len(), 1);
/// drop(session);
/// sessions.delete(&"greeting".parse()?).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Sessions {
    store: Arc<Store>,
    tenant: Tenant,
    records: Records,
    builder: Arc<dyn Fn() -> SessionBuilder + Send + Sync>,
}

/// A session of a page.
enum Found {
    Open(SessionView),
    Recorded(SessionSummary),
}

impl Sessions {
    /// The sessions of a tenant. `builder` configures each of them, but for its id and its journal.
    pub fn new(
        store: Arc<Store>,
        tenant: Tenant,
        records: Records,
        builder: impl Fn() -> SessionBuilder + Send + Sync + 'static,
    ) -> Self {
        Self { store, tenant, records, builder: Arc::new(builder) }
    }

    /// Returns the store that has the open ones, of all tenants.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns what is recorded of them.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Returns the journal that records them; `None` if they are in memory.
    pub fn journal(&self) -> Option<&Arc<dyn Journal>> {
        self.records.journal()
    }

    /// Returns the task set that does their background work.
    pub fn tasks(&self) -> &TaskSet {
        self.records.task_set()
    }

    /// Returns a session with a new id, which is not among those that are open by id. With a
    /// journal, its first run records it.
    pub fn begin(&self) -> Session {
        let builder = (self.builder)();
        match self.journal() {
            Some(journal) => builder.begin(journal),
            None => builder.build(),
        }
    }

    /// Returns the session of this id: the open one, else the recorded one, else a new one.
    /// Concurrent callers get the same session, and opening one does not block another.
    ///
    /// A session whose record has failed is opened again, from what was committed, unless a run of
    /// it is active: then the failed session is returned.
    ///
    /// # Errors
    /// The text is not an id; the session is open in another process; the journal can't be read or
    /// written; the limit of open sessions is reached. A failure is not remembered: the next call
    /// tries again. Dropping the future opens nothing.
    pub async fn open(
        &self,
        id: impl TryInto<SessionId, Error: Into<IdError>>,
    ) -> Result<Session, OpenError> {
        let id = id.try_into().map_err(Into::into)?;
        let opening = self.store.opening(self.key(&id))?;
        Ok(opening.open_with(|| self.load(id)).await?)
    }

    /// Returns the session of this id if it is open or recorded; `None` if it does not exist.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn find(&self, id: &SessionId) -> Result<Option<Session>, OpenError> {
        if !self.store.has(&self.key(id)) && !self.records.has(id).await? {
            return Ok(None);
        }
        let opening = self.store.opening(self.key(id))?;
        match opening.open_with(|| self.load_recorded(id.clone())).await {
            Err(JournalError::Unknown { .. }) => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    /// Returns the events of a recorded session that another process writes, up to the last one
    /// that is committed now; `None` if the session does not exist. All readers of a session share
    /// one copy.
    ///
    /// # Errors
    /// The journal can't be read.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn copy(&self, id: &SessionId) -> Result<Option<SessionCopy>, JournalError> {
        let Some(journal) = self.journal() else { return Ok(None) };
        let key = self.key(id);
        // A copy of a session that was deleted, and has begun anew, fails: the second one is right.
        for _ in 0..2 {
            let copy = match self.store.copy(&key) {
                Some(copy) => copy,
                None => match SessionCopy::begin(journal, id).await? {
                    Some(copy) => self.store.add_copy(key.clone(), copy),
                    None => return Ok(None),
                },
            };
            if copy.caught_up().await? {
                return Ok(Some(copy));
            }
        }
        Ok(None)
    }

    /// Opens a recorded session. One that was deleted after it was found does not begin anew.
    async fn load_recorded(&self, id: SessionId) -> Result<Session, JournalError> {
        let session = self.load(id.clone()).await?;
        match session.log().last_seq() {
            0 => Err(JournalError::Unknown { session: id }),
            _ => Ok(session),
        }
    }

    async fn load(&self, id: SessionId) -> Result<Session, JournalError> {
        let builder = (self.builder)().with_id(id);
        match self.journal() {
            Some(journal) => builder.open(journal).await,
            None => Ok(builder.build()),
        }
    }

    /// Returns the sessions that are open, by id.
    pub fn opened(&self) -> Vec<Session> {
        self.store.of(&self.tenant)
    }

    /// Returns the session of this id if it is open in this process.
    pub fn get(&self, id: &SessionId) -> Option<Session> {
        self.store.get(&self.key(id))
    }

    /// Returns a page of the sessions as an API shows them: of those that are recorded, and of
    /// those that are open, which may be ahead of their records. A recorded session has its place
    /// in the journal, which is the same for all processes.
    ///
    /// # Errors
    /// The journal can't be read.
    pub async fn list(&self, listing: &Listing) -> Result<Page<SessionView>, JournalError> {
        let opened = self.store.read(&self.tenant, |session| Some(view::open(session)));
        let mut opened: HashMap<_, _> =
            opened.into_iter().map(|view| (view.id.as_str().to_owned(), view)).collect();
        let recorded = match self.journal() {
            Some(journal) => journal.list(&listing.clone().with_max(listing.max.saturating_add(1))).await?,
            None => Vec::new(),
        };
        let found = |summary: SessionSummary| {
            let place = summary.place.clone();
            match opened.remove(&place.name) {
                Some(view) => (place.clone(), Found::Open(SessionView { last_run_at: place.at, ..view })),
                None => (place, Found::Recorded(summary)),
            }
        };
        let recorded: Vec<_> = recorded.into_iter().map(found).collect();
        // Those that are recorded are on another page.
        opened.retain(|_, view| self.journal().is_none() || view.last_seq == 0);
        let place = |view: &SessionView| Place { at: view.last_run_at, name: view.id.as_str().to_owned() };
        let opened = opened.into_values().map(|view| (place(&view), Found::Open(view))).collect();
        let (page, next) = merge(opened, recorded, listing);
        let mut items = Vec::with_capacity(page.len());
        for (_, found) in page {
            items.push(self.view(found).await);
        }
        Ok(Page { items, next })
    }

    async fn view(&self, found: Found) -> SessionView {
        match (found, self.journal()) {
            (Found::Open(view), _) => view,
            (Found::Recorded(summary), Some(journal)) => self.records.view(&**journal, &summary).await,
            (Found::Recorded(summary), None) => view::recorded(&summary, false),
        }
    }

    /// Returns the id of the session that a run belongs to, also of a run that is queued.
    ///
    /// # Errors
    /// The journal can't be read.
    pub async fn session_of(&self, run: &RunId) -> Result<Option<SessionId>, JournalError> {
        let of_open = |is_of: fn(&Session, &RunId) -> bool| {
            let found = self.store.read(&self.tenant, |open| is_of(open, run).then(|| open.id().clone()));
            found.into_iter().next()
        };
        if let Some(session) = of_open(Session::is_live) {
            return Ok(Some(session));
        }
        let recorded = match self.journal() {
            Some(journal) => match journal.run(run).await? {
                Some(place) => Some(place.session),
                None => journal.queued_run(run).await?.map(|queued| queued.session),
            },
            None => None,
        };
        // The end of a run is in its session before it is in the journal.
        Ok(recorded.or_else(|| of_open(Session::has_run)))
    }

    /// Removes a session from the open ones; returns `true` if it was one. It is closed once all
    /// clones of it, its runs and its cursors are dropped; then it can be opened again.
    pub fn close(&self, id: &SessionId) -> bool {
        self.store.remove(&self.key(id))
    }

    /// Deletes a session permanently, with the records of its background tasks. Dropping the future
    /// does not stop a deletion that has begun.
    ///
    /// # Errors
    /// The session does not exist, is in use, or can't be deleted.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn delete(&self, id: &SessionId) -> Result<(), DeleteError> {
        // A closed session is not opened for this, so that a damaged one can be deleted, too.
        if self.store.remove_unused(&self.key(id))? || self.records.has(id).await? {
            return self.records.delete(id).await;
        }
        // An earlier call may have deleted all but its files.
        self.records.delete_files(id).await?;
        Err(DeleteError::Unknown { session: id.clone() })
    }

    fn key(&self, id: &SessionId) -> Key {
        (self.tenant.clone(), id.clone())
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}
