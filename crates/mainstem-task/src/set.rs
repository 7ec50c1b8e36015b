//! The only place that spawns: runs tasks, records how they end, and stops them.

mod ask;
mod begin;
mod lost;

pub use self::begin::Work;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use dashmap::{DashMap, DashSet};
use mainstem_event::{CancelReason, Clock, EventSink, SystemClock, TaskStatus, Timestamp};
use mainstem_message::{AgentKey, Failure, SessionId, TaskId};
use tokio::{
    sync::{Mutex, watch},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    ExecutorId, MemoryTaskStore, TaskChange, TaskError, TaskRecord, TaskStore, lease_renewal,
    sync::{AbortHandle, AtomicU64, AtomicUsize, spawn},
};

/// How often tasks are aborted that outlive the grace of a shutdown.
const AGAIN: Duration = Duration::from_millis(10);

/// All background work of a harness. Cheap to clone; clones are the same set.
///
/// A task runs until it ends, is cancelled, or the set is [shut down](Self::shutdown). Dropping the
/// set stops nothing; when the runtime is dropped, its tasks are dropped with it. In a shared store
/// the tasks are lost when the process or its [lease](crate::LEASE_DURATION) ends, except for those
/// that are resumable: these wait for an executor that [takes them over](Self::take_over).
///
/// ```
/// use std::time::Duration;
///
/// use mainstem_task::TaskSet;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let tasks = TaskSet::in_memory();
/// let (sender, receiver) = tokio::sync::oneshot::channel();
/// tasks.drive(async move {
///     let _ = sender.send("done");
/// });
/// assert_eq!(receiver.await, Ok("done"));
/// tasks.shutdown(Duration::from_secs(1)).await;
/// # }
/// ```
#[derive(Clone)]
pub struct TaskSet(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) executor: ExecutorId,
    pub(crate) live: DashMap<TaskId, Live>,
    pub(crate) tracker: TaskTracker,
    pub(crate) stop: CancellationToken,
    /// Cancelled when a shutdown has waited for its grace.
    no_grace: CancellationToken,
    /// Changes whenever a task of this set has ended.
    pub(crate) ends: watch::Sender<u64>,
    /// Parents that have no tasks, so that their model calls need not read the store.
    without_tasks: DashSet<SessionId>,
    /// Whether the task that renews the lease runs.
    pub(crate) is_renewing: Mutex<bool>,
    /// The number of tasks recorded since the set was made.
    created: AtomicU64,
    /// Tasks that are left to other executors.
    left: DashSet<TaskId>,
    /// Logs that name tasks of other executors.
    followers: DashMap<TaskId, lost::Follower>,
}

/// A task that is executed here.
pub(crate) struct Live {
    pub(crate) parent: SessionId,
    pub(crate) cancel: CancelTask,
    sink: EventSink,
    fence: u64,
    is_resumable: bool,
    abort: Option<AbortHandle>,
    /// The number of its parts that wait for a person.
    waiting: AtomicUsize,
}

impl Live {
    fn new(record: &TaskRecord, cancel: CancelTask, sink: EventSink) -> Self {
        let (parent, fence) = (record.parent_session_id.clone(), record.fence);
        let (is_resumable, abort) = (record.is_resumable, None);
        Self { parent, cancel, sink, fence, is_resumable, abort, waiting: AtomicUsize::new(0) }
    }

    /// Returns the status that was emitted last.
    fn status(&self) -> TaskStatus {
        let waits = self.waiting.load(Ordering::Acquire) > 0;
        if waits { TaskStatus::WaitingConfirm } else { TaskStatus::Running }
    }

    /// Counts one waiting part more, or one less. Returns how many wait now.
    fn count_waiting(&self, is_waiting: bool) -> (EventSink, u64, usize) {
        let parts = if is_waiting {
            self.waiting.fetch_add(1, Ordering::AcqRel) + 1
        } else {
            self.waiting.fetch_sub(1, Ordering::AcqRel) - 1
        };
        (self.sink.clone(), self.fence, parts)
    }
}

/// The description of a task that is to begin.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a caller that starts a task sets every field")]
pub struct NewTask {
    /// The task's id.
    pub id: TaskId,
    /// The agent that is notified of its end.
    pub parent_agent_id: Arc<str>,
    /// That agent's own session.
    pub parent_session_id: SessionId,
    /// The child that runs it.
    pub agent_key: AgentKey,
    /// The spec of the child.
    pub agent_id: Arc<str>,
    /// The name that the parent gave the child.
    pub label: Option<String>,
    /// The child's instructions.
    pub task: String,
    /// Whether another executor can [continue](TaskSet::take_over) it.
    pub is_resumable: bool,
    /// The child's sink, which moves to the background when the task is recorded.
    pub sink: EventSink,
    /// Cancels the child.
    pub cancel: CancelTask,
}

/// Cancels the work of a task for a reason. Cheap to clone.
#[derive(Clone)]
pub struct CancelTask(Arc<dyn Fn(CancelReason) + Send + Sync>);

impl CancelTask {
    /// Creates a value that cancels by calling this function.
    pub fn new(cancel: impl Fn(CancelReason) + Send + Sync + 'static) -> Self {
        Self(Arc::new(cancel))
    }

    pub(crate) fn cancel(&self, reason: CancelReason) {
        (self.0)(reason);
    }
}

impl fmt::Debug for CancelTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelTask").finish_non_exhaustive()
    }
}

/// How a task's work ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these are the terminal states")]
pub enum TaskEnd {
    /// It completed with this result.
    Completed(String),
    /// It failed.
    Failed {
        /// The failure.
        error: Failure,
        /// What the child had done and said until then.
        partial: Option<String>,
    },
    /// It was cancelled.
    Cancelled {
        /// Who cancelled it, for display.
        by: Arc<str>,
    },
}

impl From<Failure> for TaskEnd {
    /// The end of a task that failed and has come to nothing.
    fn from(error: Failure) -> Self {
        Self::Failed { error, partial: None }
    }
}

impl From<TaskEnd> for TaskChange {
    fn from(end: TaskEnd) -> Self {
        match end {
            TaskEnd::Completed(result) => Self::Complete { result },
            TaskEnd::Failed { error, partial } => Self::Fail { error, partial },
            TaskEnd::Cancelled { by } => Self::Cancel { by: by.to_string() },
        }
    }
}

impl TaskSet {
    /// Creates a set that records in this store. `executor` is its name among the sets that share
    /// the store.
    pub fn new(store: Arc<dyn TaskStore>, clock: Arc<dyn Clock>, executor: ExecutorId) -> Self {
        Self(Arc::new(Inner {
            store,
            clock,
            executor,
            live: DashMap::new(),
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
            no_grace: CancellationToken::new(),
            ends: watch::Sender::new(0),
            without_tasks: DashSet::new(),
            is_renewing: Mutex::new(false),
            created: AtomicU64::new(0),
            left: DashSet::new(),
            followers: DashMap::new(),
        }))
    }

    /// Creates a set with its records in memory.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(MemoryTaskStore::new()), Arc::new(SystemClock), ExecutorId::new("local"))
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn TaskStore> {
        &self.0.store
    }

    /// Returns the token that [`shutdown`](Self::shutdown) cancels. The tokens of work that may
    /// outlive its run are its children.
    pub fn token(&self) -> &CancellationToken {
        &self.0.stop
    }

    /// Drives a future to its end that is not a task but outlives its caller, such as a detached
    /// delivery. [`shutdown`](Self::shutdown) drops it.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn drive(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.drive_boxed(Box::pin(work), None);
    }

    /// Drives work as [`drive`](Self::drive) does, but a [`shutdown`](Self::shutdown) calls
    /// `on_shutdown` and drops the work only after its grace.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn drive_with(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
        on_shutdown: impl FnOnce() + Send + 'static,
    ) {
        self.drive_boxed(Box::pin(work), Some(Box::new(on_shutdown)));
    }

    fn drive_boxed(&self, mut work: Driven, on_shutdown: Option<Box<dyn FnOnce() + Send>>) {
        let (stop, no_grace) = (self.0.stop.clone(), self.0.no_grace.clone());
        let driven = async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = work.as_mut() => return,
            }
            if let Some(on_shutdown) = on_shutdown {
                on_shutdown();
                no_grace.run_until_cancelled(work).await;
            }
        };
        spawn(&self.0.tracker, driven);
    }

    /// Returns a watch that changes whenever a task of this set has ended.
    pub fn ends(&self) -> watch::Receiver<u64> {
        self.0.ends.subscribe()
    }

    /// Returns `false` if another executor has a task, such as one that has taken it over.
    ///
    /// # Errors
    /// The record can't be read.
    pub async fn is_executor_of(&self, id: &TaskId) -> Result<bool, TaskError> {
        let record = self.0.store.get(id).await?;
        let executor = record.and_then(|record| record.executor);
        Ok(executor.is_none_or(|executor| executor == self.0.executor))
    }

    /// Returns the number of running tasks.
    pub fn live(&self) -> usize {
        self.0.live.len()
    }

    /// Stops executing the [resumable](crate::TaskRecord::is_resumable) tasks and leaves them to
    /// the process that opens their sessions next: their records stay as they are, and their
    /// further events are discarded. Call it before a [`shutdown`](Self::shutdown), which cancels
    /// what it finds. Returns the number of tasks.
    pub fn leave_resumable(&self) -> usize {
        let inner = &*self.0;
        // Records in memory end with the process.
        let is_left = |live: &Live| live.is_resumable && inner.store.is_shared();
        let left = inner.live_where(is_left);
        for id in &left {
            inner.left.insert(id.clone());
        }
        for (_, live) in left.iter().filter_map(|id| inner.live.remove(id)) {
            live.sink.leave();
            live.abort.iter().for_each(AbortHandle::abort);
        }
        left.len()
    }

    /// Stops everything: cancels all tasks, waits for at most `grace`, then aborts those that are
    /// left. When it returns, all spawned work is dropped, every task of the set has an end in its
    /// record, and no task can begin.
    pub async fn shutdown(&self, grace: Duration) {
        let inner = &*self.0;
        // The reason comes first; the token stops work that begins in between.
        inner.cancel_all(&inner.live_where(|_| true), &CancelReason::Shutdown);
        inner.stop.cancel();
        inner.cancel_all(&inner.live_where(|_| true), &CancelReason::Shutdown);
        inner.tracker.close();
        let waited = timeout(grace, inner.tracker.wait()).await;
        inner.no_grace.cancel();
        if waited.is_err() {
            // Repeated, because a task that has just begun may not have its handle yet.
            while timeout(AGAIN, inner.tracker.wait()).await.is_err() {
                inner.live.iter().for_each(|live| live.abort.iter().for_each(AbortHandle::abort));
            }
        }
        for id in inner.live_where(|_| true) {
            inner.finish(&id, TaskEnd::Cancelled { by: CancelReason::Shutdown.by() }).await;
        }
        lease_renewal::release(inner).await;
    }
}

/// All work has one type, because the runtime's code for a task is not small.
type Driven = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Inner {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the ids of running tasks, sorted, so that they are always stopped in the same order.
    fn live_where(&self, holds: impl Fn(&Live) -> bool) -> Vec<TaskId> {
        let live = self.live.iter().filter(|live| holds(live));
        let mut ids: Vec<_> = live.map(|live| live.key().clone()).collect();
        ids.sort();
        ids
    }

    fn cancel_all(&self, tasks: &[TaskId], reason: &CancelReason) {
        for task in tasks {
            if let Some(cancel) = self.live.get(task).map(|live| live.cancel.clone()) {
                cancel.cancel(reason.clone());
            }
        }
    }
}

impl fmt::Debug for TaskSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { executor, .. } = &*self.0;
        f.debug_struct("TaskSet")
            .field("executor", executor)
            .field("live", &self.live())
            .finish_non_exhaustive()
    }
}
