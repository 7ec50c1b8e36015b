//! The words on the wire.

use serde_json::json;

use super::*;

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

#[test]
fn there_is_an_example_of_each_kind_in_the_order_of_the_table() {
    let mut names: Vec<_> = EventKind::examples().iter().map(|kind| kind.name().to_owned()).collect();
    assert_eq!(names.pop().as_deref(), Some("FROM_THE_FUTURE"));
    assert_eq!(names, EventKind::NAMES);
}
