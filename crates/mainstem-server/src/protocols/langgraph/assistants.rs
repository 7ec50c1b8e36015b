//! `/assistants`: the agents that may lead a run.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    app::App,
    body::{Body, Path},
    caller::Caller,
    catalog,
    problem::Problem,
};

/// Assistants have no time of their own.
const EPOCH: &str = "1970-01-01T00:00:00Z";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Search {
    graph_id: Option<String>,
    name: Option<String>,
    limit: Option<usize>,
    offset: Option<usize>,
}

pub(super) async fn search(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(search, _): Body<Search>,
) -> Json<Vec<Value>> {
    let all = all(app, caller)
        .await
        .into_iter()
        .filter(|(id, _)| [&search.graph_id, &search.name].into_iter().flatten().all(|wanted| wanted == id));
    let page = all.skip(search.offset.unwrap_or(0)).take(search.limit.unwrap_or(10));
    Json(page.map(|(_, assistant)| assistant).collect())
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let found = all(app, caller).await.into_iter().find(|(known, _)| *known == id);
    found.map(|(_, assistant)| Json(assistant)).ok_or_else(|| Problem::not_found("assistant", &id))
}

async fn all(app: Arc<App>, caller: Caller) -> Vec<(String, Value)> {
    let Json(agents) = catalog::agents(State(app), caller).await;
    let leader = agents.runs;
    let others = agents.items.into_iter().filter(|agent| agent.runnable && agent.id != leader);
    let others: Vec<_> = others.map(|agent| (agent.id.to_string(), agent.description)).collect();
    let all = std::iter::once((leader, String::new())).chain(others);
    all.map(|(id, description)| {
        let assistant = assistant(&id, &description);
        (id, assistant)
    })
    .collect()
}

fn assistant(id: &str, description: &str) -> Value {
    json!({
        "assistant_id": id,
        "graph_id": id,
        "name": id,
        "description": description,
        "config": {},
        "context": {},
        "metadata": { "created_by": "system" },
        "version": 1,
        "created_at": EPOCH,
        "updated_at": EPOCH,
    })
}
