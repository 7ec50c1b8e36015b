//! `mainstem sessions`: what is kept on this machine.

use std::cmp::Reverse;

use anyhow::{Context, anyhow};
use mainstem::{
    event::{AgentEvent, AgentState, FleetState, Outcome},
    journal::{Journal, SessionSummary, SqliteJournal},
};
use serde_json::{Value, json};

use crate::{
    agents::{json, print, print_json},
    args::{Form, Sessions, SessionsCommand},
    exit::{Exit, Fault, OrExit},
    remote::{Remote, escape},
    store::{self, Pages},
    table,
};

const HEADS: [&str; 5] = ["SESSION", "RUNS", "EVENTS", "LAST", "STATE"];

const AGENTS: [&str; 5] = ["AGENT", "STATUS", "TOKENS", "STARTED", "KEY"];

pub(crate) fn run(args: &Sessions) -> Result<Exit, Fault> {
    if let Some(remote) = Remote::of(&args.at).or_exit(Exit::Usage)? {
        return on_server(&remote, args);
    }
    let journal = store::open(args.journal.as_deref()).or_exit(Exit::Config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().or_exit(Exit::Failed)?;
    runtime.block_on(async {
        match &args.command {
            SessionsCommand::List { output } => list(&journal, *output).await?,
            SessionsCommand::Show { id } => show_kept(journal, id).await?,
            SessionsCommand::Export { id } => export(journal, id).await?,
            SessionsCommand::Rm { ids } => rm(&journal, ids).await?,
        }
        Ok(Exit::Reply)
    })
}

async fn list(journal: &SqliteJournal, form: Form) -> Result<(), Fault> {
    let sessions = journal.sessions().await.or_exit(Exit::Failed)?;
    match form {
        Form::Json => json(&sessions.iter().map(object).collect()),
        Form::Text => {
            let mut rows = Vec::new();
            for session in &sessions {
                rows.push(row(session, state(journal, session).await));
            }
            print(&table::text(HEADS, rows.into_iter()))
        }
    }
}

/// Whether it can be read, and whether a run is active in it or was cut.
async fn state(journal: &SqliteJournal, session: &SessionSummary) -> &'static str {
    if session.damage.is_some() {
        return "damaged";
    }
    match session.unfinished {
        None => "idle",
        // What can't be found out is nothing to fail for.
        Some(_) if journal.is_open(&session.id).await.unwrap_or(false) => "running",
        Some(_) => "unfinished",
    }
}

fn row(session: &SessionSummary, state: &str) -> [String; 5] {
    let SessionSummary { id, runs, updated_at, .. } = session;
    [id.to_string(), runs.to_string(), session.events().to_string(), updated_at.to_string(), state.to_owned()]
}

fn object(session: &SessionSummary) -> Value {
    json!({
        "id": session.id,
        "runs": session.runs,
        "events": session.events(),
        "first": session.first,
        "last": session.last,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "unfinished": session.unfinished,
        "damage": session.damage,
    })
}

async fn show_kept(journal: SqliteJournal, id: &str) -> Result<(), Fault> {
    let kept = journal.session(&id.into()).await.or_exit(Exit::Failed)?;
    let kept = kept.ok_or_else(|| unknown(id)).or_exit(Exit::Failed)?;
    let row = row(&kept, state(&journal, &kept).await);
    let pages = Pages::of(journal, id).await.or_exit(Exit::Failed)?;
    let mut pages = pages.ok_or_else(|| unknown(id)).or_exit(Exit::Failed)?;
    let mut fleet = FleetState::default();
    loop {
        let page = pages.next().await.or_exit(Exit::Failed)?;
        if page.is_empty() {
            return show(row, &fleet);
        }
        page.iter().for_each(|event| fleet.apply(event));
    }
}

/// The same line as in the list, and a line for each agent.
fn show(row: [String; 5], fleet: &FleetState) -> Result<(), Fault> {
    let agents = table::text(AGENTS, fleet.agents.iter().map(agent));
    print(&format!("{}\n{agents}", table::text(HEADS, std::iter::once(row))))
}

fn agent(agent: &AgentState) -> [String; 5] {
    let key = agent.key().map_or_else(|| "root".to_owned(), ToString::to_string);
    let status = agent.outcome.map_or("at work", Outcome::as_str).to_owned();
    let tokens = agent.usage.input_tokens + agent.usage.output_tokens;
    [agent.name.clone(), status, tokens.to_string(), agent.started_at.to_string(), key]
}

async fn export(journal: SqliteJournal, id: &str) -> Result<(), Fault> {
    let pages = Pages::of(journal, id).await.or_exit(Exit::Failed)?;
    let mut pages = pages.ok_or_else(|| unknown(id)).or_exit(Exit::Failed)?;
    loop {
        let page = pages.next().await.or_exit(Exit::Failed)?;
        if page.is_empty() {
            return Ok(());
        }
        let lines: Vec<_> = page.iter().map(AgentEvent::to_json).collect();
        print_json(&lines.join("\n"))?;
    }
}

/// All or, if one is not there, none.
async fn rm(journal: &SqliteJournal, ids: &[String]) -> Result<(), Fault> {
    for id in ids {
        let known = journal.session(&(&**id).into()).await.or_exit(Exit::Failed)?;
        known.ok_or_else(|| unknown(id)).or_exit(Exit::Failed)?;
    }
    for id in ids {
        journal
            .delete(&(&**id).into())
            .await
            .with_context(|| format!("session {id}"))
            .or_exit(Exit::Failed)?;
    }
    Ok(())
}

fn on_server(remote: &Remote, args: &Sessions) -> Result<Exit, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    runtime.block_on(async {
        match &args.command {
            SessionsCommand::List { output } => {
                let mut listed = remote.get("/sessions").await.or_exit(Exit::Failed)?;
                match output {
                    Form::Json => json(&listed["items"].take())?,
                    Form::Text => {
                        let mut items = listed["items"].as_array().cloned().unwrap_or_default();
                        items.sort_by_cached_key(|item| Reverse(item["updated_at"].to_string()));
                        print(&table::text(HEADS, items.iter().map(row_of_server)))?;
                    }
                }
            }
            SessionsCommand::Show { id } => {
                let path = format!("/sessions/{}", escape(id));
                let session = remote.get(&path).await.or_exit(Exit::Failed)?;
                let fleet = remote.get(&format!("{path}/fleet")).await.or_exit(Exit::Failed)?;
                let fleet = serde_json::from_value(fleet).or_exit(Exit::Failed)?;
                show(row_of_server(&session), &fleet)?;
            }
            SessionsCommand::Export { id } => {
                let path = format!("/sessions/{}/events?follow=false", escape(id));
                let mut events = remote.events(path, 0);
                while let Some(event) = events.next().await.or_exit(Exit::Failed)? {
                    print_json(&event.to_json())?;
                }
            }
            SessionsCommand::Rm { ids } => {
                for id in ids {
                    remote.delete(&format!("/sessions/{}", escape(id))).await.or_exit(Exit::Failed)?;
                }
            }
        }
        Ok(Exit::Reply)
    })
}

fn row_of_server(session: &Value) -> [String; 5] {
    let text = |field: &str| session[field].as_str().unwrap_or_default().to_owned();
    let state = if session["active_run"].is_null() { "idle" } else { "running" };
    [
        text("id"),
        session["runs"].to_string(),
        session["last_seq"].to_string(),
        text("updated_at"),
        state.to_owned(),
    ]
}

fn unknown(id: &str) -> anyhow::Error {
    anyhow!("there is no session {id:?}; `mainstem sessions list` says which there are")
}
