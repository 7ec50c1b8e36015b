//! `mainstem run`: sets a run up, drives it to its end, and says how it ended.

mod drive;
mod end;
mod filter;
mod ledger;
mod setup;
mod there;

use std::{fs::File, io, path::Path, time::Duration};

use anyhow::{Context, bail};
use mainstem::{
    policy::PlanMode,
    prelude::{Background, OutputSchema, RunOptions},
};

use self::{
    drive::{Drive, Sinks, Warnings},
    ledger::Ledger,
    setup::Setup,
};
use crate::{
    args::{self, Format, Log, Source},
    config::{Settings, read::named},
    exit::{Exit, Fault, OrExit},
    output::{Output, Stdout},
    progress,
    remote::Remote,
    signals, store, telemetry,
    terminal::Terminal,
    trust::{self, Reads},
    turn::{Turn, new_session},
};

/// Runs what the command line says.
pub(crate) fn run(args: &args::Run, config: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    match Remote::at(args.server.as_deref()).or_exit(Exit::Usage)? {
        Some(remote) => on_server(args, &remote, terminal),
        None => here(args, config, terminal),
    }
}

fn here(args: &args::Run, config: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    let _telemetry = telemetry::start(Log::Off, terminal).or_exit(Exit::Config)?;
    let flags = Settings::from_flags(args);
    let settings =
        trust::settle(flags, config, Reads::agents(args.foreign), terminal).or_exit(Exit::Config)?;
    let options = options(args, &settings, terminal).or_exit(Exit::Usage)?;
    let Setup { harness, prompt, notes } = setup::setup(args, &settings, terminal)?;
    let warnings = Warnings::new(Some(harness.clone()), &notes);
    let mut sinks = sinks(args, terminal, &prompt, warnings)?;
    notes.iter().for_each(|note| sinks.progress.note(note));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let run = match &args.session {
        None => harness.stream_events_with(prompt, options),
        Some(id) => {
            let about = || format!("--session {id}");
            let session =
                runtime.block_on(harness.open_session(&**id)).with_context(about).or_exit(Exit::Config)?;
            if session.plan_mode() == PlanMode::On && plan_mode(args).is_none() {
                sinks.progress.note("the session is in plan mode; --no-plan leaves it");
            }
            if args.resume {
                session.resume(options).with_context(about).context("--resume").or_exit(Exit::Usage)?
            } else {
                session.run(prompt, options).with_context(about).or_exit(Exit::Failed)?
            }
        }
    };
    let exit = runtime.block_on(async {
        let mut drive = Drive::new(args, sinks, Turn::here(run));
        drive.until_end().await;
        let is_patient = drive.is_patient();
        let wants_table = args.diagnostics && args.output != Format::Json;
        let diagnostics = drive.turn.diagnostics().filter(|_| wants_table);
        let exit = drive.finish(args).await;
        if let Some(diagnostics) = diagnostics {
            progress::say(&diagnostics.to_string(), terminal);
        }
        if is_patient {
            harness.shutdown(Duration::ZERO).await;
        }
        store::close(&harness, terminal).await;
        exit
    });
    // What still blocks, such as a host's name being looked up, is not waited for.
    runtime.shutdown_background();
    exit
}

fn on_server(args: &args::Run, remote: &Remote, terminal: Terminal) -> Result<Exit, Fault> {
    let session = args.session.clone().unwrap_or_else(new_session);
    let body = there::body(args, terminal).or_exit(Exit::Usage)?;
    let prompt = body["input"].as_str().unwrap_or_default();
    let sinks = sinks(args, terminal, prompt, Warnings::new(None, &[]))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let exit = runtime.block_on(async {
        let begun = Turn::there(remote, &session, &body).await.or_exit(Exit::Failed)?;
        let mut drive = Drive::new(args, sinks, begun);
        drive.until_end().await;
        drive.finish(args).await
    });
    runtime.shutdown_background();
    exit
}

/// Where everything goes that comes of a run of this prompt.
fn sinks(args: &args::Run, terminal: Terminal, prompt: &str, warnings: Warnings) -> Result<Sinks, Fault> {
    let record = args.record.as_deref().map(create).transpose().or_exit(Exit::Usage)?;
    let title = if args.resume { args.session.as_deref().unwrap_or_default() } else { prompt };
    Ok(Sinks {
        ledger: Ledger::new(record),
        output: Output::new(args.output),
        stdout: Stdout::start(io::stdout()).or_exit(Exit::Failed)?,
        progress: progress::on_stderr(terminal, args.progress, args.output, title),
        signals: signals::watch().or_exit(Exit::Failed)?,
        warnings,
    })
}

/// What the flags say about plan mode; `None` leaves the session as it is.
fn plan_mode(args: &args::Run) -> Option<bool> {
    (args.plan || args.no_plan).then_some(args.plan)
}

fn options(args: &args::Run, settings: &Settings, terminal: Terminal) -> anyhow::Result<RunOptions> {
    let background = match args.background {
        args::Background::Wait => Background::Wait,
        args::Background::Cancel => Background::Cancel,
        args::Background::Detach => {
            bail!(
                "--background detach: this command ends with its run, so nobody would do the tasks; use wait or cancel, or --server"
            )
        }
    };
    let output = args.output_schema.as_deref().map(output_schema).transpose()?;
    let people = terminal.has_person() && args.prompt.as_deref() != Some("-");
    let options = RunOptions::new()
        .with_background(background)
        .with_people(people)
        .with_budget(settings.budget)
        .with_diagnostics(args.diagnostics);
    let options = match plan_mode(args) {
        Some(plans) => options.with_plan_mode(plans),
        None => options,
    };
    Ok(match output {
        Some(schema) => options.with_output(schema),
        None => options,
    })
}

/// Largest file with an output schema, in bytes.
const SCHEMA: u64 = 1 << 20;

fn output_schema(path: &Path) -> anyhow::Result<OutputSchema> {
    let read = || anyhow::Ok(OutputSchema::new(serde_json::from_str(&named(path, SCHEMA)?)?)?);
    read().with_context(|| format!("--output-schema {}", path.display()))
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("--record {}", path.display()))
}
