//! `mainstem jobs`: adds, lists, shows and cancels jobs, in a journal or on a server.

use std::{io::Write as _, time::Duration};

use anyhow::{bail, ensure};
use mainstem::{
    api::{JobQuery, JobView, NewJob, NewRun, RunOptions},
    event::{Clock, SystemClock},
};
use serde_json::json;

use crate::{
    args::{Add, Form, Jobs, JobsCommand},
    exit::{Exit, Fault, OrExit},
    host::{self, Advise},
    print::{json as print_json, print, print_table},
    progress,
    store::Access,
    table,
    terminal::Terminal,
};

/// How long ago the time of a new job may be.
const LATE: Duration = Duration::from_secs(60);

const HEADS: [&str; 6] = ["JOB", "STATUS", "DUE", "RUNS", "LAST", "WHAT"];

pub(crate) fn run(args: &Jobs, terminal: Terminal) -> Result<Exit, Fault> {
    if let JobsCommand::Add(add) = &args.command {
        check(add).or_exit(Exit::Usage)?;
    }
    let journal = args.journal.as_ref();
    let access = match &args.command {
        JobsCommand::Add(_) => Access::Create,
        JobsCommand::Cancel { .. } => Access::Change,
        JobsCommand::List { .. } | JobsCommand::Show { .. } => Access::Read,
    };
    let host = host::open(&args.at, access, journal)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    runtime.block_on(async {
        match &args.command {
            JobsCommand::Add(add) => {
                let job = host.add_job(new(add)).await.advise().or_exit(Exit::Failed)?;
                host.close().await.advise().or_exit(Exit::Failed)?;
                print(&format!("{}\n", job.id))?;
                if args.at.server.is_none() {
                    let note = format!(
                        "due at {}; `mainstem worker` or a server with the same journal runs it",
                        job.due_at
                    );
                    progress::say(&note, terminal);
                }
            }
            JobsCommand::List { all, limit, output } => {
                let page = async |limit, cursor| {
                    host.jobs(&JobQuery { all: *all, limit: Some(limit), cursor }).await
                };
                let (jobs, has_more) = host::pages(*limit, page).await.advise().or_exit(Exit::Failed)?;
                match output {
                    Form::Json => print_json(&jobs.iter().map(|job| json!(job)).collect())?,
                    Form::Text => print_table(HEADS, jobs.iter().map(row), "jobs")?,
                }
                if has_more {
                    progress::say("there are more jobs; `--limit N` lists N of them", terminal);
                }
            }
            JobsCommand::Show { id } => show(&host.job(id).await.advise().or_exit(Exit::Failed)?)?,
            JobsCommand::Cancel { id } => {
                let job = host.cancel_job(id).await.advise().or_exit(Exit::Failed)?;
                host.close().await.advise().or_exit(Exit::Failed)?;
                show(&job)?;
            }
        }
        Ok(Exit::Reply)
    })
}

/// A job at a time that is over would begin at once: the time may be that of another day.
fn check(add: &Add) -> anyhow::Result<()> {
    ensure!(!add.prompt.trim().is_empty(), "the prompt is empty");
    let now = SystemClock.now();
    if let Some(at) = add.at.filter(|at| at.after(LATE) < now) {
        bail!("--at {at} is over, it is {now}; without --at, the job begins as soon as a process has room");
    }
    Ok(())
}

fn new(add: &Add) -> NewJob {
    let options = RunOptions { on_lost: add.on_lost.map(Into::into), ..RunOptions::default() };
    let run = NewRun { agent: add.agent.clone(), options, ..NewRun::new(add.prompt.as_str()) };
    let run_at = add.at.or_else(|| add.after.map(|after| SystemClock.now().after(after)));
    NewJob {
        id: add.id.clone(),
        session_id: add.session.clone(),
        run,
        run_at,
        cron: add.cron.clone(),
        priority: add.priority,
    }
}

fn row(job: &JobView) -> [String; 6] {
    let last = job.last_run.as_ref().map_or_else(|| "-".to_owned(), |run| word(&json!(run.status)));
    let (id, due, runs) = (job.id.to_string(), job.due_at.to_string(), job.runs.to_string());
    [id, job.status.as_str().to_owned(), due, runs, last, table::prompt(&what(job))]
}

/// What is run, in one line.
fn what(job: &JobView) -> String {
    let text = job.run.input.as_ref().map_or_else(
        || if job.run.compact { "compact the conversation" } else { "resume the last turn" }.to_owned(),
        |input| input.0.text(),
    );
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn word(value: &serde_json::Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn show(job: &JobView) -> Result<(), Fault> {
    let mut text = Vec::new();
    let mut line = |name: &str, value: &str| writeln!(text, "{name}: {value}");
    let _ = line("job", job.id.as_str());
    let _ = line("status", job.status.as_str());
    if let Some(cron) = &job.cron {
        let _ = line("cron", cron);
    }
    let _ = line("due", &job.due_at.to_string());
    if let Some(why) = &job.postponed {
        let _ = line("postponed", why);
    }
    let _ = line("priority", &job.priority.to_string());
    if let Some(session) = &job.session_id {
        let _ = line("session", session.as_str());
    }
    if let Some(agent) = &job.run.agent {
        let _ = line("agent", agent);
    }
    let _ = line("asked", &what(job));
    let _ = line("runs", &job.runs.to_string());
    if let Some(run) = &job.last_run {
        let _ = line("last run", run.run_id.as_ref().map_or("it could not begin", |id| id.as_str()));
        let _ = line("last session", run.session_id.as_str());
        let _ = line("ended", &format!("{}, {}", run.ended_at, word(&json!(run.status))));
        if let Some(error) = &run.error {
            let _ = line("error", &error.to_string());
        }
    }
    print(&String::from_utf8_lossy(&text))
}
