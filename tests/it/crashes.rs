//! Background tasks after a crash: their records and the log of their session agree, whichever of
//! the two was ahead.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use mainstem::{
    event::{Clock, SystemClock, TaskStatus, Timestamp},
    journal::MemoryJournal,
    message::TaskId,
    model::scripted::Turn,
    prelude::*,
    task::{
        ExecutorId, Expected, LEASE_DURATION, MemoryTaskStore, TaskChange, TaskError, TaskFilter, TaskRecord,
        TaskSet, TaskStore,
    },
};
use mainstem_testing::{FakeClock, FaultyJournal, laws, render};
use serde_json::json;

use crate::{
    journal::{all, all_is_done},
    resume::killed_after,
    support::{harness, ms},
};

/// A state of a store's records.
#[derive(Clone, Default)]
struct State {
    records: Vec<TaskRecord>,
    /// The number of committed events at that time.
    committed: usize,
}

/// A shared store in memory that records every state of its records.
#[derive(Clone, Default)]
struct Traced {
    store: Arc<MemoryTaskStore>,
    states: Arc<Mutex<Vec<State>>>,
    journal: Option<FaultyJournal>,
}

impl Traced {
    /// Creates a store with these records.
    async fn of(records: &[TaskRecord]) -> Self {
        let traced = Self::default();
        for record in records {
            traced.store.create(record.clone()).await.unwrap();
        }
        traced
    }

    /// Returns the states of the records, the empty one first.
    fn states(&self) -> Vec<State> {
        [State::default()].into_iter().chain(self.states.lock().unwrap().iter().cloned()).collect()
    }

    async fn note(&self) {
        let records = self.store.list(&TaskFilter::all()).await.unwrap();
        let committed = match &self.journal {
            Some(journal) => all(journal).await.len(),
            None => 0,
        };
        self.states.lock().unwrap().push(State { records, committed });
    }
}

#[async_trait]
impl TaskStore for Traced {
    async fn create(&self, record: TaskRecord) -> Result<(), TaskError> {
        self.store.create(record).await?;
        self.note().await;
        Ok(())
    }

    async fn update(
        &self,
        id: &TaskId,
        expected: Expected,
        change: TaskChange,
        now: Timestamp,
    ) -> Result<TaskRecord, TaskError> {
        let changed = self.store.update(id, expected, change, now).await?;
        self.note().await;
        Ok(changed)
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
        true
    }
}

/// One child that answers in the background, one that is cancelled there, one that is promoted, and
/// one whose parent is a child.
fn script() -> ScriptedModel {
    let spawn = |agent: &str, task: &str, seconds: u64| json!({ "agent_id": agent, "task": task, "timeout_seconds": seconds });
    ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new()
                    .call("agent_spawn", spawn("kid", "one", 0))
                    .call("agent_spawn", spawn("kid", "two", 0)),
                Turn::new().call("agent_spawn", spawn("lead", "three", 1)),
                Turn::new().call("task_cancel", json!({ "task_id": "task-2" })),
                Turn::new().call("task_wait", json!({})),
                Turn::new().text("All of it."),
                Turn::new().text("As I said."),
            ],
        )
        .agent_on("kid", "one", [Turn::new().pace(ms(1)).say("I dig deep"), Turn::new().text("Gold.")])
        .agent_on("kid", "two", [Turn::new().text("I hang").hang()])
        .agent_on("kid", "four", [Turn::new().pace(ms(1000)).say("So do I")])
        .agent(
            "lead",
            [
                Turn::new().call("agent_spawn", spawn("kid", "four", 0)),
                Turn::new().pace(ms(500)).say("It takes its time"),
            ],
        )
}

fn builder(model: ScriptedModel) -> HarnessBuilder {
    let lead = AgentSpec::new("lead", "Leads").with_tools(["agent_spawn"]);
    harness(model).with_subagent(AgentSpec::new("kid", "K")).with_subagent(lead)
}

/// A clock that advances with tokio's, and by a microsecond at each call, so that times are unique.
#[derive(Clone, Default)]
struct Ticking(Arc<(FakeClock, AtomicU64)>);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let (clock, asked) = &*self.0;
        Timestamp::from_micros(clock.now().as_micros() + asked.fetch_add(1, Ordering::Relaxed))
    }
}

/// Returns what a whole run records: its events, and each state of the store.
async fn recorded(clock: &Ticking) -> (Vec<AgentEvent>, Vec<State>) {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let store = Traced { journal: Some(journal.clone()), ..Traced::default() };
    let first = builder(script())
        .with_clock(clock.clone())
        .with_journal(journal.clone())
        .with_task_store(store.clone())
        .build()
        .unwrap();
    let session = first.open_session("s").await.unwrap();
    session.run("go").unwrap().reply().await.unwrap();
    all_is_done(&first).await;
    (all(&journal).await, store.states())
}

fn is_event_of_task(event: &AgentEvent) -> bool {
    matches!(event.kind, EventKind::TaskUpdated { .. })
}

/// Returns the tasks whose end is among these events.
fn ended(events: &[AgentEvent]) -> Vec<TaskId> {
    let ended = |event: &AgentEvent| match &event.kind {
        EventKind::TaskUpdated { task_id, to, .. } if to.is_terminal() => Some(task_id.clone()),
        _ => None,
    };
    events.iter().filter_map(ended).collect()
}

/// Returns `true` if the events have deliveries for all tasks whose ends count as delivered.
fn tell(events: &[AgentEvent], records: &[TaskRecord]) -> bool {
    let told = records.iter().filter(|task| task.delivered_at.is_some());
    told.map(|task| &task.id).all(|id| events.iter().any(|event| tells(event, id)))
}

fn tells(event: &AgentEvent, id: &TaskId) -> bool {
    match &event.kind {
        EventKind::HintBlock { hint, .. } => hint.contains(&format!("task_id={id},")),
        EventKind::ToolResultTextDelta { delta, .. } => delta.contains(&format!("task_id: {id}\nagent_id")),
        _ => false,
    }
}

/// Opens the session of a process that was killed with this log and these records, and checks that
/// they agree.
async fn check_agree(
    clock: &Ticking,
    events: &[AgentEvent],
    records: &[TaskRecord],
    is_listed: bool,
    place: &str,
) {
    let (journal, store) = (killed_after(events).await, Traced::of(records).await);
    if is_listed {
        let tool = TaskSet::new(Arc::new(store.clone()), Arc::new(SystemClock), ExecutorId::new("tool"));
        let seen = tool.list(&TaskFilter::all()).await.unwrap();
        assert!(seen.iter().all(TaskRecord::is_over), "{place}: {seen:?}");
    }
    let process = || {
        let goes_on = ScriptedModel::new().agent("main", (0..9).map(|_| Turn::new().text("On.")));
        let next = builder(goes_on).with_ids(mainstem::event::RandomIds).with_clock(clock.clone());
        next.with_journal(journal.clone()).with_task_store(store.clone()).build().unwrap()
    };
    let next = process();
    let session = next.open_session("s").await.unwrap();
    let (now, fleet) = (session.tasks().await.unwrap(), session.fleet());
    let log = all(&journal).await;
    laws(&log).unwrap_or_else(|error| panic!("{place}: {error}\n{}", render(&log)));
    assert_eq!(now.len(), records.len(), "{place}");
    for task in &now {
        assert!(task.is_over(), "{place}: {task:?}");
        assert_eq!(Some(&task.status), fleet.tasks.get(&task.id), "{place}: {}\n{}", task.id, render(&log));
    }
    assert!(fleet.tasks.values().all(|status| status.is_terminal()), "{place}: {:?}", fleet.tasks);
    // The task of a child that answered is completed, unless its record already had an end.
    for task in
        now.iter().filter(|task| !is_listed && !records.iter().any(|old| old.id == task.id && old.is_over()))
    {
        let answered = |event: &AgentEvent| {
            let is_end = matches!(event.kind, EventKind::AgentEnd { outcome: Outcome::Success, .. });
            is_end && event.source().is_some_and(|source| source.task_id.as_ref() == Some(&task.id))
        };
        if events.iter().any(answered) {
            assert_eq!(task.status, TaskStatus::Completed, "{place}: {}", task.id);
            assert!(task.result.as_ref().is_some_and(|result| !result.is_empty()), "{place}: {task:?}");
        }
    }
    assert!(tell(&log, &now), "{place}: {now:?}\n{}", render(&log));
    // Ends that were recorded before have not changed.
    for before in records.iter().filter(|record| record.is_over()) {
        let after = now.iter().find(|task| task.id == before.id).unwrap();
        assert_eq!((after.status, &after.result), (before.status, &before.result), "{place}");
    }
    // The end of each of its tasks is delivered to the root once.
    session.run("and?").unwrap().reply().await.unwrap();
    let (now, log) = (session.tasks().await.unwrap(), all(&journal).await);
    laws(&log).unwrap_or_else(|error| panic!("{place}: {error}\n{}", render(&log)));
    for task in now.iter().filter(|task| &*task.parent_agent_id == "main") {
        let told: Vec<_> = log.iter().filter(|event| tells(event, &task.id)).collect();
        let hints = told.iter().filter(|event| matches!(event.kind, EventKind::HintBlock { .. })).count();
        assert!(!told.is_empty() && hints <= 1, "{place}: {}\n{}", task.id, render(&log));
        assert!(task.delivered_at.is_some(), "{place}: {}", task.id);
    }
    drop((session, next));
    // A second opening ends no further task.
    let again = process();
    let session = again.open_session("s").await.unwrap();
    assert_eq!(all(&journal).await.len(), log.len(), "{place}");
    assert_eq!(session.tasks().await.unwrap(), now, "{place}");
}

#[tokio::test(start_paused = true)]
async fn the_log_and_the_records_agree_wherever_either_was_cut() {
    let clock = Ticking::default();
    let (events, states) = recorded(&clock).await;
    laws(&events).unwrap();
    let whole = render(&events);
    assert_eq!(states.last().unwrap().records.len(), 4, "{whole}");
    assert!(events.iter().filter(|event| is_event_of_task(event)).count() >= 8, "{whole}");
    for State { records, committed } in &states {
        assert!(tell(&events[..*committed], records), "after {committed}: {records:?}\n{whole}");
    }
    // All of them in full runs, some of them otherwise.
    let every = if std::env::var_os("RUN_SLOW_TESTS").is_some() { 1 } else { 5 };
    for cut in 0..=events.len() {
        for (state, State { records, .. }) in
            states.iter().enumerate().filter(|(state, _)| (cut + state) % every == 0)
        {
            // After any crash, a record that counts as delivered has its message in the log.
            if cut == 0 && records.is_empty() || !tell(&events[..cut], records) {
                continue;
            }
            let place = format!("cut after {cut} of {}, state {state} of {}", events.len(), states.len());
            check_agree(&clock, &events[..cut], records, false, &place).await;
            // An end is recorded before it is emitted, so a list never contradicts an end in the
            // log.
            if ended(&events[..cut])
                .iter()
                .all(|id| records.iter().any(|task| task.id == *id && task.is_over()))
            {
                check_agree(&clock, &events[..cut], records, true, &format!("{place}, listed")).await;
            }
        }
    }
}

/// Returns the status of a session's only task: in its record, and in its log.
async fn statuses(session: &Session) -> (TaskStatus, Option<TaskStatus>) {
    let task = session.tasks().await.unwrap().remove(0);
    (task.status, session.fleet().tasks.get(&task.id).copied())
}

/// Returns a process whose root begins a task that does not end.
fn hanging() -> HarnessBuilder {
    let spawn = json!({ "agent_id": "kid", "task": "hang", "timeout_seconds": 0 });
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("agent_spawn", spawn), Turn::new().text("Begun.")])
        .agent("kid", [Turn::new().text("I hang").hang()]);
    harness(model)
        .with_ids(mainstem::event::RandomIds)
        .with_clock(SystemClock)
        .with_subagent(AgentSpec::new("kid", "K"))
}

async fn begin(workspace: &Path, journal: &FaultyJournal) -> (Harness, Session) {
    let harness = hanging().with_workspace(workspace).with_journal(journal.clone()).build().unwrap();
    let session = harness.open_session("s").await.unwrap();
    session.run("go").unwrap().reply().await.unwrap();
    assert_eq!(statuses(&session).await, (TaskStatus::Running, Some(TaskStatus::Running)));
    (harness, session)
}

#[tokio::test]
async fn a_task_of_a_living_executor_is_not_ended_by_a_session_of_the_same_id_in_another_journal() {
    let workspace = tempfile::tempdir().unwrap();
    let journal = FaultyJournal::new(MemoryJournal::new());
    let (executor, session) = begin(workspace.path(), &journal).await;
    let task = session.tasks().await.unwrap().remove(0).id;
    let other = |journal: FaultyJournal| {
        hanging().with_workspace(workspace.path()).with_journal(journal).build().unwrap()
    };
    // One journal lacks the task; the other is a copy.
    let empty = other(FaultyJournal::new(MemoryJournal::new()));
    let copy = other(killed_after(&all(&journal).await).await);
    let (stranger, twin) = (empty.open_session("s").await.unwrap(), copy.open_session("s").await.unwrap());
    assert_eq!(statuses(&session).await, (TaskStatus::Running, Some(TaskStatus::Running)));
    assert_eq!(statuses(&stranger).await, (TaskStatus::Running, None));
    assert_eq!(statuses(&twin).await, (TaskStatus::Running, Some(TaskStatus::Running)));
    let ended = executor.tasks().cancel(&task, "its own process", ms(10_000)).await.unwrap();
    assert_eq!((ended.status, session.fleet().tasks[&task]), (TaskStatus::Cancelled, TaskStatus::Cancelled));
    // The log that names it gets its end.
    assert_eq!(statuses(&stranger).await, (TaskStatus::Cancelled, None));
    assert_eq!(statuses(&twin).await, (TaskStatus::Cancelled, Some(TaskStatus::Cancelled)));
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_executor_may_live_ends_in_record_and_log_when_the_lease_does() {
    let (events, states) = recorded(&Ticking::default()).await;
    let (records, began) = (&states[1].records, events.iter().position(is_event_of_task).unwrap());
    let (journal, store) = (killed_after(&events[..=began]).await, Traced::of(records).await);
    let executor = records[0].executor.clone().unwrap();
    let next = builder(script()).with_ids(mainstem::event::RandomIds).with_journal(journal.clone());
    let next = next.with_clock(SystemClock).with_task_store(store.clone()).build().unwrap();
    let soon = SystemClock.now().as_micros() + LEASE_DURATION.as_micros() as u64;
    store.renew(&executor, Timestamp::from_micros(soon)).await.unwrap();
    let session = next.open_session("s").await.unwrap();
    assert_eq!(statuses(&session).await, (TaskStatus::Running, Some(TaskStatus::Running)));
    store.renew(&executor, Timestamp::from_micros(1)).await.unwrap();
    assert_eq!(statuses(&session).await, (TaskStatus::Failed, Some(TaskStatus::Failed)));
    let log = all(&journal).await;
    laws(&log).unwrap_or_else(|error| panic!("{error}\n{}", render(&log)));
}
