//! Finds agents that can only spawn, and reach no agent with a tool to work with. Pure.

use std::collections::{BTreeMap, BTreeSet};

use mainstem_policy::Effect;
use mainstem_react::Agent;
use serde_json::json;

use crate::{
    catalog::{Catalog, CatalogEntry, error::CatalogError},
    tools,
};

/// Returns the agents that have no tool except spawning and reach only each other.
pub(super) fn stuck(catalog: &Catalog) -> Vec<CatalogError> {
    let mut circle: BTreeMap<&str, BTreeSet<&str>> = catalog
        .iter()
        .filter(|entry| only_spawns(entry))
        .map(|entry| (id(entry), targets(entry, catalog)))
        .collect();
    // Remove agents that reach an agent outside the set, until none is left to remove.
    loop {
        let inside: BTreeSet<_> = circle.keys().copied().collect();
        circle.retain(|_, targets| targets.is_subset(&inside));
        if circle.len() == inside.len() {
            break;
        }
    }
    let problem = |(id, targets): (&str, BTreeSet<&str>)| CatalogError::OnlySpawns {
        id: id.to_owned(),
        reaches: targets.into_iter().map(str::to_owned).collect(),
    };
    circle.into_iter().map(problem).collect()
}

/// Returns `true` if an agent can spawn and has no tool except those for children.
fn only_spawns(entry: &CatalogEntry) -> bool {
    // A remote agent has tools of its own, or not; that is not known here.
    let Some(tools) = entry.agent.local().map(Agent::tools) else { return false };
    let mut names = tools.names();
    spawners(entry).next().is_some()
        && tools.sources().next().is_none()
        && names.all(|name| tools::all().any(|(known, _)| *known == name))
}

/// The agents that an agent may spawn by its own rules.
fn targets<'a>(entry: &CatalogEntry, catalog: &'a Catalog) -> BTreeSet<&'a str> {
    catalog.offered().map(id).filter(|target| may_spawn(entry, target)).collect()
}

fn may_spawn(entry: &CatalogEntry, target: &str) -> bool {
    spawners(entry).any(|tool| {
        let arguments = match tool {
            "agent_fanout" => json!({ "spawns": [{ "agent_id": target }] }),
            _ => json!({ "agent_id": target }),
        };
        entry.rules.decide(tool, &arguments, false).effect != Effect::Deny
    })
}

fn spawners(entry: &CatalogEntry) -> impl Iterator<Item = &'static str> + use<'_> {
    let tools = entry.agent.local().map(Agent::tools);
    let has = move |tool: &&str| tools.is_some_and(|tools| tools.get(tool).is_some());
    ["agent_spawn", "agent_fanout"].into_iter().filter(has)
}

fn id(entry: &CatalogEntry) -> &str {
    &entry.spec.id
}
