//! Flags to the request of a run, here or on a server.

use std::path::{Path, PathBuf};

use anyhow::Context;
use mainstem::{
    api::{Input, NewRun, RunOptions},
    event,
    react::OutputSchema,
};
use serde_json::Value;

use crate::{
    args::{self, Background},
    attachments::Attachments,
    config::{Budget, read::named},
};

/// The largest file with an output schema, in bytes.
const SCHEMA: u64 = 1 << 20;

/// Returns the options of the run; its input follows.
///
/// # Errors
/// The file of the output schema can't be read, or is not a JSON Schema.
pub(super) fn options(args: &args::Run, budget: &Budget) -> anyhow::Result<RunOptions> {
    Ok(RunOptions {
        plan_mode: plan_mode(args),
        background: match args.background {
            Background::Wait => event::Background::Wait,
            Background::Detach => event::Background::Detach,
            Background::Cancel => event::Background::Cancel,
        },
        on_lost: args.on_lost.map(Into::into),
        output_schema: args.output_schema.as_deref().map(schema).transpose()?,
        ..args.settings.run_options(budget)
    })
}

/// Returns the run with this prompt and the attached files, or the one that resumes the session's
/// last turn.
///
/// # Errors
/// If a file can't be attached.
pub(super) fn new_run(args: &args::Run, prompt: &str, options: RunOptions) -> anyhow::Result<NewRun> {
    let input = match args.resume {
        true => None,
        false if args.attach.is_empty() => Some(Input(prompt.into())),
        false => Some(Input(attached(&args.attach)?.into_message(prompt))),
    };
    // Here, the harness has the model.
    let model = args.settings.model.as_ref().filter(|_| args.at.server.is_some());
    let model = model.map(|model| model.value.clone());
    Ok(NewRun { model, input, resume: args.resume, queue: args.queue, options, ..NewRun::default() })
}

fn attached(files: &[PathBuf]) -> anyhow::Result<Attachments> {
    let mut attachments = Attachments::default();
    for path in files {
        attachments.add(path).with_context(|| format!("--attach {}", path.display()))?;
    }
    Ok(attachments)
}

/// Returns the plan mode that the flags set; `None` leaves the session's.
pub(super) fn plan_mode(args: &args::Run) -> Option<bool> {
    (args.plan || args.no_plan).then_some(args.plan)
}

fn schema(path: &Path) -> anyhow::Result<Value> {
    let read = || {
        let schema: Value = serde_json::from_str(&named(path, SCHEMA)?)?;
        OutputSchema::new(schema.clone())?;
        anyhow::Ok(schema)
    };
    read().with_context(|| format!("--output-schema {}", path.display()))
}
