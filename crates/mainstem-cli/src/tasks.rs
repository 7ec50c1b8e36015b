//! `mainstem tasks`: background tasks, of the workspace or of a server.

use std::{
    io::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow, ensure};
use mainstem::{
    event::{Ids, RandomIds},
    message::TaskId,
    task::{ExecutorId, FileTaskStore, LEASE, TaskFilter, TaskRecord, TaskSet},
};
use mainstem_event::{SystemClock, TaskStatus};
use serde_json::{Value, json};

use crate::{
    agents::{json as print_json, print},
    args::{Form, Source, Tasks, TasksCommand},
    config::{Setting, Settings},
    exit::{Exit, Fault, OrExit},
    harness::workspace,
    remote::{Remote, escape},
    store::{self, Pages},
    table,
    terminal::Terminal,
    trust::{self, Reads},
};

const HEADS: [&str; 5] = ["TASK", "AGENT", "STATUS", "SESSION", "WHAT"];

/// As much of a task as fits into a line.
const WIDTH: usize = 48;

/// As long as a server waits at once.
const AT_ONCE: u64 = 30;

/// How long another process may take to hear that a task shall stop.
const HEARD: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &Tasks, config: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    let place = Place::of(args, config, terminal).or_exit(Exit::Config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    runtime.block_on(async {
        match &args.command {
            TasksCommand::List { session, status, output } => {
                let tasks = place.list(session.as_deref(), *status).await.or_exit(Exit::Failed)?;
                match output {
                    Form::Json => print_json(&tasks.iter().map(|task| json!(task)).collect())?,
                    Form::Text => print(&table::text(HEADS, tasks.iter().map(row)))?,
                }
            }
            TasksCommand::Show { id } => show(&place.get(id).await.or_exit(Exit::Failed)?)?,
            TasksCommand::Logs { id } => logs(&place, args, id).await?,
            TasksCommand::Wait { id, timeout } => {
                let task = place.wait(id, *timeout).await.or_exit(Exit::Failed)?;
                show(&task)?;
                if !task.is_over() {
                    let time = humantime::format_duration(*timeout);
                    return Err(anyhow!("task {id} is not over after {time}")).or_exit(Exit::Timeout);
                }
            }
            TasksCommand::Cancel { id } => {
                let task = place.cancel(id).await.or_exit(Exit::Failed)?;
                show(&task)?;
                check_stopped(&task).or_exit(Exit::Failed)?;
            }
        }
        Ok(Exit::Reply)
    })
}

enum Place {
    Server(Remote),
    Workspace(TaskSet),
}

impl Place {
    fn of(args: &Tasks, config: &Source, terminal: Terminal) -> anyhow::Result<Self> {
        if let Some(remote) = Remote::of(&args.at)? {
            return Ok(Self::Server(remote));
        }
        let flag = args.workspace.clone().map(|path| Setting::new(path, "--workspace"));
        let flags = Settings { workspace: flag, ..Settings::default() };
        let settings = trust::look_and_warn(flags, config, Reads::NoAgents, terminal)?;
        let store = Arc::new(FileTaskStore::new(workspace(&settings).value));
        let executor = ExecutorId::new(RandomIds.next("executor-"));
        Ok(Self::Workspace(TaskSet::new(store, Arc::new(SystemClock), executor)))
    }

    async fn list(
        &self,
        session: Option<&str>,
        status: Option<TaskStatus>,
    ) -> anyhow::Result<Vec<TaskRecord>> {
        match self {
            Self::Server(remote) => {
                let mut query = Vec::new();
                query.extend(session.map(|session| format!("session={}", escape(session))));
                query.extend(status.map(|status| format!("status={}", status.as_str())));
                let mut listed = remote.get(&format!("/tasks?{}", query.join("&"))).await?;
                Ok(serde_json::from_value(listed["items"].take())?)
            }
            Self::Workspace(tasks) => {
                let filter =
                    session.map_or_else(TaskFilter::all, |session| TaskFilter::of_root(session.into()));
                let filter = status.into_iter().fold(filter, TaskFilter::with_status);
                Ok(tasks.list(&filter).await?)
            }
        }
    }

    async fn get(&self, id: &str) -> anyhow::Result<TaskRecord> {
        match self {
            Self::Server(remote) => task(remote.get(&format!("/tasks/{}", escape(id))).await?),
            Self::Workspace(tasks) => known(tasks.get(&TaskId::new(id)).await, id),
        }
    }

    async fn wait(&self, id: &str, timeout: Duration) -> anyhow::Result<TaskRecord> {
        match self {
            Self::Server(remote) => {
                let until = Instant::now() + timeout;
                loop {
                    let left = until.saturating_duration_since(Instant::now()).as_secs().min(AT_ONCE);
                    let path = format!("/tasks/{}/wait?timeout={left}", escape(id));
                    let task = task(remote.get(&path).await?)?;
                    if task.is_over() || Instant::now() >= until || left == 0 {
                        return Ok(task);
                    }
                }
            }
            Self::Workspace(tasks) => {
                let task = TaskId::new(id);
                known(tasks.wait(std::slice::from_ref(&task), timeout).await.map(drop), id)?;
                known(tasks.get(&task).await, id)
            }
        }
    }

    async fn cancel(&self, id: &str) -> anyhow::Result<TaskRecord> {
        match self {
            Self::Server(remote) => {
                task(remote.post(&format!("/tasks/{}/cancel", escape(id)), &json!({})).await?)
            }
            Self::Workspace(tasks) => {
                known(tasks.cancel(&TaskId::new(id), "the user (mainstem tasks cancel)", HEARD).await, id)
            }
        }
    }
}

/// A cancel is done when the task's executor has acknowledged it.
fn check_stopped(task: &TaskRecord) -> anyhow::Result<()> {
    ensure!(
        task.is_over(),
        "task {:?} has not stopped: its executor has not answered within {} s; if it hangs, the task ends within {} s",
        task.id.as_str(),
        HEARD.as_secs(),
        LEASE.as_secs()
    );
    Ok(())
}

fn task(value: Value) -> anyhow::Result<TaskRecord> {
    serde_json::from_value(value).context("the server's answer is no task")
}

/// An unknown task is said in words for people, not for a model.
fn known<T>(result: Result<T, mainstem::task::TaskError>, id: &str) -> anyhow::Result<T> {
    result.map_err(|error| match error {
        mainstem::task::TaskError::Unknown { .. } => {
            anyhow!("there is no task {id:?}; `mainstem tasks list` says which there are")
        }
        error => error.into(),
    })
}

fn row(task: &TaskRecord) -> [String; 5] {
    let mut what: String = task.task.split_whitespace().collect::<Vec<_>>().join(" ");
    if what.chars().count() > WIDTH {
        what = what.chars().take(WIDTH - 1).chain(['…']).collect();
    }
    let session = task.root_session_id.to_string();
    [task.id.to_string(), task.agent_id.to_string(), task.status.as_str().to_owned(), session, what]
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

/// The events of a task, a line each.
async fn logs(place: &Place, args: &Tasks, id: &str) -> Result<(), Fault> {
    let task = place.get(id).await.or_exit(Exit::Failed)?;
    match place {
        Place::Server(remote) => {
            let path = format!("/tasks/{}/events?follow=false", escape(id));
            let mut events = remote.events(path, 0);
            while let Some(event) = events.next().await.or_exit(Exit::Failed)? {
                print(&format!("{event}\n"))?;
            }
        }
        Place::Workspace(_) => {
            let journal = store::open(args.journal.as_deref()).or_exit(Exit::Config)?;
            let session = task.root_session_id.as_str();
            let pages = Pages::of(journal, session).await.or_exit(Exit::Failed)?;
            let unkept =
                || anyhow!("session {session:?} of the task is not kept here; its result is all there is");
            let mut pages = pages.ok_or_else(unkept).or_exit(Exit::Failed)?;
            loop {
                let page = pages.next().await.or_exit(Exit::Failed)?;
                if page.is_empty() {
                    return Ok(());
                }
                let is_of_task = |event: &&mainstem_event::AgentEvent| {
                    event.source().and_then(|source| source.task_id.as_ref()) == Some(&task.id)
                };
                for event in page.iter().filter(is_of_task) {
                    print(&format!("{event}\n"))?;
                }
            }
        }
    }
    Ok(())
}
