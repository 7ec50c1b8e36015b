//! A child that moves from a tool call into the task set while it works, under every order of
//! threads that shuttle tries.
#![cfg(shuttle)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use futures_util::StreamExt;
use mainstem_event::{
    AgentEvent, Cursor, EventKind, EventSink, EventSource, LogOptions, Origin, Outcome, Rollup, SessionLog,
    SystemClock, TaskStatus,
};
use mainstem_message::Role;
use mainstem_task::{CancelTask, NewTask, TaskEnd, TaskSet, Work};
use mainstem_testing::in_all_orders;
use mainstem_tool::unless;
use shuttle::{
    future::{block_on, spawn},
    thread,
};
use tokio::sync::oneshot;

const SCHEDULES: usize = 400;

/// How many deltas the child has.
const DELTAS: usize = 3;

/// A log with a caller that holds producers back at once.
fn log() -> (Arc<SessionLog>, Cursor) {
    let mut options = LogOptions::default();
    options.buffer = 1;
    let log = SessionLog::with("s".parse().unwrap(), Arc::new(SystemClock), options);
    let caller = log.attach();
    (log, caller)
}

fn child(log: &Arc<SessionLog>) -> EventSink {
    let root =
        EventSink::root(log.clone(), Origin::session("s".parse().unwrap(), Some("r".parse().unwrap())));
    let source = EventSource {
        agent_key: "agent:child".parse().unwrap(),
        agent_id: "child".into(),
        agent_name: None,
        label: None,
        title: None,
        session_id: "sub".parse().unwrap(),
        parent_session_id: "s".parse().unwrap(),
        depth: 1,
        path: "s/child".into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: None,
        stream_id: 1,
    };
    root.child(source, "reply".parse().unwrap())
}

/// A child's turn: its events, one by one.
fn work(sink: EventSink) -> Work {
    Box::pin(async move {
        sink.emit(EventKind::agent_start("child", Role::Assistant, Vec::new()));
        for _ in 0..DELTAS {
            sink.emit(EventKind::TextBlockDelta { block_id: "b".parse().unwrap(), delta: "x".into() });
            sink.settle().await;
        }
        let (outcome, usage) = (Outcome::Success, Rollup::default());
        sink.emit(EventKind::agent_end(outcome, usage, 0));
        TaskEnd::Completed("done".to_owned())
    })
}

fn new_task(sink: EventSink) -> NewTask {
    NewTask {
        id: "task".parse().unwrap(),
        parent_agent_id: "main".into(),
        parent_session_id: "s".parse().unwrap(),
        agent_key: "agent:child".parse().unwrap(),
        agent_id: "child".into(),
        label: None,
        task: "dig".to_owned(),
        is_resumable: false,
        sink,
        cancel: CancelTask::new(|_| {}),
    }
}

fn status(event: &AgentEvent) -> Option<TaskStatus> {
    match &event.kind {
        EventKind::TaskUpdated { to, .. } => Some(*to),
        _ => None,
    }
}

/// A parent that waits for its child as a tool call does, until the time is over; whether the child
/// became a task.
async fn wait(tasks: TaskSet, sink: EventSink, over: oneshot::Receiver<()>) -> bool {
    let mut turn = work(sink.clone());
    let has_ended = unless(over, turn.as_mut()).await.is_some();
    if !has_ended {
        tasks.begin(new_task(sink), turn).await.map_err(|(error, _)| error).unwrap();
    }
    !has_ended
}

#[test]
fn a_child_that_is_promoted_goes_on_with_nothing_lost() {
    in_all_orders(SCHEDULES, || {
        let (log, mut caller) = log();
        let tasks = TaskSet::in_memory();
        let (ring, over) = oneshot::channel::<()>();
        let clock = thread::spawn(move || ring.send(()).unwrap_or_default());
        let parent = spawn(wait(tasks.clone(), child(&log), over));
        let mut seen: Vec<AgentEvent> = Vec::new();
        let is_of_child = |event: &AgentEvent| event.source().is_some();
        while seen.iter().filter(|event| is_of_child(event)).count() < DELTAS + 2 {
            seen.push(block_on(caller.next()).unwrap());
        }
        let is_moved = block_on(parent).unwrap();
        clock.join().unwrap();
        if is_moved {
            while seen.iter().filter_map(status).count() < 2 {
                seen.push(block_on(caller.next()).unwrap());
            }
            // The end is readable once it is reported.
            let record = block_on(tasks.get(&"task".parse().unwrap())).unwrap();
            assert_eq!((record.status, record.result.as_deref()), (TaskStatus::Completed, Some("done")));
        }
        let seqs: Vec<_> = seen.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, (1..=seen.len() as u64).collect::<Vec<_>>());
        let began = seen.iter().position(|event| status(event) == Some(TaskStatus::Running));
        let ended = seen.iter().position(|event| status(event) == Some(TaskStatus::Completed));
        assert_eq!((began.is_some(), ended.is_some()), (is_moved, is_moved));
        for (index, event) in seen.iter().enumerate().filter(|(_, event)| is_of_child(event)) {
            let is_of_task = event.source().is_some_and(|source| source.task_id.is_some());
            assert_eq!(is_of_task, began.is_some_and(|began| began < index), "{seen:#?}");
            assert!(ended.is_none_or(|ended| index < ended), "its end is the last");
        }
    });
}

#[test]
fn a_task_ends_without_a_reader() {
    in_all_orders(SCHEDULES, || {
        let (log, caller) = log();
        let tasks = TaskSet::in_memory();
        let (sink, mut ends) = (child(&log), tasks.ends());
        // It is handed over in the middle, while it waits for the caller.
        let mut turn = work(sink.clone());
        let first = block_on(futures_util::future::poll_immediate(turn.as_mut()));
        assert!(first.is_none(), "it waits");
        let begun = spawn({
            let tasks = tasks.clone();
            async move { tasks.begin(new_task(sink), turn).await.is_ok() }
        });
        assert!(block_on(begun).unwrap());
        block_on(ends.wait_for(|ends| *ends == 1)).unwrap();
        assert_eq!(log.last_seq() as usize, DELTAS + 4);
        drop(caller);
    });
}

#[test]
fn a_call_whose_time_is_over_ends_whatever_its_child_does() {
    in_all_orders(SCHEDULES, || {
        let (ring, over) = oneshot::channel::<()>();
        let clock = thread::spawn(move || ring.send(()).unwrap_or_default());
        assert_eq!(block_on(unless(over, std::future::pending::<()>())), None);
        clock.join().unwrap();
    });
}
