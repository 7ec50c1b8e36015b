//! `mainstem sessions share`, `links` and `revoke`: the links of a server's sessions.

use std::time::Duration;

use mainstem::{
    api::{LinkView, NewLink, NewLinkView},
    client::{RemoteSession, Server},
    message::{LinkId, SessionId},
};
use reqwest::Url;
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

pub(super) async fn revoke(server: &Server, id: &SessionId, links: &[LinkId]) -> Result<(), Fault> {
    let session = session(server, id)?;
    for link in links {
        session.delete_link(link).await.advise().or_exit(Exit::Failed)?;
    }
    Ok(())
}

fn session(server: &Server, id: &SessionId) -> Result<RemoteSession, Fault> {
    server.open(id.clone()).advise().or_exit(Exit::Usage)
}

fn show(server: &Server, created: &NewLinkView, output: Form, terminal: Terminal) -> Result<(), Fault> {
    let NewLinkView { link, token, page } = created;
    let url = page.as_ref().and_then(|page| Url::parse(server.address()).ok()?.join(page).ok());
    if output == Form::Json {
        let mut value = json!(created);
        value["url"] = json!(url.map(String::from));
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
        "until {}; `mainstem sessions revoke {} {}` ends it earlier",
        link.expires_at, link.session_id, link.id
    );
    progress::say(&note, terminal);
    Ok(())
}

fn row(link: &LinkView) -> [String; 4] {
    let shows = link.through.map_or_else(|| "all events".to_owned(), |seq| format!("events to {seq}"));
    [link.id.to_string(), link.created_at.to_string(), link.expires_at.to_string(), shows]
}
