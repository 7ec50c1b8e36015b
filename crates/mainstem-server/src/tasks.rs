//! `/tasks`: background tasks.

use std::{sync::Arc, time::Duration};

use axum::{Json, extract::State, http::StatusCode};
use mainstem::{
    message::TaskId,
    task::{TaskError, TaskRecord},
};
use mainstem_api::{Code, Items, TaskQuery, WaitQuery};

use crate::{
    app::App,
    body::{Path, Query},
    caller::Caller,
    problem::Problem,
};

/// How long a cancel or a wait may take.
const MAX_WAIT: Duration = Duration::from_secs(60);

pub(crate) async fn list(
    State(_): State<Arc<App>>,
    caller: Caller,
    Query(params): Query<TaskQuery>,
) -> Result<Json<Items<TaskRecord>>, Problem> {
    let mut records =
        caller.harness.tasks().list(&params.to_filter()).await.map_err(|error| failed(&error))?;
    // The harness without a tenant lists those of tenants, too.
    records.retain(|task| task.id.tenant().is_none());
    Ok(Json(Items { items: records }))
}

pub(crate) async fn get(caller: Caller, Path(id): Path<String>) -> Result<Json<TaskRecord>, Problem> {
    find(&caller, &id).await.map(Json)
}

/// A caller's task.
pub(crate) async fn find(caller: &Caller, id: &str) -> Result<TaskRecord, Problem> {
    caller.harness.tasks().get(&id.parse()?).await.map_err(|error| failed(&error))
}

pub(crate) async fn wait(
    caller: Caller,
    Path(id): Path<String>,
    Query(params): Query<WaitQuery>,
) -> Result<(StatusCode, Json<TaskRecord>), Problem> {
    caller.release_permit();
    let (tasks, id) = (caller.harness.tasks(), id.parse::<TaskId>()?);
    let timeout = Duration::from_secs(params.timeout.unwrap_or(WaitQuery::DEFAULT_SECS)).min(MAX_WAIT);
    let over = tasks.wait(std::slice::from_ref(&id), timeout).await.map_err(|error| failed(&error))?;
    match over.and_then(|mut records| records.pop()) {
        Some(record) => Ok((StatusCode::OK, Json(record))),
        None => Ok((StatusCode::ACCEPTED, Json(tasks.get(&id).await.map_err(|error| failed(&error))?))),
    }
}

pub(crate) async fn cancel(
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<TaskRecord>), Problem> {
    caller.release_permit();
    let record =
        caller.harness.tasks().cancel(&id.parse()?, "the user (over HTTP)", Duration::from_secs(5)).await;
    Ok((StatusCode::ACCEPTED, Json(record.map_err(|error| failed(&error))?)))
}

pub(crate) async fn remove(caller: Caller, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    caller.harness.tasks().remove(&id.parse()?).await.map_err(|error| failed(&error))?;
    Ok(StatusCode::NO_CONTENT)
}

fn failed(error: &TaskError) -> Problem {
    match error {
        TaskError::Unknown { id } => Problem::not_found("task", id.as_str()),
        TaskError::NotOver { .. } => Problem::new(Code::TaskRunning, error.to_string()),
        _ => unreadable(error),
    }
}

/// Records that can't be read or written just now. The cause names files, which are the operator's
/// to know.
pub(crate) fn unreadable(error: &TaskError) -> Problem {
    tracing::error!(%error, "the records of tasks can't be read or written");
    let detail = "the records of tasks can't be read or written; the server's log says why";
    Problem::new(Code::TasksUnreadable, detail)
}
