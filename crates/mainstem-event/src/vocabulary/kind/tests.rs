//! The words on the wire.

use serde_json::json;

use super::*;
use crate::{AgentEvent, Timestamp, fixture};

#[test]
fn every_word_is_written_as_it_is_said() {
    use Outcome::*;
    let outcomes = [Success, Error, Cancelled, Timeout, MaxIterations, Suspended];
    outcomes.iter().for_each(|one| assert_eq!(json!(one), one.as_str()));
    let statuses = [
        TaskStatus::Pending,
        TaskStatus::Running,
        TaskStatus::WaitingConfirm,
        TaskStatus::Completed,
        TaskStatus::Failed,
        TaskStatus::Cancelled,
    ];
    statuses.iter().for_each(|one| assert_eq!(json!(one), one.as_str()));
    let modes = [SendMode::Queue, SendMode::Steer, SendMode::Interrupt];
    modes.iter().for_each(|one| assert_eq!(json!(one), one.as_str()));
}

/// A log holds thousands of events, and nearly all of them are deltas.
#[test]
fn a_delta_is_not_larger_for_the_sake_of_seldom_kinds() {
    assert!(size_of::<EventKind>() <= 136, "{}", size_of::<EventKind>());
}

#[test]
fn there_is_an_example_of_each_kind_in_the_order_of_the_table() {
    let mut names: Vec<_> = EventKind::examples().iter().map(|kind| kind.name().to_owned()).collect();
    assert_eq!(names.pop().as_deref(), Some("FROM_THE_FUTURE"));
    assert_eq!(names, EventKind::NAMES);
}

#[test]
fn pieces_of_content_are_not_of_the_lifecycle() {
    let examples = EventKind::examples();
    let content = examples.iter().filter(|kind| !kind.is_lifecycle()).map(EventKind::name);
    let expected = [
        "TEXT_BLOCK_START",
        "TEXT_BLOCK_DELTA",
        "TEXT_BLOCK_END",
        "THINKING_BLOCK_START",
        "THINKING_BLOCK_DELTA",
        "THINKING_BLOCK_END",
        "DATA_BLOCK_START",
        "DATA_BLOCK_DELTA",
        "DATA_BLOCK_END",
        "TOOL_CALL_DELTA",
        "TOOL_RESULT_TEXT_DELTA",
        "TOOL_RESULT_DATA_DELTA",
    ];
    assert_eq!(content.collect::<Vec<_>>(), expected);
}

#[test]
fn an_optional_field_is_set_on_the_kinds_that_have_it() {
    let failure = || Failure::new("late", "it took too long");
    let error = json!({ "code": "late", "message": "it took too long" });
    let written = |kind: EventKind| {
        serde_json::to_value(AgentEvent::new(1, Timestamp::default(), fixture::origin("").into(), kind))
            .unwrap()
    };
    let end = EventKind::agent_end(Outcome::Error, Rollup::default(), 5);
    assert_eq!(written(end.clone())["error"], Value::Null);
    assert_eq!(written(end.with_error(failure()))["error"], error);
    let task = EventKind::task_updated("t".parse().unwrap(), TaskStatus::Running, TaskStatus::Failed);
    assert_eq!(written(task.with_error(failure()))["error"], error);
    let start = EventKind::model_call_start("m", 1);
    assert_eq!(start.clone().with_error(failure()), start, "it has no error");
    let input = vec![Arc::new(Message::user("hi"))];
    let start = EventKind::agent_start("main", Role::Assistant, input)
        .with_spec(Arc::new(json!({ "id": "main" })))
        .with_spec_version(Arc::from("v1"))
        .with_parent_tool_call_id(ToolCallId::from("call-1"));
    let written = written(start);
    assert_eq!(written["spec"]["id"], "main");
    assert_eq!([&written["specVersion"], &written["parentToolCallId"]], ["v1", "call-1"]);
}
