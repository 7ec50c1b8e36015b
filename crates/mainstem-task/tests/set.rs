//! How tasks end when their store fails, or when another process has ended them.

use std::{
    future::pending,
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use mainstem_event::{
    CancelReason, Clock, EventKind, EventSink, EventSource, LogOptions, Origin, SessionLog, SystemClock,
    TaskStatus, Timestamp,
};
use mainstem_message::{AgentKey, Failure, ReplyId, SessionId, TaskId};
use mainstem_task::{
    CancelTask, ExecutorId, Expected, LEASE_DURATION, MemoryTaskStore, NewTask, TaskChange, TaskEnd,
    TaskError, TaskFilter, TaskRecord, TaskSet, TaskStore,
};
use mainstem_testing::FakeClock;
use tokio_util::sync::CancellationToken;

/// A store in memory whose next changes fail.
#[derive(Default)]
struct Flaky {
    store: MemoryTaskStore,
    failures: AtomicUsize,
    is_shared: AtomicBool,
    /// Another process requests a cancel before the next change.
    is_cancelled: AtomicBool,
}

/// Tokio's clock, set ahead by hand.
#[derive(Default)]
struct Watch {
    clock: FakeClock,
    ahead: AtomicU64,
}

impl Clock for Watch {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.clock.now().as_micros() + self.ahead.load(Ordering::Relaxed))
    }
}

#[async_trait::async_trait]
impl TaskStore for Flaky {
    async fn create(&self, record: TaskRecord) -> Result<(), TaskError> {
        self.store.create(record).await
    }

    async fn update(
        &self,
        id: &TaskId,
        expected: Expected,
        change: TaskChange,
        now: Timestamp,
    ) -> Result<TaskRecord, TaskError> {
        if self
            .failures
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_ok()
        {
            let full = io::Error::from(io::ErrorKind::StorageFull);
            return Err(TaskError::io("write", "tasks")(full));
        }
        if self.is_cancelled.swap(false, Ordering::Relaxed) {
            let request = TaskChange::RequestCancel { by: "another process".into() };
            self.store.update(id, Expected::any(), request, now).await?;
        }
        self.store.update(id, expected, change, now).await
    }

    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, TaskError> {
        self.store.get(id).await
    }

    async fn list(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, TaskError> {
        self.store.list(filter).await
    }

    async fn remove(&self, id: &TaskId) -> Result<TaskRecord, TaskError> {
        self.store.remove(id).await
    }

    async fn renew(&self, executor: &ExecutorId, until: Timestamp) -> Result<(), TaskError> {
        self.store.renew(executor, until).await
    }

    async fn lease(&self, executor: &ExecutorId) -> Result<Option<Timestamp>, TaskError> {
        self.store.lease(executor).await
    }

    async fn release(&self, executor: &ExecutorId) -> Result<(), TaskError> {
        self.store.release(executor).await
    }

    fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }
}

struct Rig {
    store: Arc<Flaky>,
    set: TaskSet,
    log: Arc<SessionLog>,
}

impl Rig {
    fn new() -> Self {
        let store = Arc::new(Flaky::default());
        let log = SessionLog::with(SessionId::from_lossy("s"), Arc::new(SystemClock), LogOptions::default());
        let set = TaskSet::new(store.clone(), Arc::new(SystemClock), ExecutorId::new("me"));
        Self { store, set, log }
    }

    fn task(&self) -> NewTask {
        let origin = Origin::session(SessionId::from_lossy("s"), None);
        let source = EventSource {
            agent_key: AgentKey::from_lossy("agent:kid:1"),
            agent_id: "kid".into(),
            agent_name: None,
            label: None,
            title: None,
            session_id: SessionId::from_lossy("sub-1"),
            parent_session_id: SessionId::from_lossy("s"),
            depth: 1,
            path: "s/kid".into(),
            task_id: None,
            turn: 1,
            parent_tool_call_id: None,
            stream_id: 0,
        };
        NewTask {
            id: TaskId::from_lossy("task-1"),
            parent_agent_id: "main".into(),
            parent_session_id: SessionId::from_lossy("s"),
            agent_key: source.agent_key.clone(),
            agent_id: "kid".into(),
            label: None,
            task: "dig".to_owned(),
            is_resumable: false,
            sink: EventSink::root(self.log.clone(), origin).child(source, ReplyId::from_lossy("reply-1")),
            cancel: CancelTask::new(|_| {}),
        }
    }

    /// Returns the task's changes in the log, from its beginning on.
    fn changes(&self) -> Vec<(TaskStatus, TaskStatus)> {
        let mut cursor = self.log.subscribe_from(1);
        let events = std::iter::from_fn(|| cursor.try_next());
        let change = |kind: &EventKind| match kind {
            EventKind::TaskUpdated { from, to, .. } => Some((*from, *to)),
            _ => None,
        };
        events.filter_map(|event| change(&event.kind)).collect()
    }
}

const BEGUN: (TaskStatus, TaskStatus) = (TaskStatus::Pending, TaskStatus::Running);

#[tokio::test(start_paused = true)]
async fn an_end_is_recorded_once_the_store_can() {
    for (failures, recorded) in
        [(0, TaskStatus::Completed), (4, TaskStatus::Completed), (99, TaskStatus::Running)]
    {
        let rig = Rig::new();
        let work = Box::pin(async { TaskEnd::Completed("gold".to_owned()) });
        let store = rig.store.clone();
        store.failures.store(failures, Ordering::Relaxed);
        rig.set.begin(rig.task(), work).await.map_err(|(error, _)| error).unwrap();
        while rig.set.live() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let record = store.get(&TaskId::from_lossy("task-1")).await.unwrap().unwrap();
        assert_eq!(record.status, recorded, "after {failures} failures");
        // An end is emitted in any case: one that can't be recorded is a failure.
        let emitted = if recorded == TaskStatus::Completed { recorded } else { TaskStatus::Failed };
        assert_eq!(rig.changes(), [BEGUN, (TaskStatus::Running, emitted)], "after {failures} failures");
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_that_another_process_recorded_stands() {
    let rig = Rig::new();
    let mut task = rig.task();
    let (id, stop, reason) = (task.id.clone(), CancellationToken::new(), Arc::new(OnceLock::new()));
    let (cancelled, told) = (stop.clone(), reason.clone());
    task.cancel = CancelTask::new(move |why| {
        told.set(why).unwrap();
        cancelled.cancel();
    });
    let work = Box::pin(async move {
        stop.cancelled().await;
        TaskEnd::Completed("gold".to_owned())
    });
    rig.set.begin(task, work).await.map_err(|(error, _)| error).unwrap();
    let lost =
        TaskChange::Fail { error: Failure::new("executor_lost", "its lease has ended"), partial: None };
    rig.store.update(&id, Expected::any(), lost, Timestamp::from_micros(1)).await.unwrap();
    rig.set.cancel_below(&SessionId::from_lossy("s"), &CancelReason::RunEnded);
    let record =
        rig.set.wait(std::slice::from_ref(&id), Duration::from_secs(1)).await.unwrap().unwrap().remove(0);
    while rig.set.live() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!((record.status, record.result), (TaskStatus::Failed, None));
    assert_eq!(reason.get(), Some(&CancelReason::RunEnded));
    assert_eq!(rig.changes(), [BEGUN, (TaskStatus::Running, TaskStatus::Failed)]);
}

#[tokio::test(start_paused = true)]
async fn a_task_is_removed_once_it_is_over() {
    let rig = Rig::new();
    let (task, (ended, end)) = (rig.task(), tokio::sync::oneshot::channel::<()>());
    let id = task.id.clone();
    let work = Box::pin(async {
        let _ = end.await;
        TaskEnd::Completed("gold".to_owned())
    });
    rig.set.begin(task, work).await.map_err(|(error, _)| error).unwrap();
    let refused = rig.set.remove(&id).await.unwrap_err().to_string();
    let expected =
        "task task-1 is running: only the record of a task that is over can be removed; cancel it first";
    assert_eq!(refused, expected);
    ended.send(()).unwrap();
    rig.set.wait(std::slice::from_ref(&id), Duration::from_secs(1)).await.unwrap();
    assert_eq!(rig.set.remove(&id).await.unwrap().result.as_deref(), Some("gold"));
    assert!(matches!(rig.set.remove(&id).await, Err(TaskError::Unknown { .. })));
    assert!(rig.set.list(&TaskFilter::default()).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_executor_has_a_lease_while_it_has_tasks() {
    let rig = Rig::new();
    rig.store.is_shared.store(true, Ordering::Relaxed);
    let me = ExecutorId::new("me");
    for n in 0..3 {
        let (ended, end) = tokio::sync::oneshot::channel::<()>();
        let task = NewTask { id: TaskId::try_from(format!("task-{n}")).unwrap(), ..rig.task() };
        let work = Box::pin(async {
            let _ = end.await;
            TaskEnd::Completed("gold".to_owned())
        });
        rig.set.begin(task, work).await.map_err(|(error, _)| error).unwrap();
        tokio::time::sleep(LEASE_DURATION).await;
        assert!(rig.store.lease(&me).await.unwrap().is_some());
        ended.send(()).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(rig.store.lease(&me).await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_is_being_cancelled_has_ended_all_the_same() {
    let rig = Rig::new();
    rig.store.is_shared.store(true, Ordering::Relaxed);
    rig.set.begin(rig.task(), Box::pin(pending())).await.map_err(|(error, _)| error).unwrap();
    let next = TaskSet::new(rig.store.clone(), Arc::new(SystemClock), ExecutorId::new("next"));
    let lost = |_: &TaskId| Some(TaskEnd::from(Failure::new("restarted", "gone")));
    let statuses = async || {
        let records = next.end_orphans(&SessionId::from_lossy("s"), lost).await.unwrap();
        records.into_iter().map(|record| (record.status, record.cancel.is_some())).collect::<Vec<_>>()
    };
    assert_eq!(statuses().await, [(TaskStatus::Running, false)], "its executor is alive");
    rig.store.release(&ExecutorId::new("me")).await.unwrap();
    rig.store.is_cancelled.store(true, Ordering::Relaxed);
    assert_eq!(statuses().await, [(TaskStatus::Failed, true)]);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_takes_no_task_from_a_living_executor() {
    const HOUR: u64 = 3_600_000_000;
    let mut rig = Rig::new();
    rig.store.is_shared.store(true, Ordering::Relaxed);
    let watch = Arc::new(Watch::default());
    watch.ahead.store(HOUR, Ordering::Relaxed);
    let (me, id) = (ExecutorId::new("me"), TaskId::from_lossy("task-1"));
    rig.set = TaskSet::new(rig.store.clone(), watch.clone(), me.clone());
    let other = TaskSet::new(rig.store.clone(), watch.clone(), ExecutorId::new("other"));
    rig.set.begin(rig.task(), Box::pin(pending())).await.map_err(|(error, _)| error).unwrap();
    for ahead in [2 * HOUR, 0] {
        watch.ahead.store(ahead, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(other.get(&id).await.unwrap().status, TaskStatus::Running, "set to {ahead}");
        // If it died now, others would find that out in time.
        let until = rig.store.lease(&me).await.unwrap().unwrap().as_micros();
        assert!(until <= watch.now().as_micros() + LEASE_DURATION.as_micros() as u64, "set to {ahead}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_begins_during_a_shutdown_outlives_it() {
    for _ in 0..200 {
        let rig = Rig::new();
        let (set, task) = (rig.set.clone(), rig.task());
        let begins = std::thread::spawn({
            let runtime = tokio::runtime::Handle::current();
            move || runtime.block_on(set.begin(task, Box::pin(pending()))).is_ok()
        });
        rig.set.shutdown(Duration::ZERO).await;
        assert_eq!(rig.set.live(), 0);
        if begins.join().unwrap() {
            let record = rig.set.get(&TaskId::from_lossy("task-1")).await.unwrap();
            assert_eq!(record.status, TaskStatus::Cancelled);
        }
    }
}

/// Begins a task that another executor can continue, in a shared store.
#[expect(clippy::unwrap_used, reason = "a test says what it found by failing")]
async fn begin_resumable(rig: &Rig) -> TaskRecord {
    rig.store.is_shared.store(true, Ordering::Relaxed);
    let task = NewTask { is_resumable: true, ..rig.task() };
    rig.set.begin(task, Box::pin(pending())).await.map_err(|(error, _)| error).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_resumable_task_waits_for_an_executor_where_another_has_failed() {
    for (is_resumable, status) in [(true, TaskStatus::Running), (false, TaskStatus::Failed)] {
        let rig = Rig::new();
        rig.store.is_shared.store(true, Ordering::Relaxed);
        let task = NewTask { is_resumable, ..rig.task() };
        rig.set.begin(task, Box::pin(pending())).await.map_err(|(error, _)| error).unwrap();
        let next = TaskSet::new(rig.store.clone(), Arc::new(SystemClock), ExecutorId::new("next"));
        let (id, root) = (TaskId::from_lossy("task-1"), SessionId::from_lossy("s"));
        assert!(next.find_resumable(&root).await.unwrap().is_empty(), "its executor is alive");
        rig.store.release(&ExecutorId::new("me")).await.unwrap();
        assert_eq!(next.find_resumable(&root).await.unwrap().len(), usize::from(is_resumable));
        assert_eq!(next.resumable_sessions().await.unwrap().contains(&root), is_resumable);
        assert_eq!(next.get(&id).await.unwrap().status, status, "{is_resumable}");
        // A session that is deleted leaves no record of it.
        assert_eq!(next.forget_below(&root).await.unwrap(), 1);
        assert!(rig.store.get(&id).await.unwrap().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn one_executor_takes_a_task_over() {
    let rig = Rig::new();
    let record = begin_resumable(&rig).await;
    rig.set.set_waiting(&record.id, true).await;
    let record = rig.store.get(&record.id).await.unwrap().unwrap();
    rig.store.release(&ExecutorId::new("me")).await.unwrap();
    let sets = ["one", "other"]
        .map(|name| TaskSet::new(rig.store.clone(), Arc::new(SystemClock), ExecutorId::new(name)));
    let request = TaskChange::RequestCancel { by: "the user".to_owned() };
    rig.store.update(&record.id, Expected::any(), request, Timestamp::from_micros(1)).await.unwrap();
    let cancelled = Arc::new(AtomicUsize::new(0));
    let take_over = async |set: &TaskSet| {
        let told = cancelled.clone();
        let cancel = CancelTask::new(move |_| _ = told.fetch_add(1, Ordering::Relaxed));
        let work = Box::pin(async { TaskEnd::Completed("gold".to_owned()) });
        let taken = set.take_over(record.clone(), rig.task().sink, cancel, work).await;
        taken.map(|record| record.executor.unwrap()).map_err(|(error, _)| error)
    };
    let [one, other] = &sets;
    let (one_took, other_took) = tokio::join!(take_over(one), take_over(other));
    let (taken, refused) = if one_took.is_ok() { (one_took, other_took) } else { (other_took, one_took) };
    assert!(matches!(refused, Err(TaskError::Fenced { .. })), "{refused:?}");
    assert_eq!(cancelled.load(Ordering::Relaxed), 1, "a cancel that was requested meanwhile is passed on");
    let id = std::slice::from_ref(&record.id);
    let end = one.wait(id, Duration::from_secs(1)).await.unwrap().unwrap().remove(0);
    assert_eq!((end.status, end.fence, end.executor), (TaskStatus::Completed, 2, Some(taken.unwrap())));
    let waits = (TaskStatus::Running, TaskStatus::WaitingConfirm);
    let goes_on = (TaskStatus::WaitingConfirm, TaskStatus::Running);
    let completes = (TaskStatus::Running, TaskStatus::Completed);
    assert_eq!(rig.changes(), [BEGUN, waits, goes_on, completes]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_left_has_no_end_and_no_further_events() {
    let rig = Rig::new();
    let record = begin_resumable(&rig).await;
    assert_eq!(rig.set.leave_resumable(), 1);
    assert_eq!((rig.set.live(), rig.set.leave_resumable()), (0, 0));
    assert_eq!(rig.set.get(&record.id).await.unwrap().status, TaskStatus::Running, "a reader fails it");
    rig.set.shutdown(Duration::ZERO).await;
    let left = rig.store.get(&record.id).await.unwrap().unwrap();
    assert_eq!((left.status, left.fence), (TaskStatus::Running, 1));
    assert_eq!(rig.changes(), [BEGUN]);
    assert_eq!(rig.store.lease(&ExecutorId::new("me")).await.unwrap(), None);
}
