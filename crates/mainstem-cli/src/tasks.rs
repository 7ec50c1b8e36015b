//! `mainstem tasks`: background tasks, of the workspace or of a server.

use std::{collections::BTreeSet, io::Write as _, sync::Arc, time::Duration};

use anyhow::{anyhow, ensure};
use futures_util::TryStreamExt;
use mainstem::{
    api::{Code, EventQuery, Host, TaskQuery},
    event::{Clock, SystemClock},
    message::TaskId,
    task::{LEASE_DURATION, TaskRecord},
};
use serde_json::json;

use crate::{
    args::{Form, JournalAt, Source, Tasks, TasksCommand},
    exit::{Exit, Fault, OrExit},
    host::{self, Advise},
    print::{json as print_json, print, print_table},
    progress::{self, Progress},
    store::{self, Access},
    table,
    terminal::Terminal,
};

pub(crate) const HEADS: [&str; 5] = ["TASK", "AGENT", "STATUS", "SESSION", "WHAT"];

/// How long a cancel waits for the task's executor.
const HEARD: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &Tasks, source: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    args.at.check(&args.workspace).or_exit(Exit::Usage)?;
    let host = open(args, source, terminal).or_exit(Exit::Config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    runtime.block_on(async {
        match &args.command {
            TasksCommand::List { session, status, output } => {
                let query = TaskQuery { session: session.clone(), status: *status };
                let tasks = host.tasks(&query).await.advise().or_exit(Exit::Failed)?;
                match output {
                    Form::Json => print_json(&tasks.iter().map(|task| json!(task)).collect())?,
                    Form::Text => print_table(HEADS, tasks.iter().map(row), "tasks")?,
                }
            }
            TasksCommand::Show { id } => {
                show(&host.task(id).await.advise().or_exit(Exit::Failed)?)?;
            }
            TasksCommand::Logs { id } => logs(&*host, id, terminal).await?,
            TasksCommand::Wait { id, timeout } => {
                let task = host.wait_for_task(id, *timeout).await;
                let task = task.advise().or_exit(Exit::Failed)?;
                show(&task)?;
                if !task.is_over() {
                    let time = humantime::format_duration(*timeout);
                    return Err(anyhow!("task {id} has not ended after {time}")).or_exit(Exit::Timeout);
                }
            }
            TasksCommand::Cancel { id } => {
                let task = host.cancel_task(id).await.advise().or_exit(Exit::Failed)?;
                show(&task)?;
                check_stopped(&task).or_exit(Exit::Failed)?;
            }
            TasksCommand::Rm { ids } => remove(&*host, ids).await.or_exit(Exit::Failed)?,
        }
        Ok(Exit::Reply)
    })
}

/// Returns the server or the database that the command names, or the tasks of the workspace; with
/// the journal if their events are read.
fn open(args: &Tasks, source: &Source, terminal: Terminal) -> anyhow::Result<Arc<dyn Host>> {
    if let Some(server) = host::server(args.at.server.as_deref())? {
        return Ok(Arc::new(server));
    }
    if let Some(at @ JournalAt::Database(_)) = &args.journal {
        let changes = matches!(args.command, TasksCommand::Cancel { .. } | TasksCommand::Rm { .. });
        let access = if changes { Access::Change } else { Access::Read };
        return Ok(Arc::new(host::journal_records(access, Some(at))?));
    }
    let has_events = matches!(args.command, TasksCommand::Logs { .. });
    ensure!(
        has_events || args.journal.is_none(),
        "tasks are in the workspace, and not in a journal that is a file: name the workspace with -w; --journal FILE is for `tasks logs`"
    );
    let records = host::task_records(args.workspace.settings(), source, terminal)?;
    Ok(Arc::new(match has_events {
        true => records.with_journal(store::open_existing(args.journal.as_ref())?.journal),
        false => records,
    }))
}

/// Removes all of them or, if one does not exist or is not over, none.
async fn remove(host: &dyn Host, ids: &[TaskId]) -> anyhow::Result<()> {
    let ids: BTreeSet<_> = ids.iter().collect();
    for id in &ids {
        let task = host.task(id).await.advise()?;
        let status = task.status.as_str();
        ensure!(task.is_over(), "task {id} is {status}; stop it first: mainstem tasks cancel {id}");
    }
    for id in ids {
        host.remove_task(id).await.advise()?;
    }
    Ok(())
}

/// A cancel is done when the task's executor has acknowledged it.
fn check_stopped(task: &TaskRecord) -> anyhow::Result<()> {
    ensure!(
        task.is_over(),
        "task {:?} has not stopped: its executor has not answered within {} s; if it has ended, {}",
        task.id.as_str(),
        HEARD.as_secs(),
        match task.is_resumable {
            true => "the task stops when its session is next opened".to_owned(),
            false => format!("the task ends within {} s", LEASE_DURATION.as_secs()),
        }
    );
    Ok(())
}

pub(crate) fn row(task: &TaskRecord) -> [String; 5] {
    let session = task.root_session_id.to_string();
    [
        task.id.to_string(),
        task.agent_id.to_string(),
        task.status.as_str().to_owned(),
        session,
        table::prompt(&task.task),
    ]
}

fn show(task: &TaskRecord) -> Result<(), Fault> {
    let mut text = Vec::new();
    let mut line = |name: &str, value: &str| writeln!(text, "{name}: {value}");
    let _ = line("task", task.id.as_str());
    let _ = line("agent", task.agent_key.as_str());
    let _ = line("session", task.root_session_id.as_str());
    let _ = line("status", task.status.as_str());
    let _ = line("created", &task.created_at.to_string());
    let _ = line("updated", &task.updated_at.to_string());
    let _ = line("asked", &task.task);
    if let Some(error) = &task.error {
        let _ = line("error", &error.to_string());
    }
    if let Some(result) = &task.result {
        let _ = line("result", result);
    }
    print(&String::from_utf8_lossy(&text))
}

/// Prints what the agents of a task did and said.
async fn logs(host: &dyn Host, id: &TaskId, terminal: Terminal) -> Result<(), Fault> {
    let task = host.task(id).await.advise().or_exit(Exit::Failed)?;
    let session = host.session(&task.root_session_id);
    let mut events = session.events(EventQuery { task: Some(id.clone()), ..EventQuery::stored() });
    let mut log = progress::log(terminal);
    loop {
        match events.try_next().await {
            Ok(Some(event)) => log.event(&event),
            Ok(None) => {
                log.finish(SystemClock.now());
                return Ok(());
            }
            Err(error) if error.has_code(&Code::NotFound) => {
                let session = task.root_session_id.as_str();
                return Err(anyhow!(
                    "session {session:?} of the task is not recorded here; `mainstem tasks show` prints its result"
                ))
                .or_exit(Exit::Failed);
            }
            Err(error) => return Err(error).advise().or_exit(Exit::Failed),
        }
    }
}
