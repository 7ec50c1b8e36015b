//! `/agents` and `/tools`: what there is to work with.

use axum::Json;
use serde_json::{Value, json};

use crate::caller::Caller;

pub(crate) async fn agents(caller: Caller) -> Json<Value> {
    let crew = caller.harness.crew();
    let listed = crew.catalog.iter().map(|entry| &entry.spec).filter(|spec| spec.is_listed());
    let items: Vec<_> = listed
        .map(|spec| json!({ "id": spec.id, "description": spec.description, "model": spec.model, "spawnable": spec.is_spawnable() }))
        .collect();
    Json(json!({ "runs": crew.root.id(), "items": items }))
}

pub(crate) async fn tools(caller: Caller) -> Json<Value> {
    let crew = caller.harness.crew();
    let tools = crew.root.tools();
    tools.ready().await;
    Json(json!({ "items": &*tools.specs() }))
}
