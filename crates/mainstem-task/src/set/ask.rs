//! Reading, awaiting and cancelling tasks, whichever process executes them.

use std::time::Duration;

use mainstem_event::{CancelReason, TaskStatus};
use mainstem_message::{Failure, SessionId, TaskId};
use tokio::time::{sleep, timeout};

use super::{TaskEnd, TaskSet, begin::updated};
use crate::{Expected, TaskChange, TaskError, TaskFilter, TaskRecord};

/// How often the records of tasks that other processes execute are read.
const POLL: Duration = Duration::from_millis(250);

impl TaskSet {
    /// Returns the record of a task. A task whose executor has ended is failed first.
    ///
    /// # Errors
    /// [`TaskError::Unknown`], or if it can't be read.
    pub async fn get(&self, id: &TaskId) -> Result<TaskRecord, TaskError> {
        let record = self.0.store.get(id).await?.ok_or_else(|| TaskError::Unknown { id: id.clone() })?;
        self.found_lost(record).await
    }

    /// Returns records, oldest first. Tasks whose executor has ended are failed first.
    ///
    /// # Errors
    /// If they can't be read.
    pub async fn list(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, TaskError> {
        let mut records = Vec::new();
        for record in self.0.store.list(filter).await? {
            records.push(self.found_lost(record).await?);
        }
        records.retain(|record| filter.matches(record));
        Ok(records)
    }

    /// Removes the record of a task that is over, with its result; returns its last state. A result
    /// that no agent has read is lost.
    ///
    /// # Errors
    /// [`TaskError::Unknown`], [`TaskError::NotOver`], or if it can't be removed; the record stays.
    pub async fn remove(&self, id: &TaskId) -> Result<TaskRecord, TaskError> {
        let record = self.get(id).await?;
        match record.is_over() {
            true => self.0.store.remove(id).await,
            false => Err(TaskError::NotOver { id: record.id, status: record.status }),
        }
    }

    /// Removes the tasks below a root session that are over, with their results. Returns how many.
    ///
    /// # Errors
    /// If one can't be removed; those before it are removed.
    pub async fn forget_below(&self, root: &SessionId) -> Result<usize, TaskError> {
        // No session will continue one that is resumable.
        let lost = |_: &TaskId| {
            let why = "the session was deleted after its executor had ended";
            Some(TaskEnd::from(Failure::new("executor_lost", why)))
        };
        let mut over = self.end_orphans(root, lost).await?;
        over.retain(TaskRecord::is_over);
        for record in &over {
            match self.0.store.remove(&record.id).await {
                // Removed, by this process or another.
                Ok(_) | Err(TaskError::Unknown { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(over.len())
    }

    /// Returns the tasks of a parent that are over and whose end was not yet delivered to it.
    ///
    /// # Errors
    /// If they can't be read.
    pub async fn undelivered(&self, parent: &SessionId) -> Result<Vec<TaskRecord>, TaskError> {
        if self.0.without_tasks.contains(parent) {
            return Ok(Vec::new());
        }
        // Boxed, because every model call of every agent polls this future and few agents have
        // tasks.
        Box::pin(self.over_of(parent)).await
    }

    async fn over_of(&self, parent: &SessionId) -> Result<Vec<TaskRecord>, TaskError> {
        let created = self.0.created();
        let all = self.list(&TaskFilter::of_parent(parent.clone())).await?;
        if all.is_empty() {
            self.0.note_without_tasks(parent, created);
        }
        let mut over: Vec<_> = all.into_iter().filter(TaskRecord::is_undelivered).collect();
        over.sort_by_key(|record| record.updated_at);
        Ok(over)
    }

    /// Records that the parent of a task was notified of its end; a second time changes nothing.
    ///
    /// # Errors
    /// If it can't be recorded.
    pub async fn mark_delivered(&self, id: &TaskId) -> Result<TaskRecord, TaskError> {
        self.0.store.update(id, Expected::any(), TaskChange::Deliver, self.0.now()).await
    }

    /// Waits until all of these are over, and returns their records in this order; `None` if the
    /// time runs out before.
    ///
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// If an id is unknown, or records can't be read.
    pub async fn wait(
        &self,
        ids: &[TaskId],
        at_most: Duration,
    ) -> Result<Option<Vec<TaskRecord>>, TaskError> {
        match timeout(at_most, self.all_over(ids)).await {
            Ok(records) => records.map(Some),
            Err(_) => Ok(None),
        }
    }

    async fn all_over(&self, ids: &[TaskId]) -> Result<Vec<TaskRecord>, TaskError> {
        let mut ends = self.0.ends.subscribe();
        loop {
            ends.mark_unchanged();
            let mut records = Vec::new();
            for id in ids {
                records.push(self.get(id).await?);
            }
            if records.iter().all(TaskRecord::is_over) {
                return Ok(records);
            }
            let elsewhere =
                records.iter().any(|record| !record.is_over() && !self.0.live.contains_key(&record.id));
            tokio::select! {
                biased;
                _ = ends.changed() => {}
                () = sleep(POLL), if elsewhere => {}
            }
        }
    }

    /// Cancels a task in the name of `by` (words that follow "cancelled by") and waits for its end
    /// for at most `at_most`. The returned record shows whether it has ended. A task that had ended
    /// stays as it was.
    ///
    /// # Errors
    /// If the id is unknown, or the request can't be recorded.
    pub async fn cancel(&self, id: &TaskId, by: &str, at_most: Duration) -> Result<TaskRecord, TaskError> {
        let request = TaskChange::RequestCancel { by: by.to_owned() };
        let record = self.0.store.update(id, Expected::any(), request, self.0.now()).await?;
        if record.is_over() {
            return Ok(record);
        }
        if let Some(live) = self.0.live.get(id) {
            let by = record.cancel.as_ref().map_or(by, |cancel| cancel.by.as_str());
            live.cancel.cancel(CancelReason::Task { task: id.clone(), by: by.into() });
        }
        let over = self.wait(std::slice::from_ref(id), at_most).await?;
        match over.and_then(|mut records| records.pop()) {
            Some(record) => Ok(record),
            None => self.get(id).await,
        }
    }

    /// Counts a part of a running task that begins to wait for a person, or stops waiting; the task
    /// waits as long as any part does.
    pub async fn set_waiting(&self, id: &TaskId, is_waiting: bool) {
        let Some((sink, fence, parts)) = self.0.live.get(id).map(|live| live.count_waiting(is_waiting))
        else {
            return;
        };
        let (change, from, to) = match (is_waiting, parts) {
            (true, 1) => (TaskChange::WaitForConfirm, TaskStatus::Running, TaskStatus::WaitingConfirm),
            (false, 0) => (TaskChange::Run, TaskStatus::WaitingConfirm, TaskStatus::Running),
            _ => return,
        };
        match self.0.store.update(id, Expected::fence(fence), change, self.0.now()).await {
            Ok(_) => _ = sink.log().emit(updated(id, from, to, None)),
            Err(error) => tracing::warn!(task = %id, %error, "the wait of a task could not be recorded"),
        }
    }

    /// Cancels all running tasks below a root session for this reason, without waiting.
    pub fn cancel_below(&self, root: &SessionId, reason: &CancelReason) {
        self.0.cancel_all(&self.live_below(root), reason);
    }

    /// Returns the ids of the running tasks of a parent.
    pub fn live_of(&self, parent: &SessionId) -> Vec<TaskId> {
        self.live_where(|live| live.parent == *parent)
    }

    /// Returns the ids of all running tasks below a root session.
    pub fn live_below(&self, root: &SessionId) -> Vec<TaskId> {
        self.live_where(|live| live.sink.log().session_id() == root)
    }

    fn live_where(&self, holds: impl Fn(&super::Live) -> bool) -> Vec<TaskId> {
        self.0.live_where(holds)
    }
}
