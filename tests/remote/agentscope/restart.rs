//! A background task at AgentScope's own server outlives the process that began it, although the
//! server keeps the events of a task only while it runs.

use std::{sync::Arc, time::Duration};

use mainstem::{
    event::TaskStatus,
    journal::MemoryJournal,
    prelude::*,
    task::{MemoryTaskStore, TaskRecord},
};
use mainstem_testing::{remote::Act, render};

use super::java::{Java, Version};
use crate::{
    killed::killed_after,
    restart::{all, all_is_done, near, so_far},
    speaks::Speaks,
    support::ms,
};

/// Runs the caller's process to the end of its task.
async fn whole(url: &str) -> (Vec<AgentEvent>, TaskRecord) {
    let journal = Arc::new(MemoryJournal::new());
    let harness = near(Speaks::AgentScope, url, MemoryTaskStore::new(), &journal);
    let session = harness.open_session("s").await.unwrap();
    session.run("go").unwrap().reply().await.unwrap();
    all_is_done(&harness).await;
    (all(&journal).await, session.tasks().await.unwrap().remove(0))
}

/// Goes on behind these events; returns all of them, and the task.
async fn continued(url: &str, before: &[AgentEvent], task: &TaskRecord) -> (Vec<AgentEvent>, TaskRecord) {
    let (journal, store) = killed_after(before, task).await;
    let next = near(Speaks::AgentScope, url, store, &journal);
    let session = next.open_session("s").await.unwrap();
    all_is_done(&next).await;
    (all(&journal).await, session.tasks().await.unwrap().remove(0))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_ended_meanwhile_has_its_whole_answer() {
    for (act, answer) in [(Act::Answers, "Paris has 309 stations."), (Act::Calls, "Seen.")] {
        let (url, java) = Java::start(act, Version::Verbose).await;
        let (events, task) = whole(&url).await;
        assert_eq!(task.result.as_deref(), Some(answer));
        let is_of_child = |event: &AgentEvent| event.agent_id() == "far";
        let running = events.iter().position(|event| event.kind.name() == "TASK_UPDATED").unwrap();
        let begun = events.iter().position(is_of_child).unwrap().max(running) + 1;
        let ended = events.iter().rposition(is_of_child).unwrap();
        let every = if std::env::var_os("RUN_SLOW_TESTS").is_some() { 1 } else { 3 };
        for cut in (begun..ended).step_by(every) {
            let (events, task) = continued(&url, &events[..cut], &task).await;
            let text = render(&events);
            let (status, result) = (task.status, task.result.as_deref());
            assert_eq!((status, result), (TaskStatus::Completed, Some(answer)), "cut after {cut}\n{text}");
        }
        assert_eq!(java.inputs.lock().unwrap().len(), 1, "the task was begun once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_runs_goes_on_live() {
    let (url, java) = Java::start(Act::Slow, Version::Verbose).await;
    let (journal, store) = (Arc::new(MemoryJournal::new()), MemoryTaskStore::new());
    let first = near(Speaks::AgentScope, &url, store, &journal);
    let session = first.open_session("s").await.unwrap();
    session.run("go").unwrap().reply().await.unwrap();
    let said = async {
        let has_text = |event: &AgentEvent| event.depth() == 1 && event.kind.name() == "TEXT_BLOCK_DELTA";
        while !so_far(&journal).await.iter().any(has_text) {
            tokio::time::sleep(ms(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), said).await.expect("it says nothing");
    let task = session.tasks().await.unwrap().remove(0);
    let before = so_far(&journal).await;
    let (events, task) = continued(&url, &before, &task).await;
    let text = render(&events[before.len()..]);
    assert!(text.contains("STREAM_FALLBACK") && text.contains("DELTA \"two.\""), "{text}");
    assert_eq!(task.result.as_deref(), Some("One two."), "{text}");
    assert_eq!(java.inputs.lock().unwrap().len(), 1);
}
