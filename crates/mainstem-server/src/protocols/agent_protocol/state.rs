//! The state of a run as that of a task.

use std::collections::BTreeMap;

use mainstem::{
    encode::agent_protocol::{PendingConfirm, Snapshot, Status, pending as pending_confirm},
    message::{ConfirmId, ToolCall},
    session::FoundRun,
};
use mainstem_api::RunState;

use crate::{
    problem::Problem,
    runs::{describe, is_queued},
};

/// Returns the state of a task, without its id.
///
/// # Errors
/// It has ended, and that can't be recorded.
pub(super) async fn of(found: &FoundRun) -> Result<Snapshot, Problem> {
    let view = describe(found).await?;
    let status = match (view.status, view.status.outcome()) {
        (_, Some(outcome)) => Status::of(outcome),
        (RunState::Queued, None) => Status::Pending,
        (RunState::Running, None) if found.handle().is_some() => Status::Running,
        // The process that ran it has ended.
        _ => Status::Error,
    };
    if status == Status::Running {
        let calls: Vec<PendingConfirm> = pending(found).values().flatten().map(pending_confirm).collect();
        let is_waiting = !calls.is_empty();
        let status = if is_waiting { Status::AwaitingConfirm } else { status };
        return Ok(Snapshot {
            status: Some(status),
            pending_confirms: is_waiting.then_some(calls),
            ..Snapshot::default()
        });
    }
    let error = view.error.map(|error| error.message).filter(|_| status != Status::Success);
    let unknown = || match view.status.outcome() {
        Some(outcome) => status.default_error(outcome),
        None => (status == Status::Error).then(|| "the run ended with its process".to_owned()),
    };
    Ok(Snapshot {
        status: Some(status),
        error: error.or_else(unknown),
        result: view.reply.filter(|_| status == Status::Success),
        ..Snapshot::default()
    })
}

/// Returns the requests for approval that wait while the task is running. A task that waits for its
/// turn has none: those of its session are another task's.
pub(super) fn pending(found: &FoundRun) -> BTreeMap<ConfirmId, Vec<ToolCall>> {
    let run = found.handle().filter(|_| !is_queued(found));
    run.map(|run| run.session().fleet().confirmations).unwrap_or_default()
}

/// Returns the state of a task that does not exist.
pub(super) fn unknown() -> Snapshot {
    failed("task not found".to_owned())
}

pub(super) fn failed(error: String) -> Snapshot {
    Snapshot { status: Some(Status::Error), error: Some(error), ..Snapshot::default() }
}
