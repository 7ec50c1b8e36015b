//! `mainstem sessions share`, `links` and `revoke`: the links of a server's sessions.

use std::time::Duration;

use mainstem::{
    api::{LinkView, NewLink, NewLinkView},
    client::{RemoteSession, Server},
    message::{LinkId, SessionId},
};
use serde_json::json;

use crate::{
    args::Form,
    exit::{Exit, Fault, OrExit},
    host::Advise,
    print::{json as print_json, print, print_table},
    progress,
    terminal::Terminal,
};

const HEADS: [&str; 4] = ["LINK", "CREATED", "UNTIL", "SHOWS"];

/// Creates a link, and prints its address.
pub(super) async fn share(
    server: &Server,
    id: &SessionId,
    lasts: Duration,
    through: Option<u64>,
    output: Form,
    terminal: Terminal,
) -> Result<(), Fault> {
    let link = NewLink { expires_in: Some(lasts.as_secs()), through };
    let created = session(server, id)?.add_link(link).await.advise().or_exit(Exit::Failed)?;
    show(server, &created, output, terminal)
}

pub(super) async fn list(server: &Server, id: &SessionId, output: Form) -> Result<(), Fault> {
    let links = session(server, id)?.links().await.advise().or_exit(Exit::Failed)?;
    match output {
        Form::Json => print_json(&json!(links)),
        Form::Text => print_table(HEADS, links.iter().map(row), "links"),
    }
}

/// Revokes links; one that can't be revoked does not keep the others.
pub(super) async fn revoke(
    server: &Server,
    id: &SessionId,
    links: &[LinkId],
    terminal: Terminal,
) -> Result<(), Fault> {
    let session = session(server, id)?;
    let mut failures = Vec::new();
    for link in links {
        failures.extend(session.delete_link(link).await.advise().err());
    }
    let mut failures = failures.into_iter();
    let Some(first) = failures.next() else { return Ok(()) };
    failures.for_each(|failure| progress::say(&format!("{failure:#}"), terminal));
    Err(first).or_exit(Exit::Failed)
}

fn session(server: &Server, id: &SessionId) -> Result<RemoteSession, Fault> {
    server.open(id.clone()).advise().or_exit(Exit::Usage)
}

fn show(server: &Server, created: &NewLinkView, output: Form, terminal: Terminal) -> Result<(), Fault> {
    let NewLinkView { link, token, page } = created;
    // The server may be behind a proxy with a path of its own.
    let fragment = page.as_ref().and_then(|page| page.split_once('#'));
    let url = fragment.map(|(_, fragment)| format!("{}/#{fragment}", server.address().trim_end_matches('/')));
    if output == Form::Json {
        let mut value = json!(created);
        value["url"] = json!(url);
        return print_json(&value);
    }
    match &url {
        Some(url) => print(&format!("{url}\n"))?,
        None => {
            progress::say("the server has no page, so this is a token, for requests to the server", terminal);
            print(&format!("{token}\n"))?;
        }
    }
    let note = format!(
        "until {}; `mainstem sessions revoke {} {} --server {}` ends it earlier",
        link.expires_at,
        link.session_id,
        link.id,
        server.address()
    );
    progress::say(&note, terminal);
    Ok(())
}

fn row(link: &LinkView) -> [String; 4] {
    let shows = link.through.map_or_else(|| "all events".to_owned(), |seq| format!("events to {seq}"));
    [link.id.to_string(), link.created_at.to_string(), link.expires_at.to_string(), shows]
}
