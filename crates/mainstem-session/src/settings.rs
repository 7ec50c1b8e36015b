//! What a caller has set for a run, as it is recorded, and as a later run takes it over.

use std::sync::Arc;

use mainstem_event::{RunBudget, RunSettings};
use mainstem_policy::{Budget, Cost, Rules, Spend};
use mainstem_subagent::SpawnOptions;

use crate::{RunOptions, RunRecord};

/// Returns the recorded part of a run's options.
pub(crate) fn recorded(options: &RunOptions) -> Arc<RunSettings> {
    let SpawnOptions { force_sync, background, is_attended, max_depth, max_children, ref rules, .. } =
        options.spawn;
    let mut settings = RunSettings::default();
    (settings.user, settings.attributes) = (options.user.clone(), options.attributes.clone());
    settings.agent.clone_from(&options.agent);
    settings.model.clone_from(&options.model);
    (settings.compacts, settings.resumes) = (options.compacts, options.resumes.clone());
    settings.budget = budget(options.budget);
    (settings.force_sync, settings.background, settings.unattended) = (force_sync, background, !is_attended);
    settings.on_lost = options.on_lost;
    (settings.max_depth, settings.max_children) = (max_depth, max_children);
    if rules.layers().next().is_some() {
        // Patterns and texts always have a form in JSON.
        settings.permissions = serde_json::to_value(rules).unwrap_or_default();
    }
    Arc::new(settings)
}

fn budget(most: Budget) -> RunBudget {
    let mut budget = RunBudget::default();
    (budget.tokens, budget.cost_micros) = (most.tokens, most.cost.map(Cost::micros));
    (budget.spawns, budget.time_seconds) = (most.spawns, most.time_seconds);
    budget
}

/// Returns the options of a run that resumes `run`: options that are not set are those of `run`,
/// the rules of both hold, and the budget is what `run` has left.
pub(crate) fn resumed(mut options: RunOptions, run: &RunRecord) -> RunOptions {
    let was = &run.settings;
    options.resumes = Some(run.id.clone());
    if options.agent.is_none() || options.agent == was.agent {
        // Another agent has a model of its own.
        options.model = options.model.or_else(|| was.model.clone());
    }
    options.agent = options.agent.or_else(|| was.agent.clone());
    options.on_lost = options.on_lost.or(was.on_lost);
    options.user = options.user.or_else(|| was.user.clone());
    for (name, value) in &was.attributes {
        options.attributes.entry(name.clone()).or_insert_with(|| value.clone());
    }
    let rules = SpawnOptions::from(&**was).rules.narrowed_by(&options.spawn.rules);
    options.spawn.rules = Rules::new();
    if options.spawn == SpawnOptions::default() {
        options.spawn = SpawnOptions::from(&**was);
    }
    options.spawn.rules = rules;
    options.budget = options.budget.tighter(left(&was.budget, run.spent, run.ran.as_secs()));
    options
}

fn left(budget: &RunBudget, spent: Spend, seconds: u64) -> Budget {
    let mut rest = Budget::default();
    rest.tokens = budget.tokens.map(|most| most.saturating_sub(spent.tokens));
    rest.cost = budget.cost_micros.map(|most| Cost::from_micros(most.saturating_sub(spent.cost.micros())));
    rest.spawns = budget.spawns.map(|most| most.saturating_sub(spent.spawns));
    rest.time_seconds = budget.time_seconds.map(|most| most.saturating_sub(seconds));
    rest
}

#[cfg(test)]
mod tests;
