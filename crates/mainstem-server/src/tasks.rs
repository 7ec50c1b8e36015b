//! `/tasks`: background tasks.

use std::{sync::Arc, time::Duration};

use axum::{Json, extract::State, http::StatusCode};
use mainstem::{
    event::TaskStatus,
    message::TaskId,
    task::{TaskError, TaskFilter, TaskRecord},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    app::App,
    body::{Path, Query},
    caller::Caller,
    problem::Problem,
    wire::Items,
};

/// How long a cancel or a wait may take.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Which tasks.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// Only those of this session.
    session: Option<String>,
    /// Only those that stand so.
    status: Option<TaskStatus>,
}

pub(crate) async fn list(
    State(_): State<Arc<App>>,
    caller: Caller,
    Query(params): Query<Params>,
) -> Result<Json<Items<TaskRecord>>, Problem> {
    let mut filter = match params.session {
        Some(session) => TaskFilter::of_root(session.as_str().into()),
        None => TaskFilter::all(),
    };
    if let Some(status) = params.status {
        filter = filter.with_status(status);
    }
    let records = caller.harness.tasks().list(&filter).await.map_err(failed)?;
    Ok(Json(Items { items: records }))
}

pub(crate) async fn get(caller: Caller, Path(id): Path<String>) -> Result<Json<TaskRecord>, Problem> {
    find(&caller, &id).await.map(Json)
}

/// A caller's task.
pub(crate) async fn find(caller: &Caller, id: &str) -> Result<TaskRecord, Problem> {
    caller.harness.tasks().get(&TaskId::new(id)).await.map_err(failed)
}

/// How long to wait.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wait {
    /// In seconds: 30 by default, 60 at most.
    timeout: Option<u64>,
}

pub(crate) async fn wait(
    caller: Caller,
    Path(id): Path<String>,
    Query(params): Query<Wait>,
) -> Result<(StatusCode, Json<TaskRecord>), Problem> {
    caller.rest();
    let (tasks, id) = (caller.harness.tasks(), TaskId::new(id.as_str()));
    let patience = Duration::from_secs(params.timeout.unwrap_or(30)).min(MAX_WAIT);
    let over = tasks.wait(std::slice::from_ref(&id), patience).await.map_err(failed)?;
    match over.and_then(|mut records| records.pop()) {
        Some(record) => Ok((StatusCode::OK, Json(record))),
        None => Ok((StatusCode::ACCEPTED, Json(tasks.get(&id).await.map_err(failed)?))),
    }
}

pub(crate) async fn cancel(
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<TaskRecord>), Problem> {
    caller.rest();
    let id = TaskId::new(id.as_str());
    let record = caller.harness.tasks().cancel(&id, "the user (over HTTP)", Duration::from_secs(5)).await;
    Ok((StatusCode::ACCEPTED, Json(record.map_err(failed)?)))
}

/// Why a task can't be read or changed. What fails in a file names it, which is the operator's to know.
pub(crate) fn failed(error: TaskError) -> Problem {
    let refused = |code| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, code, error.to_string());
    match error {
        TaskError::Unknown { .. } => Problem::new(StatusCode::NOT_FOUND, "not_found", error.to_string()),
        TaskError::Illegal(_) | TaskError::Conflict { .. } | TaskError::Fenced { .. } | TaskError::Closed => {
            refused("tasks_unreadable")
        }
        _ => {
            tracing::error!(%error, "tasks can't be read or changed");
            let detail = "background tasks can't be read or changed; the server's log says why";
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "tasks_unreadable", detail)
        }
    }
}
