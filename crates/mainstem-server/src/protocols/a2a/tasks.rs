//! Tasks: their state, lists of them, cancels, and streams of their updates.

use std::time::Duration;

use futures_util::StreamExt;
use mainstem::{
    event::{CancelReason, Cursor},
    journal::{Listing, Part},
    message::RunId,
    session::{FoundRun, SessionCopy},
};
use mainstem_a2a::{
    TaskFold,
    extension::Extension,
    sdk::{A2AError, GetTaskRequest, ListTasksRequest, ListTasksResponse, Task},
};
use tokio::time::timeout;

use super::{Call, messages, refusal::Refusal, rpc::Answer};
use crate::{
    app::{App, shutting_down, unrecorded},
    readers::ReaderPermit,
    relay::Elsewhere,
};

/// How long the answer to a cancel waits for the end of the task.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

/// How many sessions a list looks into, the latest first.
const MAX_SESSIONS: usize = 100;

/// The size of a page, by default and at most.
const PAGE: i32 = 50;
const MAX_PAGE: i32 = 100;

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

/// `CancelTask`.
pub(super) async fn cancel(call: &Call, id: &str) -> Result<Answer, Refusal> {
    let run = call.app.run(&call.caller, id).await?;
    let (mut fold, mut cursor) = fold(&run, None).await;
    let handle = run.handle().filter(|_| !fold.is_over());
    let handle = handle.ok_or_else(|| A2AError::task_not_cancelable(id))?;
    handle.cancel_because(CancelReason::user("over A2A"));
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

/// `ListTasks`: the latest session first, and in it the latest task.
pub(super) async fn list(call: &Call, request: ListTasksRequest) -> Result<Answer, Refusal> {
    let size = request.page_size.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&size) {
        return Err(Refusal::invalid(format!("`pageSize` must be from 1 to {MAX_PAGE}")));
    }
    let history = history(request.history_length)?;
    let mut tasks = Vec::new();
    let with_artifacts = request.include_artifacts == Some(true);
    for context in contexts(call, request.context_id.clone().filter(|id| !id.is_empty())).await? {
        for fold in folds_of(call, &context).await? {
            if matches(&request, &fold) {
                let task = fold.task(history);
                tasks.push(Task { artifacts: task.artifacts.filter(|_| with_artifacts), ..task });
            }
        }
    }
    let total = tasks.len();
    let token = request.page_token.as_deref().filter(|token| !token.is_empty());
    let start = match token {
        None => 0,
        Some(token) => {
            let last = tasks.iter().position(|task| task.id == token);
            last.ok_or_else(|| Refusal::invalid(format!("{token:?} is not the token of a page")))? + 1
        }
    };
    let page: Vec<Task> = tasks.into_iter().skip(start).take(usize::try_from(size).unwrap_or(1)).collect();
    let has_more = start + page.len() < total;
    let next_page_token = page.last().filter(|_| has_more).map(|task| task.id.clone()).unwrap_or_default();
    let total_size = i32::try_from(total).unwrap_or(i32::MAX);
    let page_size = i32::try_from(page.len()).unwrap_or(size);
    Ok(Answer::json(ListTasksResponse { tasks: page, next_page_token, page_size, total_size }))
}

/// Returns the tasks of a session, the latest first; none if it is unknown, or deleted meanwhile.
async fn folds_of(call: &Call, context: &str) -> Result<Vec<TaskFold>, Refusal> {
    match call.app.session(&call.caller, context).await {
        Ok(session) => {
            let mut folds = Vec::new();
            for run in session.find_runs().iter().rev() {
                folds.push(fold(run, None).await.0);
            }
            Ok(folds)
        }
        Err(problem) if problem.is_not_found() => Ok(Vec::new()),
        Err(problem) => {
            let Some(Elsewhere(id)) = Elsewhere::of(&problem) else { return Err(problem.into()) };
            let copy = call.caller.harness.sessions().copy(&id).await;
            let copy = copy.map_err(|error| call.app.unreadable(&error))?;
            Ok(match copy {
                Some(copy) => folds_elsewhere(&copy).await,
                None => Vec::new(),
            })
        }
    }
}

/// Returns the tasks of a session that another node has open, as far as they are recorded.
async fn folds_elsewhere(copy: &SessionCopy) -> Vec<TaskFold> {
    let log = copy.log();
    let (mut cursor, last) = (log.committed_from(1), log.last_seq());
    let mut folds = Vec::<(RunId, TaskFold)>::new();
    while cursor.next_seq() <= last {
        let Some(event) = cursor.next().await else { break };
        if event.seq.is_multiple_of(1024) {
            tokio::task::yield_now().await;
        }
        let Some(run) = event.run_id() else { continue };
        let known = folds.iter().rposition(|(known, _)| known == run);
        let place = known.unwrap_or_else(|| {
            folds.push((run.clone(), TaskFold::new(run.as_str(), log.session_id().as_str())));
            folds.len() - 1
        });
        folds[place].1.apply(&event);
    }
    folds.into_iter().rev().map(|(_, fold)| fold).collect()
}

fn matches(request: &ListTasksRequest, fold: &TaskFold) -> bool {
    let status = fold.status();
    let is_of_state = request.status.as_ref().is_none_or(|state| status.state == *state);
    is_of_state && request.status_timestamp_after.is_none_or(|after| status.timestamp >= Some(after))
}

/// Returns the ids of the sessions whose tasks are listed.
async fn contexts(call: &Call, context: Option<String>) -> Result<Vec<String>, Refusal> {
    if let Some(context) = context {
        return Ok(vec![context]);
    }
    let listing = Listing::new(Part::Of(None), MAX_SESSIONS);
    let page = call.caller.harness.sessions().list(&listing).await;
    let page = page.map_err(|error| call.app.unreadable(&error))?;
    Ok(page.items.iter().map(|view| view.id.as_str().to_owned()).collect())
}
