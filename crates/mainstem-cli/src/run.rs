//! `mainstem run`: sets a run up, drives it to its end, and reports how it ended.

mod cut;
mod drive;
mod end;
mod filter;
mod prompt;
mod recorder;
mod request;
mod setup;

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, anyhow, ensure};
use mainstem::client::Server;
use mainstem::{
    Harness,
    api::{AnySession, Code, Error, NewRun, RunState},
    message::SessionId,
    policy::PlanMode,
};
use tokio::runtime::Runtime;

pub(crate) use self::recorder::Texts;
use self::{
    cut::cut_reply,
    drive::{Drive, Sinks, Warnings},
    recorder::Recorder,
    setup::Setup,
};
use crate::{
    approval::{Allowed, Approval, Approvals},
    args::{self, Background, Format, Log, Source},
    config::Config,
    exit::{Exit, Fault, OrExit, shut_down},
    go_on::Given,
    harness::workspace,
    host::{self, new_session},
    output::{Output, Stdout},
    progress,
    shown_notes::Findings,
    signals, store, telemetry,
    terminal::Terminal,
    trust::{self, Reads},
    trusted::canonical,
};

/// A run to begin, wherever its session is.
struct Plan {
    session: Arc<dyn AnySession>,
    run: NewRun,
    prompt: String,
    /// The harness of this process, if the session is here.
    harness: Option<Harness>,
    /// Notes to show before the run.
    notes: Vec<String>,
    /// The findings among them.
    found: Option<Findings>,
    allowed: Allowed,
    /// The session that can be resumed, if it is recorded.
    recorded: Option<SessionId>,
}

/// Runs the command.
pub(crate) fn run(args: &args::Run, source: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    let _telemetry = match args.at.server {
        None => Some(telemetry::start(Log::Off, terminal).or_exit(Exit::Config)?),
        Some(_) => None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let args = &continued(args, &runtime)?;
    let keyboard = prompt::keyboard(terminal);
    let person = Person { can_answer: keyboard.is_some() || terminal.has_person(), terminal };
    let plan = match host::server(args.at.server.as_deref()).or_exit(Exit::Usage)? {
        Some(server) => on_server(args, &server, person)?,
        None => here(args, source, person, &runtime)?,
    };
    let terminal = keyboard.map_or(terminal, |keyboard| keyboard.replace_stdin(terminal));
    let exit = drive(args, plan, terminal, &runtime);
    shut_down(runtime);
    exit
}

/// Names the session that `--continue` means.
fn continued(args: &args::Run, runtime: &Runtime) -> Result<args::Run, Fault> {
    let mut args = args.clone();
    if args.is_continued {
        let latest = host::latest(args.at.server.as_deref(), args.journal.as_ref());
        args.session = Some(runtime.block_on(latest)?);
    }
    Ok(args)
}

/// Who may answer questions, and where.
#[derive(Clone, Copy)]
struct Person {
    can_answer: bool,
    terminal: Terminal,
}

fn here(args: &args::Run, source: &Source, person: Person, runtime: &Runtime) -> Result<Plan, Fault> {
    let terminal = person.terminal;
    let reads = Reads::agents(args.foreign);
    let mut config = trust::settle(args.settings(), source, reads, terminal).or_exit(Exit::Config)?;
    refuse_flags_of_servers(args).or_exit(Exit::Usage)?;
    let project = canonical(&workspace(&config.settings).value).display().to_string();
    let approval = approval(args, Some(&mut config), project, person).or_exit(Exit::Usage)?;
    let options = request::options(args, &config.settings.budget).or_exit(Exit::Usage)?;
    let options = approval.options(options);
    let Setup { harness, prompt, mut notes, found, is_demo, session: recorded } =
        setup::setup(args, &config, person, runtime)?;
    let session = match &recorded {
        None => harness.new_session(),
        Some(id) => {
            let opened = runtime.block_on(harness.open_session(id.clone()));
            opened.with_context(|| format!("--session {id}")).or_exit(Exit::Config)?
        }
    };
    if session.plan_mode() == PlanMode::On && request::plan_mode(args).is_none() {
        notes.push("the session is in plan mode; --no-plan leaves it".to_owned());
    }
    let warning = approval.warning().filter(|_| !is_demo);
    // In a file, it would be read too late.
    warning.iter().for_each(|warning| progress::say_on_screen(warning, terminal));
    let run = request::new_run(args, &prompt, options).or_exit(Exit::Usage)?;
    Ok(Plan {
        session: Arc::new(session),
        run,
        prompt,
        harness: Some(harness),
        notes,
        found: Some(found),
        allowed: approval.into_allowed(),
        recorded,
    })
}

fn on_server(args: &args::Run, server: &Server, person: Person) -> Result<Plan, Fault> {
    let options = request::options(args, &args.budget).or_exit(Exit::Usage)?;
    let project = args.at.server.clone().unwrap_or_default();
    let approval = approval(args, None, project, person).or_exit(Exit::Usage)?;
    let options = approval.options(options);
    approval.warning().iter().for_each(|warning| progress::say_on_screen(warning, person.terminal));
    let prompt = prompt::prompt(args, false, person.terminal).or_exit(Exit::Usage)?;
    let id = args.session.clone().unwrap_or_else(|| new_session("run"));
    let mut session = server.open(id.clone()).or_exit(Exit::Usage)?;
    if let Some(agent) = &args.agent {
        session = session.with_agent(&**agent);
    }
    let run = request::new_run(args, &prompt, options).or_exit(Exit::Usage)?;
    Ok(Plan {
        session: Arc::new(session),
        run,
        prompt,
        harness: None,
        notes: Vec::new(),
        found: None,
        allowed: approval.into_allowed(),
        recorded: Some(id),
    })
}

/// Returns how calls are approved.
fn approval(
    args: &args::Run,
    config: Option<&mut Config>,
    project: String,
    Person { can_answer, terminal }: Person,
) -> anyhow::Result<Approval> {
    Ok(Approval::new(args.approve, config, project, can_answer)?.with_warning_of_changes(terminal))
}

/// Refuses what only a server does with a run.
fn refuse_flags_of_servers(args: &args::Run) -> anyhow::Result<()> {
    ensure!(
        args.background != Background::Detach,
        "--background detach: tasks of this process end with it; use wait or cancel, or --server"
    );
    ensure!(!args.queue, "--queue: only sessions on a server have several runs at once; add --server");
    ensure!(
        args.on_lost.is_none(),
        "--on-lost: only servers continue runs of processes that have ended; add --server"
    );
    Ok(())
}

fn drive(args: &args::Run, plan: Plan, terminal: Terminal, runtime: &Runtime) -> Result<Exit, Fault> {
    let Plan { session, run, prompt, harness, notes, found, allowed, recorded } = plan;
    let all = found.as_ref().map(|found| found.all.clone()).unwrap_or_default();
    let mut sinks = sinks(args, terminal, &prompt, Warnings::new(harness.clone(), all), allowed)?;
    notes.iter().for_each(|note| sinks.progress.note(note));
    found.iter().for_each(Findings::record);
    runtime.block_on(async {
        // A reply with a schema is one whole value.
        let may_go_on = args.resume && args.output_schema.is_none();
        let cut = if may_go_on { cut_reply(&*session).await } else { None };
        let begun = session.run(run).await.map_err(|error| refused(args, error))?;
        if args.queue && begun.run.view().await.is_ok_and(|run| run.status == RunState::Queued) {
            sinks.progress.note("the run is queued; it begins when the active run of the session has ended");
        }
        let mut drive = Drive::new(args, sinks, session, begun);
        drive.cut = cut;
        drive.until_end().await;
        let is_patient = drive.is_patient();
        let wants_table = args.diagnostics && args.output != Format::Json;
        let diagnostics = drive.diagnostics().filter(|_| wants_table);
        let mut exit = drive.finish(args).await;
        if let (Err(fault), Some(id)) = (&mut exit, &recorded) {
            fault.hint = offer(args, id, fault.exit, terminal);
        }
        if let Some(diagnostics) = diagnostics {
            progress::say(&diagnostics.to_string(), terminal);
        }
        if let Some(harness) = harness {
            if is_patient {
                harness.shutdown(Duration::ZERO).await;
            }
            store::close(&harness, terminal).await;
        }
        exit
    })
}

/// Returns how to resume a run that was cut or failed.
fn offer(args: &args::Run, id: &SessionId, exit: Exit, terminal: Terminal) -> Option<String> {
    if exit == Exit::ChildFailed || !terminal.stderr || args.progress.is_quiet() {
        return None;
    }
    let given = Given {
        agent: args.agent.as_deref(),
        settings: &args.settings,
        server: args.at.server.as_deref(),
        journal: args.journal.as_ref(),
    };
    Some(format!("to resume it: {}", given.command("run", id, " --resume")))
}

/// Adds the flags that caused an error.
fn refused(args: &args::Run, error: Error) -> Fault {
    let has_no_turn =
        args.resume && error.problem().is_some_and(|problem| problem.code == Code::NothingToResume);
    let exit = if has_no_turn { Exit::Usage } else { Exit::Failed };
    let is_busy = error.problem().is_some_and(|problem| problem.code == Code::RunActive);
    let error = match host::advised(error) {
        // The server names the member of a body.
        error if is_busy => anyhow!(error.to_string().replace("`\"queue\": true`", "--queue")),
        error => error,
    };
    let error = match &args.session {
        Some(id) if args.resume => error.context(format!("--session {id}")).context("--resume"),
        Some(id) => error.context(format!("--session {id}")),
        None => error,
    };
    Fault::new(exit, error)
}

/// Opens the sinks of a run of this prompt.
fn sinks(
    args: &args::Run,
    terminal: Terminal,
    prompt: &str,
    warnings: Warnings,
    allowed: Allowed,
) -> Result<Sinks, Fault> {
    let record = args.record.as_deref().map(create).transpose().or_exit(Exit::Usage)?;
    let mode = args.progress.mode();
    let title = if args.resume { args.session.as_ref().map_or("", SessionId::as_str) } else { prompt };
    Ok(Sinks {
        recorder: Recorder::new(record, args),
        output: Output::new(args.output, terminal),
        stdout: Stdout::start(io::stdout()).or_exit(Exit::Failed)?,
        progress: match args.verbose {
            true => progress::verbose(terminal),
            false => progress::on_stderr(terminal, mode, args.output, title),
        },
        signals: signals::watch().or_exit(Exit::Failed)?,
        warnings,
        approvals: Approvals::new(allowed, terminal),
        title: title.to_owned(),
        terminal,
    })
}

/// Creates the file of a record, or replaces an earlier record.
fn create(path: &Path) -> anyhow::Result<File> {
    let place = || format!("--record {}", path.display());
    if fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() > 0) {
        let is_record = is_record(path).with_context(place)?;
        ensure!(
            is_record,
            "{}: this file exists and is not a record; name another one, or delete it",
            place()
        );
    }
    File::create(path).with_context(place)
}

/// Returns `true` if a file begins as an event does.
fn is_record(path: &Path) -> io::Result<bool> {
    const EVENT: &[u8] = br#"{"type":""#;
    let mut start = Vec::new();
    File::open(path)?.take(EVENT.len() as u64).read_to_end(&mut start)?;
    Ok(start == EVENT)
}
