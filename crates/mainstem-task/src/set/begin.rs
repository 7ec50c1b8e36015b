//! The life of a task: it is recorded, runs, and its end is recorded.

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt;
use mainstem_event::{CancelReason, EventKind, EventSink, TaskStatus};
use mainstem_message::{Failure, SessionId, TaskId};
use tokio::{sync::oneshot, time::sleep};

use super::{CancelTask, Inner, Live, NewTask, TaskEnd, TaskSet};
use crate::{Expected, TaskChange, TaskError, TaskRecord, lease_renewal, sync::spawn};

/// The pauses before an end is recorded again.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// The work of a task: a child that has begun or is about to.
pub type Work = Pin<Box<dyn Future<Output = TaskEnd> + Send>>;

type Begun = Result<TaskRecord, (TaskError, Work)>;

impl TaskSet {
    /// Makes work a task: records it, moves its child to the background, emits the change, and
    /// drives the work. Returns when the task is recorded; dropping the future does not stop the
    /// task.
    ///
    /// # Errors
    /// If it could not be recorded, or the set is shut down. The work is returned as it was.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn begin(&self, task: NewTask, work: Work) -> Begun {
        let inner = &self.0;
        // Taken before the check: a shutdown that begins after the check waits for this task too.
        let beginning = inner.tracker.token();
        if inner.stop.is_cancelled() {
            return Err((TaskError::Closed, work));
        }
        let record = inner.record(&task);
        let NewTask { sink, cancel, .. } = task;
        let answer = inner.spawn_life(Start::New(record), sink, cancel, work);
        drop(beginning);
        answer.await.unwrap_or_else(|_| Err(dropped()))
    }

    /// Continues a task whose executor has ended: records that this set executes it, moves the sink
    /// of its child to the background, and drives the work. Returns when that is recorded; dropping
    /// the future does not stop the task. If a cancel was requested meanwhile, it is passed on.
    ///
    /// # Errors
    /// The record was changed, perhaps by another executor that continues the task; it could not be
    /// written; or the set is shut down. The work is returned as it was.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn take_over(
        &self,
        record: TaskRecord,
        sink: EventSink,
        cancel: CancelTask,
        work: Work,
    ) -> Begun {
        let inner = &self.0;
        let beginning = inner.tracker.token();
        if inner.stop.is_cancelled() {
            return Err((TaskError::Closed, work));
        }
        let answer = inner.spawn_life(Start::TakenOver(record), sink, cancel.clone(), work);
        drop(beginning);
        let record = answer.await.unwrap_or_else(|_| Err(dropped()))?;
        if let Some(request) = &record.cancel {
            let by = request.by.as_str().into();
            cancel.cancel(CancelReason::Task { task: record.id.clone(), by });
        }
        Ok(record)
    }
}

/// How the life of a task begins in this set: with the record to create, or with that of a task
/// whose executor has ended.
enum Start {
    New(TaskRecord),
    TakenOver(TaskRecord),
}

/// Returns the answer of a task that was dropped with its runtime.
fn dropped() -> (TaskError, Work) {
    let ended = async { TaskEnd::Cancelled { by: CancelReason::Shutdown.by() } };
    (TaskError::Closed, Box::pin(ended))
}

impl Inner {
    fn record(&self, task: &NewTask) -> TaskRecord {
        let now = self.now();
        TaskRecord {
            id: task.id.clone(),
            root_session_id: task.sink.log().session_id().clone(),
            parent_agent_id: task.parent_agent_id.clone(),
            parent_session_id: task.parent_session_id.clone(),
            agent_key: task.agent_key.clone(),
            agent_id: task.agent_id.clone(),
            label: task.label.clone(),
            task: task.task.clone(),
            is_resumable: task.is_resumable,
            status: TaskStatus::Running,
            version: 1,
            executor: Some(self.executor.clone()),
            fence: 1,
            result: None,
            error: None,
            cancel: None,
            created_at: now,
            updated_at: now,
            delivered_at: None,
        }
    }

    fn spawn_life(
        self: &Arc<Self>,
        start: Start,
        sink: EventSink,
        cancel: CancelTask,
        work: Work,
    ) -> oneshot::Receiver<Begun> {
        let (Start::New(record) | Start::TakenOver(record)) = &start;
        let id = record.id.clone();
        self.live.insert(id.clone(), Live::new(record, cancel, sink));
        let (begun, answer) = oneshot::channel();
        let abort = spawn(&self.tracker, self.clone().live(id.clone(), start, work, begun));
        if let Some(mut live) = self.live.get_mut(&id) {
            live.abort = Some(abort);
        }
        answer
    }

    async fn live(self: Arc<Self>, id: TaskId, start: Start, work: Work, begun: oneshot::Sender<Begun>) {
        let started = match start {
            Start::New(record) => self.create(&record).await.map(|()| (TaskStatus::Pending, record)),
            Start::TakenOver(record) => self.claim(record).await,
        };
        let (from, record) = match started {
            Ok(started) => started,
            Err(error) => {
                self.live.remove(&id);
                // The caller may have been dropped; the work is dropped with the message.
                let _ = begun.send(Err((error, work)));
                return;
            }
        };
        let Some(sink) = self.live.get(&id).map(|live| live.sink.clone()) else { return };
        sink.move_to_background(id.clone());
        if from != record.status {
            sink.log().emit(updated(&id, from, record.status, None));
        }
        let _ = begun.send(Ok(record));
        let end = AssertUnwindSafe(work).catch_unwind().await;
        let end = end.unwrap_or_else(|_| TaskEnd::from(Failure::new("panic", "the task panicked")));
        self.finish(&id, end).await;
    }

    async fn create(self: &Arc<Self>, record: &TaskRecord) -> Result<(), TaskError> {
        if self.store.is_shared() {
            lease_renewal::ensure_started(self).await?;
        }
        self.store.create(record.clone()).await?;
        self.created.fetch_add(1, Ordering::AcqRel);
        self.without_tasks.remove(&record.parent_session_id);
        Ok(())
    }

    /// Makes this set the executor of a task. Returns the status that the task had, and its record:
    /// running, because what it waited for was asked by the process that has ended.
    async fn claim(self: &Arc<Self>, record: TaskRecord) -> Result<(TaskStatus, TaskRecord), TaskError> {
        if self.store.is_shared() {
            lease_renewal::ensure_started(self).await?;
        }
        let (id, from, fence) = (record.id, record.status, record.fence);
        // A cancel may be requested meanwhile; another executor has another fence.
        let change = TaskChange::Claim { executor: self.executor.clone() };
        let mut pauses = PAUSES.into_iter();
        let mut record = loop {
            let claimed = self.store.update(&id, Expected::fence(fence), change.clone(), self.now()).await;
            match (claimed, pauses.next()) {
                (Err(TaskError::Io { .. } | TaskError::Corrupt { .. }), Some(pause)) => sleep(pause).await,
                (claimed, _) => break claimed?,
            }
        };
        if record.status == TaskStatus::WaitingConfirm {
            let expected = Expected::fence(record.fence);
            record = self.store.update(&id, expected, TaskChange::Run, self.now()).await?;
        }
        if let Some(mut live) = self.live.get_mut(&id) {
            live.fence = record.fence;
        }
        self.without_tasks.remove(&record.parent_session_id);
        Ok((from, record))
    }

    pub(super) fn created(&self) -> u64 {
        self.created.load(Ordering::Acquire)
    }

    /// Notes that a parent has no tasks, unless one was recorded since the count was taken.
    pub(super) fn note_without_tasks(&self, parent: &SessionId, created: u64) {
        self.without_tasks.insert(parent.clone());
        if self.created() != created {
            self.without_tasks.remove(parent);
        }
    }

    /// Records an end and emits it, in this order, so that a reader of the event can read the
    /// record.
    pub(crate) async fn finish(&self, id: &TaskId, end: TaskEnd) {
        let Some((sink, fence)) = self.live.get(id).map(|live| (live.sink.clone(), live.fence)) else {
            return;
        };
        let (to, error) = match self.record_end(id, fence, end.into()).await {
            Ok(record) => (record.status, record.error),
            Err(error) => {
                tracing::error!(task = %id, %error, "the end of a task could not be recorded");
                (TaskStatus::Failed, Some(Failure::new("task_store", error.to_string())))
            }
        };
        let from = self.live.get(id).map_or(TaskStatus::Running, |live| live.status());
        sink.log().emit(updated(id, from, to, error));
        self.live.remove(id);
        self.ends.send_modify(|ends| *ends += 1);
    }

    /// Records an end, and retries for some seconds if the store fails. An end that another process
    /// has recorded before stands.
    async fn record_end(&self, id: &TaskId, fence: u64, end: TaskChange) -> Result<TaskRecord, TaskError> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let recorded = self.store.update(id, Expected::fence(fence), end.clone(), self.now()).await;
            match (recorded, pauses.next()) {
                (Err(TaskError::Io { .. } | TaskError::Corrupt { .. }), Some(pause)) => sleep(pause).await,
                (Err(error @ (TaskError::Illegal(_) | TaskError::Fenced { .. })), _) => {
                    let record = self.store.get(id).await?;
                    return record.filter(TaskRecord::is_over).ok_or(error);
                }
                (recorded, _) => return recorded,
            }
        }
    }
}

pub(super) fn updated(id: &TaskId, from: TaskStatus, to: TaskStatus, error: Option<Failure>) -> EventKind {
    EventKind::task_updated(id.clone(), from, to).with_error(error)
}
