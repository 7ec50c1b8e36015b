//! `/agents`, `/models` and `/tools`: what there is to work with.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State};
use mainstem::message::ToolSpec;
use mainstem_api::{AgentView, Agents, Items, ModelView};

use crate::{app::App, caller::Caller};

pub(crate) async fn agents(State(app): State<Arc<App>>, caller: Caller) -> Json<Agents> {
    let agents = caller.harness.agents();
    let listed = agents.catalog().iter().map(|entry| &entry.spec).filter(|spec| spec.is_listed());
    let view = |spec: &Arc<mainstem::prelude::AgentSpec>| AgentView {
        id: spec.id.clone(),
        description: spec.description.clone(),
        model: spec.model.clone(),
        spawnable: spec.is_spawnable(),
        runnable: spec.is_runnable() && app.agents.contains(&*spec.id),
    };
    Json(Agents { runs: agents.root().id().to_string(), items: listed.map(view).collect() })
}

pub(crate) async fn models(caller: Caller) -> Json<Items<ModelView>> {
    let agents = caller.harness.agents();
    let listed = agents.catalog().iter().filter(|entry| entry.spec.is_listed());
    let mut asked = BTreeMap::<String, Vec<String>>::new();
    for agent in std::iter::once(agents.root()).chain(listed.filter_map(|entry| entry.agent.local())) {
        asked.entry(agent.model().name().to_owned()).or_default().push(agent.id().to_string());
    }
    Json(Items { items: asked.into_iter().map(|(id, agents)| ModelView { id, agents }).collect() })
}

pub(crate) async fn tools(caller: Caller) -> Json<Items<ToolSpec>> {
    let agents = caller.harness.agents();
    let tools = agents.root().tools();
    tools.ready().await;
    Json(Items { items: tools.specs().to_vec() })
}
