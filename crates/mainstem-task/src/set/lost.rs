//! Tasks whose executor has ended: failed when they are read, or ended when their session is
//! opened.

use std::{
    collections::{BTreeSet, HashSet},
    sync::{Arc, Weak},
};

use mainstem_event::{SessionLog, TaskStatus};
use mainstem_message::{Failure, SessionId, TaskId};

use super::{TaskEnd, TaskSet, begin::updated};
use crate::{ExecutorId, Expected, TaskChange, TaskError, TaskFilter, TaskRecord};

/// The log that names a task of another executor, and the status of the task in that log.
pub(crate) type Follower = (Weak<SessionLog>, TaskStatus);

impl TaskSet {
    /// Ends the tasks of a root session whose executor has ended, each as `end` decides, and
    /// returns the records of all tasks of the session. A task for which `end` returns `None` stays
    /// as it is.
    ///
    /// A task whose executor may be alive stays as it is, whichever process has the session open.
    /// In a store that is not [shared](crate::TaskStore::is_shared), an executor other than this
    /// set has ended.
    ///
    /// Dropping the future leaves the tasks that it has not reached as they are.
    ///
    /// A task whose end can't be recorded stays as it is, and fails when it is read.
    ///
    /// # Errors
    /// The records can't be read.
    pub async fn end_orphans(
        &self,
        root: &SessionId,
        end: impl Fn(&TaskId) -> Option<TaskEnd>,
    ) -> Result<Vec<TaskRecord>, TaskError> {
        let mut records = Vec::new();
        for record in self.0.store.list(&TaskFilter::of_root(root.clone())).await? {
            // Another process may have recorded ends that are yet to be delivered to this parent.
            self.0.without_tasks.remove(&record.parent_session_id);
            let id = record.id.clone();
            match self.end_if_lost(record.clone(), |_| end(&id).map(TaskChange::from)).await {
                Ok(ended) => records.extend(ended),
                Err(error) => {
                    tracing::warn!(task = %id, %error, "the end of a task could not be recorded");
                    records.push(record);
                }
            }
        }
        Ok(records)
    }

    /// Returns the records of a root session's tasks that are resumable and whose executor has
    /// ended.
    ///
    /// # Errors
    /// The records can't be read.
    pub async fn find_resumable(&self, root: &SessionId) -> Result<Vec<TaskRecord>, TaskError> {
        let mut resumable = Vec::new();
        for record in self.0.store.list(&TaskFilter::of_root(root.clone())).await? {
            if record.is_resumable && self.loss(&record).await?.is_some() {
                resumable.push(record);
            }
        }
        Ok(resumable)
    }

    /// Returns the root sessions with resumable tasks whose executor has ended.
    ///
    /// # Errors
    /// The records can't be read.
    pub async fn resumable_sessions(&self) -> Result<BTreeSet<SessionId>, TaskError> {
        let (mut sessions, mut alive) = (BTreeSet::new(), HashSet::new());
        for record in self.0.store.list(&TaskFilter::resumable()).await? {
            // An executor has many tasks; its lease is read once.
            if alive.contains(&record.executor) || self.is_known(&record) {
                continue;
            }
            match self.loss(&record).await? {
                Some(_) => _ = sessions.insert(record.root_session_id),
                None => _ = alive.insert(record.executor),
            }
        }
        Ok(sessions)
    }

    /// Emits the end of a task that another executor runs to the log that names it, as soon as this
    /// set reads the end in the task's record. `from` is the task's status in the log. The set
    /// holds a weak reference to the log.
    pub fn follow(&self, id: &TaskId, from: TaskStatus, log: &Arc<SessionLog>) {
        self.0.followers.retain(|_, (log, _)| log.strong_count() > 0);
        self.0.followers.insert(id.clone(), (Arc::downgrade(log), from));
    }

    /// Returns the record, failed first if its executor has ended.
    pub(super) async fn found_lost(&self, record: TaskRecord) -> Result<TaskRecord, TaskError> {
        // Another executor can continue a resumable task, until its session ends it.
        let is_elsewhere = record.executor.as_ref() != Some(&self.0.executor);
        // A log that follows a task has ended its child.
        let waits = record.is_resumable && is_elsewhere && !self.0.followers.contains_key(&record.id);
        let may_be_lost = !record.is_over() && self.0.store.is_shared() && record.executor.is_some();
        let record = match may_be_lost && !waits {
            true => match self.end_if_lost(record.clone(), lost).await {
                // A store that can't be written, such as one that is opened to read.
                Err(TaskError::Io { .. }) => self.shown_lost(record).await?,
                ended => ended?.unwrap_or(record),
            },
            false => record,
        };
        self.notify_follower(&record);
        Ok(record)
    }

    /// Returns the record as it is once a process that can write it has failed the task.
    async fn shown_lost(&self, mut record: TaskRecord) -> Result<TaskRecord, TaskError> {
        if let Some(change) = self.loss(&record).await?.and_then(lost) {
            record.apply(change, self.0.now())?;
        }
        Ok(record)
    }

    /// Returns the record, changed first if no executor runs its task and there is a change for it;
    /// `None` if it was removed meanwhile.
    async fn end_if_lost(
        &self,
        mut record: TaskRecord,
        change: impl Fn(String) -> Option<TaskChange>,
    ) -> Result<Option<TaskRecord>, TaskError> {
        let store = &self.0.store;
        while let Some(why) = self.loss(&record).await? {
            let Some(change) = change(why) else { break };
            let expected = Expected::version(record.version);
            match store.update(&record.id, expected, change, self.0.now()).await {
                // Another process has ended the task meanwhile, or has only requested a cancel.
                Err(TaskError::Conflict { .. }) => match store.get(&record.id).await? {
                    Some(changed) => record = changed,
                    None => return Ok(None),
                },
                Err(TaskError::Unknown { .. }) => return Ok(None),
                changed => return changed.map(Some),
            }
        }
        Ok(Some(record))
    }

    /// Returns why no executor runs a task; `None` if the task is over, or its executor may be
    /// alive.
    async fn loss(&self, record: &TaskRecord) -> Result<Option<String>, TaskError> {
        let inner = &*self.0;
        if record.is_over() || self.is_known(record) {
            return Ok(None);
        }
        match &record.executor {
            // The end could not be recorded when the task ended.
            Some(executor) if *executor == inner.executor => {
                Ok(Some(format!("{executor} no longer runs it")))
            }
            Some(executor) if inner.store.is_shared() => self.executor_loss(executor).await,
            _ => Ok(Some("no executor has it".to_owned())),
        }
    }

    /// Returns `true` if this executor runs the task, or has left it to another.
    fn is_known(&self, record: &TaskRecord) -> bool {
        self.0.live.contains_key(&record.id) || self.0.left.contains(&record.id)
    }

    async fn executor_loss(&self, executor: &ExecutorId) -> Result<Option<String>, TaskError> {
        Ok(match self.0.store.lease(executor).await? {
            None => Some(format!("{executor} has ended")),
            Some(until) if until <= self.0.now() => Some(format!("{executor} has not renewed its lease")),
            Some(_) => None,
        })
    }

    fn notify_follower(&self, record: &TaskRecord) {
        if record.is_over()
            && let Some((id, (log, from))) = self.0.followers.remove(&record.id)
            && let Some(log) = log.upgrade()
        {
            log.emit(updated(&id, from, record.status, record.error.clone()));
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a change for a task that is lost")]
fn lost(why: String) -> Option<TaskChange> {
    let error = Failure::new("executor_lost", format!("executor lost: {why}"));
    Some(TaskChange::Fail { error, partial: None })
}
