//! A background task outlives its process also at a protocol whose stream can't be read again: what
//! is open is discarded, and the rest is shown behind it.

pub(crate) mod a2a;
mod langgraph;

use std::{ops::Range, sync::Arc};

use mainstem::{
    event::{EventSource, TaskStatus, fold::fold},
    message::{ContentBlock, Usage},
    prelude::*,
    task::TaskRecord,
};
use mainstem_testing::render;

use crate::{
    killed::killed_after,
    restart::{Whole, all, all_is_done, near},
};

/// Returns the answers of an agent that are complete: texts and calls, a line for each, and the
/// results of its calls.
fn said(events: &[AgentEvent], agent: &str) -> Vec<String> {
    let is_it =
        |source: &Option<Arc<EventSource>>| source.as_ref().is_some_and(|source| *source.agent_id == *agent);
    let all = fold(events).into_iter().filter(|one| is_it(&one.source));
    let messages = all.flat_map(|one| one.messages().to_vec()).filter(|message| message.role != Role::User);
    let line = |message: Arc<Message>| {
        let calls: Vec<_> =
            message.tool_calls().map(|call| format!("{} {}", call.name, call.arguments)).collect();
        let results = message.content.iter().filter_map(|block| match block {
            ContentBlock::ToolResult(result) => Some(format!("{:?} {:?}", result.state, result.content)),
            _ => None,
        });
        format!("{:?} {} {}", message.text(), calls.join(", "), results.collect::<Vec<_>>().join(", "))
    };
    messages.map(line).collect()
}

impl Whole {
    /// Returns after how many events the remote's id is recorded, in an event of this name, and the
    /// far agent has not answered.
    fn while_it_is_known(&self, name: &str) -> Range<usize> {
        let is_it =
            |event: &AgentEvent| matches!(&event.kind, EventKind::Custom { name: it, .. } if it == name);
        self.events.iter().position(is_it).unwrap() + 1..self.while_it_runs().end
    }

    /// Returns after how many events the far agent has begun, and no more.
    fn just_begun(&self) -> usize {
        self.events.iter().position(|event| event.agent_id() == "far").unwrap() + 1
    }
}

/// Kills a process after this many events, and returns what the next one makes of its task.
async fn continued(whole: &Whole, cut: usize) -> (Vec<AgentEvent>, TaskRecord) {
    let (journal, store) = killed_after(&whole.events[..cut], &whole.task).await;
    let next = near(whole.speaks, &whole.url, store, &journal);
    let session = next.open_session("s").await.unwrap();
    all_is_done(&next).await;
    (all(&journal).await, session.tasks().await.unwrap().remove(0))
}

fn of_far(events: &[AgentEvent]) -> impl Iterator<Item = &AgentEvent> {
    events.iter().filter(|event| event.agent_id() == "far")
}

/// Checks that a task has ended as the whole one, behind a part of its record.
#[track_caller]
fn check_ended(cut: usize, events: &[AgentEvent], task: &TaskRecord, whole: &Whole) {
    let text = render(events);
    assert_eq!(
        (task.status, &task.result, task.fence),
        (TaskStatus::Completed, &whole.task.result, 2),
        "cut after {cut}: {task:?}\n{text}"
    );
    let count = |name: &str| of_far(&events[cut..]).filter(|event| event.kind.name() == name).count();
    assert_eq!((count("AGENT_END"), count("STREAM_FALLBACK")), (1, 1), "cut after {cut}\n{text}");
    assert_eq!(said(events, "far"), said(&whole.events, "far"), "cut after {cut}\n{text}");
    assert_eq!(usage(events, "far"), usage(&whole.events, "far"), "cut after {cut}\n{text}");
}

/// Checks that a task has failed, because its id at the remote is unknown.
#[track_caller]
fn check_unknown(events: &[AgentEvent], task: &TaskRecord, why: &str) {
    let error = task.error.as_ref().map_or("", |error| &error.message);
    assert!(task.status == TaskStatus::Failed && error.contains(why), "{task:?}\n{}", render(events));
    assert_eq!(of_far(events).filter(|event| event.kind.name() == "AGENT_END").count(), 1);
}

/// Returns what an agent has used.
fn usage(events: &[AgentEvent], agent: &str) -> Usage {
    let ends = events.iter().rev().filter(|event| event.agent_id() == agent);
    let mut own = ends.filter_map(|event| match &event.kind {
        EventKind::AgentEnd { usage, .. } => Some(usage.own),
        _ => None,
    });
    own.next().unwrap()
}
