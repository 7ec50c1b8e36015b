//! Where the sessions and tasks of a command are: on a server, or in the records of this machine.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::anyhow;
use mainstem::client::Server;
use mainstem::{
    api::{Code, Error, Host, MAX_LIMIT, Page, SessionQuery},
    event::{Ids, RandomIds, SystemClock},
    message::SessionId,
    session::Records,
    task::{ExecutorId, FileTaskStore, TaskSet, TaskStore},
};

use crate::{
    args::{At, JournalAt, Source},
    config::{Settings, var},
    exit::{Exit, Fault, OrExit},
    harness::{check_directory, workspace},
    store::{self, Access, Store},
    terminal::Terminal,
    trust::{self, Reads},
};

/// The variable that holds the token.
const TOKEN: &str = "MAINSTEM_TOKEN";

/// The variable that names the tenant as which the operator's token sends requests.
const TENANT: &str = "MAINSTEM_TENANT";

/// How long a server may take to accept a cancel: one that does not respond must not delay the end
/// of this process.
pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the server at this address, if one is given.
///
/// # Errors
/// The text is not an address.
pub(crate) fn server(address: Option<&str>) -> anyhow::Result<Option<Server>> {
    let Some(address) = address else { return Ok(None) };
    let mut server = Server::at(address).map_err(|error| anyhow!("--server {error}"))?;
    if let Some(token) = var(TOKEN) {
        server = server.with_token(&token);
    }
    if let Some(tenant) = var(TENANT) {
        server = server.with_tenant(&tenant).map_err(|_| anyhow!("{TENANT} is not a tenant's name"))?;
    }
    Ok(Some(server))
}

/// Returns the server that the command names, or the sessions of the journal.
///
/// # Errors
/// The server's name is not an address, or the journal can't be opened.
pub(crate) fn open(at: &At, access: Access, journal: Option<&JournalAt>) -> Result<Arc<dyn Host>, Fault> {
    match server(at.server.as_deref()).or_exit(Exit::Usage)? {
        Some(server) => Ok(Arc::new(server)),
        None => Ok(Arc::new(journal_records(access, journal).or_exit(Exit::Config)?)),
    }
}

/// Returns the sessions of a journal, with the tasks that a database has beside them.
///
/// # Errors
/// It can't be opened.
pub(crate) fn journal_records(access: Access, at: Option<&JournalAt>) -> anyhow::Result<Records> {
    Ok(records(store::open_for(access, at)?))
}

fn records(store: Store) -> Records {
    let tasks = match store.tasks {
        Some(tasks) => task_set(tasks),
        None => TaskSet::in_memory(),
    };
    Records::new(tasks).with_journal(store.journal)
}

fn task_set(store: Arc<dyn TaskStore>) -> TaskSet {
    TaskSet::new(store, Arc::new(SystemClock), ExecutorId::new(RandomIds.next("executor-")))
}

/// Returns the records of tasks in a workspace.
///
/// # Errors
/// A setting is invalid, or the workspace is not a directory.
pub(crate) fn task_records(flags: Settings, source: &Source, terminal: Terminal) -> anyhow::Result<Records> {
    Ok(task_records_at(workspace_of(flags, source, terminal)?))
}

/// Returns the records of tasks in this workspace.
pub(crate) fn task_records_at(workspace: PathBuf) -> Records {
    Records::new(task_set(Arc::new(FileTaskStore::new(workspace))))
}

/// Returns the workspace of a command.
///
/// # Errors
/// A setting is invalid, or the workspace is not a directory.
pub(crate) fn workspace_of(flags: Settings, source: &Source, terminal: Terminal) -> anyhow::Result<PathBuf> {
    let config = trust::look_and_warn(flags, source, Reads::NoAgents, terminal)?;
    let workspace = workspace(&config.settings);
    check_directory(&workspace)?;
    Ok(workspace.value)
}

/// Returns an id for a new session of a command.
pub(crate) fn new_session(command: &str) -> SessionId {
    SessionId::from_lossy(RandomIds.next(&format!("{command}-")))
}

/// Returns the session whose run began last, on the server or in the journal.
///
/// # Errors
/// There is none, or they can't be listed.
pub(crate) async fn latest(address: Option<&str>, journal: Option<&JournalAt>) -> Result<SessionId, Fault> {
    let at = At { server: address.map(str::to_owned) };
    let host = open(&at, Access::Read, journal)?;
    let query = SessionQuery { limit: Some(1), ..SessionQuery::default() };
    let sessions = host.sessions(&query).await.advise().or_exit(Exit::Failed)?;
    let none = || anyhow!("there is no session yet; `mainstem run --session ID` begins one");
    sessions.items.into_iter().next().map(|session| session.id).ok_or_else(none).or_exit(Exit::Usage)
}

/// Returns at most this number of items, from as many pages as that takes, and whether there are
/// more. `page` gets a limit and a cursor.
pub(crate) async fn pages<T>(
    most: u32,
    page: impl AsyncFn(u32, Option<String>) -> Result<Page<T>, Error>,
) -> Result<(Vec<T>, bool), Error> {
    let (mut items, mut cursor) = (Vec::new(), None);
    loop {
        let left = most.saturating_sub(u32::try_from(items.len()).unwrap_or(u32::MAX));
        let found = page(left.min(MAX_LIMIT), cursor).await?;
        items.extend(found.items);
        match found.next {
            Some(next) if items.len() < most as usize => cursor = Some(next),
            next => return Ok((items, next.is_some())),
        }
    }
}

/// Adds what a person at a terminal can do about an error.
pub(crate) fn advised(error: Error) -> anyhow::Error {
    let problem = error.problem();
    let is_unknown = |kind: &str| {
        let is_such = |detail: &str| detail.starts_with(&format!("there is no {kind} "));
        problem.is_some_and(|problem| problem.code == Code::NotFound && is_such(&problem.detail))
    };
    let advice = match problem {
        Some(problem) if problem.code == Code::NoToken => format!("set {TOKEN}"),
        _ if is_unknown("session") => "`mainstem sessions list` lists sessions".to_owned(),
        _ if is_unknown("job") => "`mainstem jobs list --all` lists jobs".to_owned(),
        _ if is_unknown("task") => "`mainstem tasks list` lists tasks".to_owned(),
        _ => return error.into(),
    };
    anyhow!("{error}; {advice}")
}

/// Adds advice to the error of a result.
pub(crate) trait Advise<T> {
    fn advise(self) -> anyhow::Result<T>;
}

impl<T> Advise<T> for Result<T, Error> {
    fn advise(self) -> anyhow::Result<T> {
        self.map_err(advised)
    }
}
