//! Tasks: their state, cancels, and streams of their updates.

use std::time::Duration;

use futures_util::StreamExt;
use mainstem::{
    event::{CancelReason, Cursor},
    session::FoundRun,
};
use mainstem_a2a::{
    TaskFold,
    extension::Extension,
    sdk::{A2AError, GetTaskRequest},
};
use tokio::time::timeout;

use super::{Call, messages, refusal::Refusal, rpc::Answer};
use crate::{
    app::{App, shutting_down, unrecorded},
    readers::ReaderPermit,
};

/// How long the answer to a cancel waits for the end of the task.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

/// Returns the state of a task, and a cursor behind the events that it is of.
pub(super) async fn fold(run: &FoundRun, extension: Option<Extension>) -> (TaskFold, Cursor) {
    let (mut fold, cursor) = fold_to(run, extension, u64::MAX).await;
    if run.handle().is_none() && !fold.is_over() {
        fold.lose("the server ended before the task did; send a message to its context to go on");
    }
    (fold, cursor)
}

/// Returns the state of a task at an event.
async fn fold_to(run: &FoundRun, extension: Option<Extension>, last: u64) -> (TaskFold, Cursor) {
    let session = run.session();
    let mut fold = TaskFold::new(run.id().as_str(), session.id().as_str()).with_extension(extension);
    let mut cursor = session.log().committed_from(run.first());
    let mut count = 0_usize;
    while cursor.next_seq() <= last {
        let Some(event) = cursor.at_hand().await else { break };
        count += 1;
        if count.is_multiple_of(1024) {
            tokio::task::yield_now().await;
        }
        fold.apply(&event);
        if fold.is_over() {
            break;
        }
    }
    (fold, cursor)
}

/// Waits until a task is over or waits for its client.
pub(super) async fn settle(app: &App, fold: &mut TaskFold, mut cursor: Cursor) -> Result<(), Refusal> {
    while !fold.is_over() && !fold.is_interrupted() {
        tokio::select! {
            biased;
            () = app.stop.cancelled() => {
                return Err(shutting_down().into());
            }
            event = cursor.next() => match event {
                Some(event) => fold.apply(&event),
                None => return Err(unrecorded().into()),
            },
        }
    }
    Ok(())
}

/// Returns how many messages of the history a client asks for.
pub(super) fn history(length: Option<i32>) -> Result<Option<usize>, Refusal> {
    let checked = length.map(usize::try_from).transpose();
    checked.map_err(|_| Refusal::invalid("`historyLength` must be at least 0"))
}

/// `GetTask`.
pub(super) async fn get(call: &Call, request: GetTaskRequest) -> Result<Answer, Refusal> {
    get_by_id(call, &request.id, request.history_length).await
}

pub(super) async fn get_by_id(call: &Call, id: &str, length: Option<i32>) -> Result<Answer, Refusal> {
    let history = history(length)?;
    let run = call.app.run(&call.caller, id).await?;
    Ok(Answer::json(fold(&run, None).await.0.task(history)))
}

/// `CancelTask`: with all that the task has started in the background.
pub(super) async fn cancel(call: &Call, id: &str) -> Result<Answer, Refusal> {
    let run = call.app.run(&call.caller, id).await?;
    let (mut fold, mut cursor) = fold(&run, None).await;
    let handle = run.handle().filter(|_| !fold.is_over());
    let handle = handle.ok_or_else(|| A2AError::task_not_cancelable(id))?;
    handle.cancel_with_tasks(CancelReason::user("over A2A"));
    call.caller.release_permit();
    let ended = async {
        while !fold.is_over() {
            let Some(event) = cursor.next().await else { break };
            fold.apply(&event);
        }
    };
    // The task may take longer to stop; then it is shown as it is.
    let _ = timeout(CANCEL_WAIT, ended).await;
    Ok(Answer::json(fold.task(None)))
}

/// `SubscribeToTask`.
pub(super) async fn subscribe(call: &Call, id: &str) -> Result<Answer, Refusal> {
    let run = call.app.run(&call.caller, id).await?;
    let permit = ReaderPermit::acquire(&call.app, &call.caller, run.session())?;
    let (fold, cursor) = fold(&run, call.extension()).await;
    call.caller.release_permit();
    if let Some(last) = call.last_event() {
        let (then, cursor) = fold_to(&run, call.extension(), last).await;
        let encoder = then.into_resumed_stream(fold.task(None), call.framing.clone());
        return Ok(messages::follow(call, &run, encoder, cursor, permit));
    }
    if fold.is_over() {
        return Err(Refusal::unsupported(format!("task {id:?} is over; get it instead")));
    }
    Ok(messages::follow(call, &run, fold.into_stream(call.framing.clone()), cursor, permit))
}
