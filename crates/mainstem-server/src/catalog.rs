//! `/agents`, `/models` and `/tools`: what there is to work with.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State};
use mainstem::message::ToolSpec;
use mainstem_api::{AgentView, Agents, Items, ModelView};

use mainstem::{declarations::leader, subagent::CatalogEntry};

use crate::{app::App, caller::Caller};

pub(crate) async fn agents(State(app): State<Arc<App>>, caller: Caller) -> Json<Agents> {
    let agents = caller.harness.agents();
    let listed = agents.catalog().iter().filter(|entry| entry.spec.is_listed());
    let view = |entry: &CatalogEntry| AgentView {
        id: entry.spec.id.clone(),
        description: entry.spec.description.clone(),
        model: entry.spec.model.clone(),
        spawnable: entry.spec.is_spawnable(),
        runnable: leader(agents.catalog(), &entry.spec.id).is_ok()
            && app.served.agents.contains(&*entry.spec.id),
    };
    Json(Agents { runs: agents.root().id().to_string(), items: listed.map(view).collect() })
}

pub(crate) async fn models(State(app): State<Arc<App>>, caller: Caller) -> Json<Items<ModelView>> {
    let agents = caller.harness.agents();
    let listed = agents.catalog().iter().filter(|entry| entry.spec.is_listed());
    let selectable = &app.served.models;
    let mut asked: BTreeMap<String, Vec<String>> =
        selectable.iter().map(|model| (model.clone(), Vec::new())).collect();
    for agent in std::iter::once(agents.root()).chain(listed.filter_map(|entry| entry.agent.local())) {
        let agents = asked.entry(agent.model().name().to_owned()).or_default();
        // The leading agent may be declared as others are.
        if !agents.iter().any(|known| known[..] == **agent.id()) {
            agents.push(agent.id().to_string());
        }
    }
    let view = |(id, agents): (String, _)| ModelView { selectable: selectable.contains(&id), id, agents };
    Json(Items { items: asked.into_iter().map(view).collect() })
}

pub(crate) async fn tools(caller: Caller) -> Json<Items<ToolSpec>> {
    let agents = caller.harness.agents();
    let tools = agents.root().tools();
    tools.ready().await;
    Json(Items { items: tools.specs().to_vec() })
}
