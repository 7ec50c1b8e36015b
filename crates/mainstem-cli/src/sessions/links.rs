//! `mainstem sessions share`, `links` and `revoke`: the links of a server's sessions.

use anyhow::anyhow;
use mainstem::{
    api::{LinkView, NewLink, NewLinkView},
    client::{RemoteSession, Server},
};
use reqwest::Url;
use serde_json::json;

use crate::{
    args::{Form, LinkCommand},
    exit::{Exit, Fault, OrExit},
    host::{self, Advise},
    print::{json as print_json, print, print_table},
    progress,
    terminal::Terminal,
};

const HEADS: [&str; 4] = ["LINK", "CREATED", "UNTIL", "SHOWS"];

pub(super) fn run(server: Option<&str>, command: &LinkCommand, terminal: Terminal) -> Result<Exit, Fault> {
    let no_server = || anyhow!("links are of a server's sessions: name the server, with --server URL");
    let server = host::server(server).or_exit(Exit::Usage)?.ok_or_else(no_server).or_exit(Exit::Usage)?;
    let (LinkCommand::Share { id, .. } | LinkCommand::Links { id, .. } | LinkCommand::Revoke { id, .. }) =
        command;
    let session = server.open(id.clone()).advise().or_exit(Exit::Usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    runtime.block_on(answer(command, &server, &session, terminal))?;
    Ok(Exit::Reply)
}

async fn answer(
    command: &LinkCommand,
    server: &Server,
    session: &RemoteSession,
    terminal: Terminal,
) -> Result<(), Fault> {
    match command {
        LinkCommand::Share { lasts, through, output, .. } => {
            let link = NewLink { expires_in: Some(lasts.as_secs()), through: *through };
            let created = session.add_link(link).await.advise().or_exit(Exit::Failed)?;
            show(server, &created, *output, terminal)
        }
        LinkCommand::Links { output, .. } => {
            let links = session.links().await.advise().or_exit(Exit::Failed)?;
            match output {
                Form::Json => print_json(&json!(links)),
                Form::Text => print_table(HEADS, links.iter().map(row), "links"),
            }
        }
        LinkCommand::Revoke { links, .. } => {
            for link in links {
                session.delete_link(link).await.advise().or_exit(Exit::Failed)?;
            }
            Ok(())
        }
    }
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
