//! The sessions and background tasks that this machine has recorded, without running any of them.

mod keep;
mod reader;
mod session;

use std::{collections::HashMap, fmt, slice, sync::Arc, time::Duration};

use async_trait::async_trait;
use mainstem_api::{
    AnySession, Code, Error, Host, JobQuery, JobView, NewJob, Page, Problem, SessionQuery, SessionView,
    TaskQuery,
};
use mainstem_event::Timestamp;
use mainstem_journal::{JobStore, Journal, JournalError, Part, SessionSummary};
use mainstem_message::{JobId, SessionId, TaskId};
use mainstem_task::{TaskRecord, TaskSet};
use tokio::sync::oneshot;

pub use self::keep::Keep;
pub(crate) use self::reader::Reader;
use self::session::RecordedSession;
use crate::{
    DeleteError, jobs,
    listing::{cut, listing},
    refusal::{no_session, no_tasks, not_deleted},
    view,
};

/// How long another process may take to stop a task.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// A journal and a task store, as a [`Host`]: sessions are read and deleted, tasks are read and
/// cancelled, also while other processes run them. Runs can't begin here.
#[derive(Clone)]
pub struct Records {
    journal: Option<Arc<dyn Journal>>,
    tasks: TaskSet,
    files: Option<Arc<dyn DeleteFiles>>,
}

/// Deletes what sessions have beside their records, such as files in a store.
#[async_trait]
pub trait DeleteFiles: Send + Sync + 'static {
    /// Deletes what a session has, which is deleted itself.
    ///
    /// # Errors
    /// Why it can't be deleted.
    async fn delete_files(&self, session: &SessionId) -> Result<(), String>;
}

impl Records {
    /// The records of these tasks, without sessions.
    pub fn new(tasks: TaskSet) -> Self {
        Self { journal: None, tasks, files: None }
    }

    /// Adds the sessions of this journal.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Adds what sessions have beside this journal.
    #[must_use]
    pub fn with_files(mut self, files: Arc<dyn DeleteFiles>) -> Self {
        self.files = Some(files);
        self
    }

    /// Returns the journal; `None` if there are only tasks.
    pub(crate) fn journal(&self) -> Option<&Arc<dyn Journal>> {
        self.journal.as_ref()
    }

    pub(crate) fn task_set(&self) -> &TaskSet {
        &self.tasks
    }

    /// Returns `true` if the session is recorded.
    pub(crate) async fn has(&self, id: &SessionId) -> Result<bool, JournalError> {
        match &self.journal {
            Some(journal) => Ok(journal.session(id).await?.is_some()),
            None => Ok(false),
        }
    }

    /// Deletes what is recorded of a session, and of its tasks: a new session of the same id would
    /// receive their results. If another process has the session open, nothing is deleted.
    ///
    /// The task set drives the deletion: dropping the future does not stop it in between, when a
    /// further call would no longer find the session.
    pub(crate) async fn delete(&self, id: &SessionId) -> Result<(), DeleteError> {
        let (caller, deleted) = oneshot::channel();
        let (records, session) = (self.clone(), id.clone());
        self.tasks.drive(async move { _ = caller.send(records.delete_now(&session).await) });
        match deleted.await {
            Ok(deleted) => deleted,
            // The task set is shut down and drives nothing.
            Err(_) => self.delete_now(id).await,
        }
    }

    async fn delete_now(&self, id: &SessionId) -> Result<(), DeleteError> {
        if let Some(journal) = &self.journal {
            journal.delete(id).await?;
        }
        self.tasks.forget_below(id).await?;
        self.delete_files(id).await
    }

    /// Deletes what a session has beside its record.
    pub(crate) async fn delete_files(&self, id: &SessionId) -> Result<(), DeleteError> {
        let Some(files) = &self.files else { return Ok(()) };
        files.delete_files(id).await.map_err(|why| {
            tracing::warn!(session = %id, why, "the files of a deleted session are left");
            DeleteError::Files { session: id.clone() }
        })
    }

    /// Returns the sessions that are not kept, the oldest first. It reads all sessions, and with
    /// [`max_bytes`](Keep::max_bytes) the size of each event.
    ///
    /// # Errors
    /// If they can't be read.
    pub async fn surplus(&self, keep: Keep, now: Timestamp) -> Result<Vec<SessionId>, JournalError> {
        let Some(journal) = self.journal.as_ref().filter(|_| !keep.is_all()) else { return Ok(Vec::new()) };
        let sizes: HashMap<_, _> = match keep.max_bytes {
            Some(_) => journal.sizes().await?.into_iter().collect(),
            None => HashMap::new(),
        };
        let bytes = |id: &SessionId| sizes.get(id).copied().unwrap_or(0);
        Ok(keep.surplus(&journal.sessions().await?, bytes, now))
    }

    /// Deletes the sessions that are not kept, permanently, with the records of their tasks and
    /// what they have beside. Returns them. One that is open stays.
    ///
    /// # Errors
    /// If they can't be read; what was deleted before stays so. If the files of one can't be
    /// deleted, the others are deleted first.
    pub async fn prune(&self, keep: Keep, now: Timestamp) -> Result<Vec<SessionId>, DeleteError> {
        let (mut deleted, mut left) = (Vec::new(), None);
        for id in self.surplus(keep, now).await? {
            match self.delete(&id).await {
                Ok(()) => deleted.push(id),
                Err(error @ DeleteError::Files { .. }) => left = Some(error),
                Err(DeleteError::Journal(JournalError::Busy { .. }) | DeleteError::InUse(_)) => {}
                Err(error) => return Err(error),
            }
        }
        left.map_or(Ok(deleted), Err)
    }

    fn job_store(&self) -> Result<Arc<dyn JobStore>, Problem> {
        jobs::store(self.journal.as_deref())
    }

    /// Whether the session is open for writing. What can't be found out is no reason to fail.
    pub(crate) async fn view(&self, journal: &dyn Journal, session: &SessionSummary) -> SessionView {
        let is_open = session.unfinished.is_some() && journal.is_open(&session.id).await.unwrap_or(true);
        view::recorded(session, is_open)
    }
}

#[async_trait]
impl Host for Records {
    async fn sessions(&self, query: &SessionQuery) -> Result<Page<SessionView>, Error> {
        let listing = listing(query, Part::All)?;
        let Some(journal) = &self.journal else { return Ok(Page { items: Vec::new(), next: None }) };
        let one_more = listing.clone().with_max(listing.max + 1);
        let mut recorded = journal.list(&one_more).await.map_err(|error| no_session(&error))?;
        let next = cut(&mut recorded, listing.max, |session| session.place.clone());
        let mut items = Vec::with_capacity(recorded.len());
        for session in &recorded {
            items.push(self.view(&**journal, session).await);
        }
        Ok(Page { items, next })
    }

    fn session(&self, id: &SessionId) -> Arc<dyn AnySession> {
        Arc::new(RecordedSession { records: self.clone(), id: id.clone() })
    }

    async fn close(&self) -> Result<(), Error> {
        match &self.journal {
            Some(journal) => Ok(journal.close().await.map_err(|error| no_session(&error))?),
            None => Ok(()),
        }
    }

    async fn delete_session(&self, id: &SessionId) -> Result<(), Error> {
        if !self.has(id).await.map_err(|error| no_session(&error))? {
            // Of a session that was deleted, files may be left.
            return match &self.files {
                Some(_) => Ok(self.delete_files(id).await.map_err(|error| not_deleted(&error))?),
                None => Err(Problem::not_found("session", id.as_str()).into()),
            };
        }
        Ok(self.delete(id).await.map_err(|error| not_deleted(&error))?)
    }

    async fn tasks(&self, query: &TaskQuery) -> Result<Vec<TaskRecord>, Error> {
        Ok(self.tasks.list(&query.to_filter()).await.map_err(|error| no_tasks(&error))?)
    }

    async fn task(&self, id: &TaskId) -> Result<TaskRecord, Error> {
        Ok(self.tasks.get(id).await.map_err(|error| no_tasks(&error))?)
    }

    async fn wait_for_task(&self, id: &TaskId, timeout: Duration) -> Result<TaskRecord, Error> {
        self.tasks.wait(slice::from_ref(id), timeout).await.map_err(|error| no_tasks(&error))?;
        self.task(id).await
    }

    async fn cancel_task(&self, id: &TaskId) -> Result<TaskRecord, Error> {
        let cancelled = self.tasks.cancel(id, "the user (mainstem tasks cancel)", CANCEL_TIMEOUT).await;
        Ok(cancelled.map_err(|error| no_tasks(&error))?)
    }

    async fn remove_task(&self, id: &TaskId) -> Result<(), Error> {
        Ok(self.tasks.remove(id).await.map(drop).map_err(|error| no_tasks(&error))?)
    }

    async fn jobs(&self, query: &JobQuery) -> Result<Page<JobView>, Error> {
        Ok(jobs::list(&*self.job_store()?, Part::All, query).await?)
    }

    async fn job(&self, id: &JobId) -> Result<JobView, Error> {
        Ok(jobs::find(&*self.job_store()?, id).await?)
    }

    async fn add_job(&self, job: NewJob) -> Result<JobView, Error> {
        Ok(jobs::add(&*self.job_store()?, job).await?)
    }

    async fn cancel_job(&self, id: &JobId) -> Result<JobView, Error> {
        Ok(jobs::cancel(&*self.job_store()?, id).await?)
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").finish_non_exhaustive()
    }
}

/// The refusal of what needs a running session.
fn not_steerable() -> Error {
    let detail = "only the record of the session is here; the process that runs it can do this";
    Problem::new(Code::NotSteerable, detail).into()
}
