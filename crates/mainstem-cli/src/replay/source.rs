//! Where recorded events come from: a file of lines, the journal, or a server.

use std::{
    collections::VecDeque,
    fs::File,
    io::{BufRead, BufReader, Lines},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use mainstem_event::AgentEvent;

use crate::{
    args::Replay,
    remote::{Events, Remote, escape},
    store::{self, Pages},
};

pub(super) enum Source {
    File { path: PathBuf, lines: Lines<BufReader<File>>, line: usize },
    Session { pages: Pages, page: VecDeque<AgentEvent> },
    Server(Events),
}

impl Source {
    /// The file of that name, or else the session; with a server, its session.
    ///
    /// # Errors
    /// There is neither, or it can't be opened.
    pub(super) async fn open(args: &Replay) -> anyhow::Result<Self> {
        if let Some(remote) = Remote::of(&args.at)? {
            return Ok(Self::Server(
                remote.events(format!("/sessions/{}/events?follow=false", escape(&args.what)), 0),
            ));
        }
        let path = Path::new(&args.what);
        if args.journal.is_none() && path.exists() {
            let file = File::open(path).with_context(|| path.display().to_string())?;
            return Ok(Self::File { path: path.to_owned(), lines: BufReader::new(file).lines(), line: 0 });
        }
        let journal = store::open(args.journal.as_deref())?;
        let what = &args.what;
        let pages = Pages::of(journal, what).await?.ok_or_else(|| {
            anyhow!(
                "there is no file {what:?}, and no session of that name; `mainstem sessions list` says which there are"
            )
        })?;
        Ok(Self::Session { pages, page: VecDeque::new() })
    }

    /// The next event.
    ///
    /// # Errors
    /// It can't be read; in a file with line and column.
    pub(super) async fn next(&mut self) -> anyhow::Result<Option<AgentEvent>> {
        match self {
            Self::File { path, lines, line } => next_line(path, lines, line),
            Self::Server(events) => events.next().await,
            Self::Session { pages, page } => {
                if page.is_empty() {
                    page.extend(pages.next().await?);
                }
                Ok(page.pop_front())
            }
        }
    }
}

fn next_line(
    path: &Path,
    lines: &mut Lines<BufReader<File>>,
    line: &mut usize,
) -> anyhow::Result<Option<AgentEvent>> {
    let place = |line: usize| format!("{}:{line}", path.display());
    for text in lines {
        *line += 1;
        let text = text.with_context(|| place(*line))?;
        if text.trim().is_empty() {
            continue;
        }
        let event = serde_json::from_str(&text);
        return event.map(Some).map_err(|error| {
            let (column, why) = (error.column(), error.to_string());
            let why = why.split(" at line ").next().unwrap_or_default();
            anyhow!("{}:{column}: not an event: {why}", place(*line))
        });
    }
    Ok(None)
}
