//! From flags to the run that a session is asked for, here or on a server.

use std::{num::NonZeroUsize, path::Path};

use anyhow::Context;
use mainstem::{
    api::{Input, NewRun, RunOptions},
    event,
    policy::Budget,
    react::OutputSchema,
};
use serde_json::Value;

use crate::{
    args::{self, Background},
    config::read::named,
    terminal::Terminal,
};

/// Largest file with an output schema, in bytes.
const SCHEMA: u64 = 1 << 20;

/// The run that the flags describe; its input follows.
///
/// # Errors
/// The file of the output schema can't be read, or is not a JSON Schema.
pub(super) fn options(args: &args::Run, budget: Budget, terminal: Terminal) -> anyhow::Result<RunOptions> {
    Ok(RunOptions {
        budget,
        plan_mode: plan_mode(args),
        people: Some(terminal.has_person() && args.prompt.as_deref() != Some("-")),
        max_depth: args.fleet.max_depth,
        max_children: args.fleet.max_children.map(NonZeroUsize::get),
        background: match args.background {
            Background::Wait => event::Background::Wait,
            Background::Detach => event::Background::Detach,
            Background::Cancel => event::Background::Cancel,
        },
        output_schema: args.output_schema.as_deref().map(schema).transpose()?,
        ..RunOptions::default()
    })
}

/// The run with this prompt, or the one that resumes the session's last turn.
pub(super) fn new_run(args: &args::Run, prompt: &str, options: RunOptions) -> NewRun {
    let input = (!args.resume).then(|| Input(prompt.into()));
    NewRun { input, resume: args.resume, options, ..NewRun::default() }
}

/// What the flags say about plan mode; `None` leaves the session as it is.
pub(super) fn plan_mode(args: &args::Run) -> Option<bool> {
    (args.plan || args.no_plan).then_some(args.plan)
}

/// The limits of the flags, for a server.
pub(super) fn budget(args: &args::Run) -> Budget {
    let mut budget = Budget::default();
    (budget.tokens, budget.cost) = (args.budget_tokens, args.budget_cost);
    budget
}

fn schema(path: &Path) -> anyhow::Result<Value> {
    let read = || {
        let schema: Value = serde_json::from_str(&named(path, SCHEMA)?)?;
        OutputSchema::new(schema.clone())?;
        anyhow::Ok(schema)
    };
    read().with_context(|| format!("--output-schema {}", path.display()))
}
