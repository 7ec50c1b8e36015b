//! Two processes on one workspace.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use mainstem::{
    event::{Clock, SystemClock, TaskStatus, Timestamp},
    model::scripted::Turn,
    prelude::*,
    task::{ExecutorId, FileTaskStore, TaskFilter, TaskStore},
};
use mainstem_testing::{FakeClock, laws};
use serde_json::json;

use crate::support::{OpenNow, ms};

/// The executor's process; killed when dropped.
struct Executor(Child);

impl Executor {
    /// Starts it, and waits until its tasks have begun.
    fn start(workspace: &Path) -> Self {
        let mut executor = Command::new(env!("CARGO_BIN_EXE_executor"));
        let mut child = executor.arg(workspace).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "Begun.\n");
        Self(child)
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // On Unix a SIGKILL.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A clock that is ahead of the machine's.
struct Ahead(Duration);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(SystemClock.now().as_micros() + self.0.as_micros() as u64)
    }
}

/// Returns another process's harness on the same workspace.
fn other(workspace: &Path, ahead: Duration) -> Harness {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("I see.")]);
    Harness::builder("main", model).with_workspace(workspace).with_clock(Ahead(ahead)).build().unwrap()
}

#[tokio::test]
async fn one_works_and_the_other_looks_and_stops_it() {
    let workspace = tempfile::tempdir().unwrap();
    let _executor = Executor::start(workspace.path());
    let other = other(workspace.path(), Duration::ZERO);
    let tasks = other.session("s").tasks().await.unwrap();
    let statuses: Vec<_> = tasks.iter().map(|task| task.status).collect();
    assert_eq!(statuses, [TaskStatus::Running, TaskStatus::Running]);
    let started = Instant::now();
    let stopped = other.tasks().cancel(&tasks[0].id, "the other process", ms(10_000)).await.unwrap();
    assert_eq!(stopped.status, TaskStatus::Cancelled);
    assert_eq!(stopped.cancel.map(|cancel| cancel.by).as_deref(), Some("the other process"));
    assert!(
        started.elapsed() < ms(2000),
        "noticed within a second, on a quiet machine: {:?}",
        started.elapsed()
    );
    assert_eq!(
        other.tasks().get(&tasks[1].id).await.unwrap().status,
        TaskStatus::Running,
        "its sibling goes on"
    );
}

#[tokio::test]
async fn a_killed_executor_is_lost_at_once_and_the_parent_is_told() {
    let workspace = tempfile::tempdir().unwrap();
    drop(Executor::start(workspace.path()));
    let other = other(workspace.path(), Duration::ZERO);
    let events: Vec<_> = other.session("s").run("and?").unwrap().collect().await;
    laws(&events).unwrap();
    let told: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::HintBlock { hint, .. } => Some(hint.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].matches("status=FAILED").count(), 2, "{}", told[0]);
    assert_eq!(told[0].matches("has ended").count(), 2, "{}", told[0]);
    assert!(told[0].contains("executor lost"), "{}", told[0]);
    let tasks = other.session("s").tasks().await.unwrap();
    assert!(tasks.iter().all(|task| task.status == TaskStatus::Failed && task.delivered_at.is_some()));
}

#[tokio::test]
async fn an_executor_whose_lease_is_over_is_lost_although_its_process_lives() {
    let workspace = tempfile::tempdir().unwrap();
    let _executor = Executor::start(workspace.path());
    for (ahead, status) in [(15, TaskStatus::Running), (31, TaskStatus::Failed)] {
        let other = other(workspace.path(), Duration::from_secs(ahead));
        let tasks = other.session("s").tasks().await.unwrap();
        assert!(tasks.iter().all(|task| task.status == status), "{ahead} s later: {tasks:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_stops_polling_loses_no_lease_and_promotes_nothing() {
    let workspace = tempfile::tempdir().unwrap();
    let call =
        |task: &str, seconds: u64| json!({ "agent_id": "kid", "task": task, "timeout_seconds": seconds });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", call("hang", 0)).call("agent_spawn", call("talk", 30)),
                Turn::new().text("Done."),
            ],
        )
        .agent_on("kid", "hang", [Turn::new().text("I hang").hang()])
        .agent("kid", [Turn::new().pace(ms(1000)).say("one two three")]);
    let harness = Harness::builder("main", model)
        .with_workspace(workspace.path())
        .with_subagent(AgentSpec::new("kid", "K"))
        .with_clock(FakeClock::default())
        .build()
        .unwrap();
    let mut run = harness.stream_events("go");
    let session = run.handle().session().clone();
    while !matches!(&run.next().await.unwrap().kind, EventKind::TextBlockDelta { delta, .. } if delta == "one ")
    {
    }
    let clock = FakeClock::default();
    let before = clock.now();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let tasks = session.tasks().await.unwrap();
    assert_eq!(tasks.len(), 1, "the other child is waited for");
    let executor: ExecutorId = tasks[0].executor.clone().unwrap();
    let until = FileTaskStore::new(workspace.path()).lease(&executor).await.unwrap().unwrap();
    assert!(until.as_micros() > before.as_micros() + 60_000_000, "the lease was renewed all the time");
    let rest: Vec<_> = run.collect().await;
    assert!(
        rest.iter().all(|event| !matches!(event.kind, EventKind::TaskUpdated { .. })),
        "nothing is promoted"
    );
    harness.shutdown(ms(1000)).await;
    let after = FileTaskStore::new(workspace.path());
    assert_eq!(after.lease(&executor).await.unwrap(), None, "given up");
    let all = after.list(&TaskFilter::all()).await.unwrap();
    assert_eq!(all[0].status, TaskStatus::Cancelled);
}

/// Returns each task's status in the log and in its record, and whether its end was delivered.
async fn tasks_of(session: &Session) -> Vec<(TaskStatus, Option<TaskStatus>, bool)> {
    let (records, fleet) = (session.tasks().await.unwrap(), session.fleet());
    let seen = |task: &mainstem::task::TaskRecord| {
        (task.status, fleet.tasks.get(&task.id).copied(), task.delivered_at.is_some())
    };
    records.iter().map(seen).collect()
}

#[test]
fn opening_a_session_ends_the_tasks_of_a_dead_process_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let begin = serde_json::json!({ "agent_id": "kid", "task": "hang", "timeout_seconds": 0 });
    let turns =
        [Turn::new().call("agent_spawn", begin), Turn::new().text("Begun."), Turn::new().text("I see.")];
    let model = ScriptedModel::new().agent("main", turns).agent("kid", [Turn::new().text("I hang").hang()]);
    let process = || {
        let journal = mainstem::journal::SqliteJournal::open(dir.path().join("j.db")).unwrap();
        let harness = Harness::builder("main", model.clone()).with_workspace(dir.path().join("ws"));
        harness.with_subagent(AgentSpec::new("kid", "K")).with_journal(journal).build().unwrap()
    };
    std::fs::create_dir(dir.path().join("ws")).unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Its work stops silently, and its lease stays, as after a kill.
    runtime().block_on(async {
        let session = process().open_session("s").await.unwrap();
        session.run("go").unwrap().reply().await.unwrap();
        assert_eq!(tasks_of(&session).await, [(TaskStatus::Running, Some(TaskStatus::Running), false)]);
    });
    runtime().block_on(async {
        let harness = process();
        // The thread that writes for the first may be the last to release the session: it wakes its
        // log.
        while harness.journal().unwrap().is_open(&"s".parse().unwrap()).await.unwrap() {
            tokio::time::sleep(ms(5)).await;
        }
        let session = harness.open_session("s").await.unwrap();
        assert_eq!(tasks_of(&session).await, [(TaskStatus::Failed, Some(TaskStatus::Failed), false)]);
        let events: Vec<_> = session.run("and?").unwrap().collect().await;
        let told = |event: &AgentEvent| matches!(&event.kind, EventKind::HintBlock { hint, .. } if hint.contains("status=FAILED"));
        assert_eq!(events.iter().filter(|event| told(event)).count(), 1);
        assert_eq!(tasks_of(&session).await, [(TaskStatus::Failed, Some(TaskStatus::Failed), true)]);
    });
}
