//! `mainstem sessions`: lists, shows, exports and deletes sessions.

mod conversation;
mod links;
mod live;
mod served;

use std::{collections::BTreeSet, path::Path, pin::pin, sync::Arc};

use anyhow::{anyhow, ensure};
use futures_util::TryStreamExt;
use mainstem::{
    StoredFiles,
    api::{AnySession, EventQuery, Host, SessionQuery, SessionState, SessionView},
    encode::TestFile,
    event::{AgentState, Clock, FleetState, SystemClock, fleet::Phase},
    message::{RateLimits, SessionId},
    session::{Keep, Records},
    workspace::{SessionFiles, Workspace},
};
use serde_json::json;

use self::conversation::Conversation;
#[cfg(feature = "page")]
use crate::web;
use crate::{
    args::{FilesFlag, Form, JournalAt, Sessions, SessionsCommand, Source, WorkspaceFlag},
    data,
    exit::{Exit, Fault, OrExit},
    host::{self, Advise},
    print::{counted, json as print_json_value, print, print_json, print_shown, print_table},
    progress, sanitize,
    store::{self, Access},
    table,
    terminal::Terminal,
};

const HEADS: [&str; 5] = ["SESSION", "RUNS", "EVENTS", "LAST", "STATE"];

const AGENTS: [&str; 6] = ["AGENT", "STATUS", "TOKENS", "CONTEXT", "STARTED", "KEY"];

const RATES: [&str; 4] = ["MODEL", "RATE LIMIT", "LEFT", "OF"];

/// The number of events that are printed at once.
const AT_ONCE: usize = 256;

pub(crate) fn run(args: &Sessions, source: &Source, terminal: Terminal) -> Result<Exit, Fault> {
    if let SessionsCommand::Rm { workspace, files, .. } = &args.command {
        args.at.check(workspace).and_then(|()| files.check(&args.at)).or_exit(Exit::Usage)?;
    }
    if let SessionsCommand::Served(command) = &args.command {
        return served::run(args.at.server.as_deref(), command, terminal);
    }
    if let SessionsCommand::Prune { keep, dry_run, workspace, files } = &args.command {
        let (keep, dry_run) = (keep.keep(), *dry_run);
        check_keep(args, keep).or_exit(Exit::Usage)?;
        let records = records(args, workspace, files, source, terminal).or_exit(Exit::Config)?;
        return prune(&records, keep, dry_run, terminal);
    }
    let host = open(args, source, terminal)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    runtime.block_on(async {
        match &args.command {
            SessionsCommand::List { search, limit, output } => {
                let (sessions, has_more) = list(&*host, search.clone(), *limit).await?;
                match output {
                    Form::Json => print_json_value(&json!(sessions))?,
                    Form::Text => print_table(HEADS, sessions.iter().map(row), "sessions")?,
                }
                if has_more {
                    progress::say("there are more sessions; `--limit N` lists N of them", terminal);
                }
            }
            SessionsCommand::Show { id, at } => show_session(&*host.session(id), *at, terminal).await?,
            #[cfg(feature = "page")]
            SessionsCommand::Export { id, html: true, .. } => {
                let session = host.session(id);
                // Reports an unknown session before the first line.
                session.view().await.advise().or_exit(Exit::Failed)?;
                web::print_document(web::stored(session)).await?;
            }
            SessionsCommand::Export { id, test: true, .. } => {
                let session = host.session(id);
                let view = session.view().await.advise().or_exit(Exit::Failed)?;
                let is_over = || {
                    ensure!(
                        view.state != SessionState::Running,
                        "a run of session {id} is active; a test is of runs that have ended"
                    );
                    Ok(())
                };
                is_over().or_exit(Exit::Failed)?;
                print_test(id, &*session).await?;
            }
            SessionsCommand::Export { id, .. } => export(host.session(id)).await?,
            SessionsCommand::Rm { ids, files, .. } => {
                remove(&*host, ids, files.session_files.is_some()).await.or_exit(Exit::Failed)?;
            }
            SessionsCommand::Prune { .. } | SessionsCommand::Served(_) => {}
        }
        Ok(Exit::Reply)
    })
}

/// Prints a session as it is, with its conversation, or as it was at an event.
async fn show_session(session: &dyn AnySession, at: Option<u64>, terminal: Terminal) -> Result<(), Fault> {
    let view = session.view().await.advise().or_exit(Exit::Failed)?;
    if let Some(seq) = at {
        return show(&view, &session.fleet_at(seq).await.advise().or_exit(Exit::Failed)?);
    }
    show(&view, &session.fleet().await.advise().or_exit(Exit::Failed)?)?;
    print_conversation(session, terminal).await
}

/// Returns at most this number of sessions, and whether there are more.
async fn list(host: &dyn Host, search: Option<String>, most: u32) -> Result<(Vec<SessionView>, bool), Fault> {
    let query = SessionQuery { search, limit: None, cursor: None };
    let page = async |limit, cursor| {
        host.sessions(&SessionQuery { limit: Some(limit), cursor, ..query.clone() }).await
    };
    host::pages(most, page).await.advise().or_exit(Exit::Failed)
}

/// Returns the server that the command names, or the sessions of the journal; with all that is
/// deleted with them.
fn open(args: &Sessions, source: &Source, terminal: Terminal) -> Result<Arc<dyn Host>, Fault> {
    match &args.command {
        SessionsCommand::Rm { workspace, files, .. } if args.at.server.is_none() => {
            Ok(Arc::new(records(args, workspace, files, source, terminal).or_exit(Exit::Config)?))
        }
        _ => host::open(&args.at, Access::Read, args.journal.as_ref()),
    }
}

/// Returns the sessions of a journal with their tasks, which a database has and a workspace
/// otherwise, and with their files, if a store of them is named.
fn records(
    args: &Sessions,
    workspace: &WorkspaceFlag,
    files: &FilesFlag,
    source: &Source,
    terminal: Terminal,
) -> anyhow::Result<Records> {
    let place = || host::workspace_of(workspace.settings(), source, terminal);
    let (records, place) = match args.journal.as_ref() {
        Some(at @ JournalAt::Database(_)) if files.session_files.is_none() => {
            return host::journal_records(Access::Change, Some(at));
        }
        Some(at @ JournalAt::Database(_)) => (host::journal_records(Access::Change, Some(at))?, place()?),
        journal => {
            let place = place()?;
            let records = host::task_records_at(place.clone());
            (records.with_journal(store::open_existing(journal)?.journal), place)
        }
    };
    let Some(files) = &files.session_files else { return Ok(records) };
    let is_there = files.contains("://") || Path::new(files).is_dir();
    ensure!(is_there, "--session-files: there is no directory {files}");
    let files = SessionFiles::open(files).map_err(|error| anyhow!("--session-files: {error}"))?;
    Ok(records.with_files(Arc::new(StoredFiles::new(Workspace::open(place)?, files))))
}

fn row(session: &SessionView) -> [String; 5] {
    let SessionView { id, runs, updated_at, state, .. } = session;
    let events = session.events();
    [id.to_string(), runs.to_string(), events.to_string(), updated_at.to_string(), state.as_str().to_owned()]
}

/// Prints the line of the list, a line for each agent, and what the services of the models allow.
fn show(session: &SessionView, fleet: &FleetState) -> Result<(), Fault> {
    let agents = table::text(AGENTS, fleet.agents.iter().map(agent));
    let limits: Vec<_> = fleet.rate_limits.iter().flat_map(|(model, limits)| rates(model, limits)).collect();
    let limits = if limits.is_empty() {
        String::new()
    } else {
        format!("\n{}", table::text(RATES, limits.into_iter()))
    };
    print(&format!("{}\n{agents}{limits}", table::text(HEADS, std::iter::once(row(session)))))
}

fn rates(model: &str, limits: &RateLimits) -> impl Iterator<Item = [String; 4]> {
    limits.iter().map(move |(limit, allowance)| {
        let most = allowance.limit.map_or_else(|| "unknown".to_owned(), |limit| limit.to_string());
        [model.to_owned(), limit.as_str().to_owned(), allowance.remaining.to_string(), most]
    })
}

fn agent(agent: &AgentState) -> [String; 6] {
    let key = agent.key().map_or_else(|| "root".to_owned(), ToString::to_string);
    let status = match (agent.outcome, agent.phase) {
        (Some(outcome), _) => outcome.as_str(),
        (None, Phase::RateLimited) => "rate limited",
        (None, _) => "running",
    };
    let tokens = agent.usage.input_tokens + agent.usage.output_tokens;
    let context = agent.context.map_or_else(
        || "unknown".to_owned(),
        |context| format!("{}% of {}", context.percent(), context.window),
    );
    let title = agent.source.as_ref().and_then(|source| source.title.as_deref());
    let name = title
        .map_or_else(|| agent.name.clone(), |title| format!("{} {}", agent.name, sanitize::visible(title)));
    [name, status.to_owned(), tokens.to_string(), context, agent.started_at.to_string(), key]
}

/// Prints what was said, and which tools the root called.
async fn print_conversation(session: &dyn AnySession, terminal: Terminal) -> Result<(), Fault> {
    let mut events = session.events(EventQuery { depth: Some(0), ..EventQuery::stored() });
    let mut conversation = Conversation::default();
    while let Some(event) = events.try_next().await.advise().or_exit(Exit::Failed)? {
        conversation.event(&event, terminal);
    }
    let text = conversation.into_text();
    if text.is_empty() { Ok(()) } else { print_shown(&format!("\n{text}")) }
}

async fn export(session: Arc<dyn AnySession>) -> Result<(), Fault> {
    let mut events = pin!(data::recorded(session).try_ready_chunks(AT_ONCE));
    loop {
        let lines = match events.try_next().await {
            Ok(Some(events)) => events,
            Ok(None) => return Ok(()),
            Err(error) => {
                print_lines(&error.0)?;
                return Err(error.1).advise().or_exit(Exit::Failed);
            }
        };
        print_lines(&lines)?;
    }
}

/// Writes the test of a session to stdout.
async fn print_test(id: &SessionId, session: &dyn AnySession) -> Result<(), Fault> {
    let mut events = session.events(EventQuery::stored());
    let mut test = TestFile::open(Vec::new(), id).or_exit(Exit::Failed)?;
    while let Some(event) = events.try_next().await.advise().or_exit(Exit::Failed)? {
        test.event(&event).or_exit(Exit::Failed)?;
    }
    let text = test.close().or_exit(Exit::Failed)?;
    // It is JSON where it has control characters.
    print_json(String::from_utf8_lossy(&text).trim_end())
}

fn print_lines(events: &[mainstem::event::AgentEvent]) -> Result<(), Fault> {
    if events.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = events.iter().map(mainstem::event::AgentEvent::to_json).collect();
    print_json(&lines.join("\n"))
}

fn check_keep(args: &Sessions, keep: Keep) -> anyhow::Result<()> {
    ensure!(args.at.server.is_none(), "a server deletes sessions itself: `mainstem serve --keep 30d`");
    ensure!(!keep.is_all(), "name what is kept: --keep 30d, --keep-size 10GiB, or both");
    Ok(())
}

/// Deletes what is not kept, and prints it.
fn prune(records: &Records, keep: Keep, dry_run: bool, terminal: Terminal) -> Result<Exit, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let now = SystemClock.now();
    let surplus = runtime.block_on(async {
        match dry_run {
            true => records.surplus(keep, now).await.or_exit(Exit::Failed),
            false => {
                let deleted = records.prune(keep, now).await.or_exit(Exit::Failed)?;
                records.close().await.or_exit(Exit::Failed)?;
                Ok(deleted)
            }
        }
    })?;
    let lines: String = surplus.iter().map(|id| format!("{id}\n")).collect();
    print(&lines)?;
    let what = if dry_run { "would be deleted" } else { "deleted" };
    progress::say(&format!("{} {what}", counted(surplus.len(), "session")), terminal);
    Ok(Exit::Reply)
}

/// Deletes all of them or, if one does not exist, none. With a store of files, one that does not
/// exist may have files.
async fn remove(host: &dyn Host, ids: &[SessionId], have_files: bool) -> anyhow::Result<()> {
    let ids: BTreeSet<_> = ids.iter().collect();
    for id in ids.iter().filter(|_| !have_files) {
        host.session(id).view().await.advise()?;
    }
    for id in ids {
        host.delete_session(id).await.advise()?;
    }
    host.close().await.advise()
}
