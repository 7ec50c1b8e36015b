//! Processes that are killed while a child of theirs runs at a server of others.

use std::{sync::Arc, time::Duration};

use mainstem::{
    event::{TaskStatus, fold::fold},
    journal::{Journal, MemoryJournal},
    prelude::*,
    task::{MemoryTaskStore, TaskRecord},
};
use mainstem_testing::{laws, render};
use serde_json::json;

use crate::killed::killed_after;

/// A process with a child in the background.
struct Near {
    harness: Harness,
    session: Session,
    journal: Arc<MemoryJournal>,
}

impl Near {
    async fn start(far: AgentSpec, task: &str, journal: Arc<MemoryJournal>, store: MemoryTaskStore) -> Self {
        let spawn = json!({ "agent_id": "far", "task": task, "timeout_seconds": 0 });
        let turns = [Turn::new().call("agent_spawn", spawn), Turn::new().text("Begun.")];
        let harness = Harness::builder("main", ScriptedModel::new().agent("main", turns))
            .with_remote_host("127.0.0.1".parse().unwrap())
            .with_subagent(far)
            .with_journal(journal.clone())
            .with_task_store(store)
            .build()
            .unwrap();
        let session = harness.open_session("s").await.unwrap();
        Self { harness, session, journal }
    }

    /// Waits until the events of the session are as expected, and returns them.
    async fn until(&self, is_expected: impl Fn(&[AgentEvent]) -> bool) -> Vec<AgentEvent> {
        let wait = async {
            loop {
                let events = self.journal.read(self.session.id(), 1, 10_000).await.unwrap();
                if is_expected(&events) {
                    return events;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), wait).await.expect("the events do not come")
    }

    /// Waits for the end of its task, and checks the laws.
    async fn end(&self) -> (Vec<AgentEvent>, TaskRecord) {
        let done = async {
            while self.harness.tasks().live() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), done).await.expect("a task is running");
        let events = self.journal.read(self.session.id(), 1, 10_000).await.unwrap();
        laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
        (events, self.session.tasks().await.unwrap().remove(0))
    }
}

/// Returns the texts that the far agent has said and not discarded.
fn said(events: &[AgentEvent]) -> String {
    let all = fold(events).into_iter();
    let far = all.filter(|one| one.source.as_ref().is_some_and(|source| &*source.agent_id == "far"));
    let messages = far.flat_map(|one| one.messages().to_vec());
    messages.filter(|message| message.role == Role::Assistant).map(|message| message.text()).collect()
}

/// Runs a child in the background, and checks that its task has the same end if its process is
/// killed behind the beginning of the turn there, or behind any later event.
pub(crate) async fn check_each_cut(far: AgentSpec, task: &str) {
    let (journal, store) = (Arc::new(MemoryJournal::new()), MemoryTaskStore::new());
    let near = Near::start(far.clone(), task, journal, store).await;
    near.session.run("go").unwrap().reply().await.unwrap();
    let (whole, ended) = near.end().await;
    assert_eq!(ended.status, TaskStatus::Completed, "{ended:?}");
    let is_far = |event: &AgentEvent| event.agent_id() == "far";
    let (begun, end) = (whole.iter().position(is_far).unwrap() + 1, whole.iter().rposition(is_far).unwrap());
    for cut in (begun..end).step_by(5) {
        let (journal, store) = killed_after(&whole[..cut], &ended).await;
        let (events, task) = Near::start(far.clone(), task, journal, store).await.end().await;
        let text = render(&events);
        assert_eq!(
            (task.status, &task.result),
            (TaskStatus::Completed, &ended.result),
            "cut after {cut}: {task:?}\n{text}"
        );
        assert_eq!(said(&events), said(&whole), "cut after {cut}\n{text}");
        let ends = events.iter().filter(|event| is_far(event) && event.kind.name() == "AGENT_END");
        assert_eq!(ends.count(), 1, "cut after {cut}\n{text}");
    }
}

/// A process whose child was running when it was killed, and the one after it.
pub(crate) struct Killed {
    _first: Near,
    next: Near,
}

impl Killed {
    /// Kills a process once its child has emitted an event of this kind, and starts the next one.
    /// The other side does not notice.
    pub(crate) async fn after(kind: &str, far: AgentSpec) -> Self {
        let (journal, store) = (Arc::new(MemoryJournal::new()), MemoryTaskStore::new());
        let first = Near::start(far.clone(), "go", journal, store).await;
        first.session.run("go").unwrap().reply().await.unwrap();
        let events = first.until(|events| {
            events.iter().any(|event| event.agent_id() == "far" && event.kind.name() == kind)
        });
        let events = events.await;
        let task = first.session.tasks().await.unwrap().remove(0);
        let (journal, store) = killed_after(&events, &task).await;
        Self { _first: first, next: Near::start(far, "go", journal, store).await }
    }

    /// Waits for the end of the task; returns what the child has said, and the task's record.
    pub(crate) async fn end(&self) -> (Vec<AgentEvent>, String, TaskRecord) {
        let (events, task) = self.next.end().await;
        let said = said(&events);
        (events, said, task)
    }

    /// Answers the request for approval that the next process makes, which is the second one.
    pub(crate) async fn confirm(&self, decision: Decision) {
        let requests = |events: &[AgentEvent]| {
            let asked = |event: &AgentEvent| match &event.kind {
                EventKind::RequireUserConfirm { confirm_id, .. } => Some(confirm_id.clone()),
                _ => None,
            };
            events.iter().filter_map(asked).collect::<Vec<_>>()
        };
        let events = self.next.until(|events| requests(events).len() > 1).await;
        let asked = requests(&events);
        let told = self.next.session.confirm(&asked[0], Decision::Allow);
        assert!(told.is_err(), "the request of the process that was killed is withdrawn");
        self.next.session.confirm(&asked[1], decision).unwrap();
    }

    /// Cancels the task.
    pub(crate) async fn cancel(&self) -> TaskRecord {
        let id = self.next.session.tasks().await.unwrap().remove(0).id;
        self.next.harness.tasks().cancel(&id, "the test", Duration::from_secs(5)).await.unwrap()
    }
}
