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
