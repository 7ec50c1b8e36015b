//! The only place that spawns: runs tasks, records how they end, and stops them.

mod ask;
mod begin;
mod lost;

pub use self::begin::Work;

use std::{
    fmt,
    future::Future,
    pin::pin,
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
    ExecutorId, MemoryTaskStore, TaskChange, TaskStore, clerk,
    sync::{AbortHandle, AtomicU64, AtomicUsize, spawn},
};

/// How often what does not end is dropped at a shutdown.
const AGAIN: Duration = Duration::from_millis(10);

/// All background work of a harness. Cheap to clone; clones are the same set.
///
/// A task lives until it ends, is cancelled, or [`shutdown`](Self::shutdown). Dropping the set
/// stops nothing; when the runtime goes, what is left of the work is dropped. In a store that
/// others share its tasks are lost when the process or its [lease](crate::LEASE) ends.
#[derive(Clone)]
pub struct TaskSet(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) executor: ExecutorId,
    pub(crate) live: DashMap<TaskId, Live>,
    pub(crate) tracker: TaskTracker,
    pub(crate) stop: CancellationToken,
    /// Changes whenever a task of this set has ended.
    pub(crate) ends: watch::Sender<u64>,
    /// Parents that are known to have no tasks, so that the store need not be asked before each of
    /// their model calls.
    quiet: DashSet<SessionId>,
    /// Whether somebody renews the lease.
    pub(crate) has_clerk: Mutex<bool>,
    /// How many tasks were ever recorded here.
    created: AtomicU64,
    /// Logs that name tasks of other executors.
    followers: DashMap<TaskId, lost::Follower>,
}

/// A task that is executed here.
pub(crate) struct Live {
    pub(crate) parent: SessionId,
    pub(crate) cancel: CancelTask,
    sink: EventSink,
    fence: u64,
    abort: Option<AbortHandle>,
    /// How many of its parts wait for a person.
    waiting: AtomicUsize,
}

impl Live {
    fn new(parent: SessionId, cancel: CancelTask, sink: EventSink, fence: u64) -> Self {
        Self { parent, cancel, sink, fence, abort: None, waiting: AtomicUsize::new(0) }
    }

    /// What it is, as was said last.
    fn status(&self) -> TaskStatus {
        let waits = self.waiting.load(Ordering::Acquire) > 0;
        if waits { TaskStatus::WaitingConfirm } else { TaskStatus::Running }
    }

    /// One part more waits, or one less; how many do now.
    fn waits(&self, is_waiting: bool) -> (EventSink, u64, usize) {
        let parts = if is_waiting {
            self.waiting.fetch_add(1, Ordering::AcqRel) + 1
        } else {
            self.waiting.fetch_sub(1, Ordering::AcqRel) - 1
        };
        (self.sink.clone(), self.fence, parts)
    }
}

/// What is to become a task.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by whoever starts a task, who must know all of it")]
pub struct NewTask {
    /// The handle.
    pub id: TaskId,
    /// The agent that is told of its end.
    pub parent_agent_id: Arc<str>,
    /// That agent's own session.
    pub parent_session_id: SessionId,
    /// The child that works on it.
    pub agent_key: AgentKey,
    /// What it is an instance of.
    pub agent_id: Arc<str>,
    /// The name that the parent gave it.
    pub label: Option<String>,
    /// What it was asked.
    pub task: String,
    /// The child's sink, which moves to the background when the task is recorded.
    pub sink: EventSink,
    /// Stops the child gently.
    pub cancel: CancelTask,
}

/// Cancels the work of a task for a reason. Cheap to clone.
#[derive(Clone)]
pub struct CancelTask(Arc<dyn Fn(CancelReason) + Send + Sync>);

impl CancelTask {
    /// Asks by this function.
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
    /// It has a result.
    Completed(String),
    /// It failed.
    Failed(Failure),
    /// It was stopped.
    Cancelled {
        /// By whom, in words for people.
        by: Arc<str>,
    },
}

impl From<TaskEnd> for TaskChange {
    fn from(end: TaskEnd) -> Self {
        match end {
            TaskEnd::Completed(result) => Self::Complete { result },
            TaskEnd::Failed(error) => Self::Fail { error },
            TaskEnd::Cancelled { by } => Self::Cancel { by: by.to_string() },
        }
    }
}

impl TaskSet {
    /// A set that keeps its records in a store; `executor` names it among all that share the store.
    pub fn new(store: Arc<dyn TaskStore>, clock: Arc<dyn Clock>, executor: ExecutorId) -> Self {
        Self(Arc::new(Inner {
            store,
            clock,
            executor,
            live: DashMap::new(),
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
            ends: watch::Sender::new(0),
            quiet: DashSet::new(),
            has_clerk: Mutex::new(false),
            created: AtomicU64::new(0),
            followers: DashMap::new(),
        }))
    }

    /// A set with its records in memory.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(MemoryTaskStore::new()), Arc::new(SystemClock), ExecutorId::new("local"))
    }

    /// Where the records are.
    pub fn store(&self) -> &Arc<dyn TaskStore> {
        &self.0.store
    }

    /// Is cancelled when the set is shut down; what may outlive a run hangs off it.
    pub fn token(&self) -> &CancellationToken {
        &self.0.stop
    }

    /// Drives something to its end that is no task but outlives its caller, such as a run that
    /// nobody reads. It is dropped at [`shutdown`](Self::shutdown).
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn drive(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.drive_or(work, || {});
    }

    /// Drives work as [`drive`](Self::drive) does, and calls `on_shutdown` before a
    /// [`shutdown`](Self::shutdown) drops it.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn drive_or(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
        on_shutdown: impl FnOnce() + Send + 'static,
    ) {
        let stop = self.0.stop.clone();
        let driven = async move {
            let mut work = pin!(work);
            tokio::select! {
                biased;
                () = stop.cancelled() => on_shutdown(),
                () = work.as_mut() => {}
            }
        };
        spawn(&self.0.tracker, driven);
    }

    /// Changes whenever a task of this set has ended.
    pub fn ends(&self) -> watch::Receiver<u64> {
        self.0.ends.subscribe()
    }

    /// How many are at work here.
    pub fn live(&self) -> usize {
        self.0.live.len()
    }

    /// Stops everything: asks all tasks to stop, waits so long, then drops what is left. When it
    /// returns, nothing that was spawned is alive, and every task of the set has an end in its
    /// record. No task can begin any more.
    pub async fn shutdown(&self, grace: Duration) {
        let inner = &*self.0;
        // With the reason first; the token stops work that begins between the two.
        inner.cancel_all(&inner.live_where(|_| true), &CancelReason::Shutdown);
        inner.stop.cancel();
        inner.cancel_all(&inner.live_where(|_| true), &CancelReason::Shutdown);
        inner.tracker.close();
        if timeout(grace, inner.tracker.wait()).await.is_err() {
            // Again and again, for one that was just beginning may have no handle yet.
            while timeout(AGAIN, inner.tracker.wait()).await.is_err() {
                inner.live.iter().for_each(|live| live.abort.iter().for_each(AbortHandle::abort));
            }
        }
        for id in inner.live_where(|_| true) {
            inner.finish(&id, TaskEnd::Cancelled { by: CancelReason::Shutdown.by() }).await;
        }
        clerk::release(inner).await;
    }
}

impl Inner {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The ids of tasks that are executed here; in order, for the same work is stopped in the same
    /// order.
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
