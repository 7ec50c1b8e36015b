//! Where recorded events come from: a file of lines, the journal, or a server.

use std::{
    collections::VecDeque,
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, ensure};
use mainstem_event::{AgentEvent, MAX_LINE_BYTES};

use crate::{
    args::Replay,
    remote::{Events, Remote, escape},
    store::{self, Pages},
};

pub(super) enum Source {
    File(Lines<BufReader<File>>),
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
            return Ok(Self::File(Lines::new(path, BufReader::new(file), MAX_LINE_BYTES)));
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
            Self::File(lines) => lines.event(),
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

/// The lines of a file, a pipe or a device, which may have no end.
pub(super) struct Lines<R> {
    path: PathBuf,
    from: R,
    /// Longest line, in bytes.
    max: usize,
    /// Number of the last line that was read, from 1.
    number: usize,
}

impl<R: BufRead> Lines<R> {
    fn new(path: &Path, from: R, max: usize) -> Self {
        Self { path: path.to_owned(), from, max, number: 0 }
    }

    /// Returns the event of the next line that is not blank; `None` at the end.
    ///
    /// # Errors
    /// A line is too long, not UTF-8, not an event, or can't be read; the error has the path and the number of the line.
    fn event(&mut self) -> anyhow::Result<Option<AgentEvent>> {
        while let Some(text) = self.line().with_context(|| self.place())? {
            if text.trim().is_empty() {
                continue;
            }
            let event = serde_json::from_str(&text);
            return event.map(Some).map_err(|error| {
                let (column, why) = (error.column(), error.to_string());
                let why = why.split(" at line ").next().unwrap_or_default();
                anyhow!("{}:{column}: not an event: {why}", self.place())
            });
        }
        Ok(None)
    }

    fn line(&mut self) -> anyhow::Result<Option<String>> {
        self.number += 1;
        let mut bytes = Vec::new();
        // One more byte, so that the end of the longest line is seen.
        self.from.by_ref().take(self.max as u64 + 1).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let is_whole = bytes.len() <= self.max || bytes.ends_with(b"\n");
        ensure!(is_whole, "the line is longer than {} MiB", self.max >> 20);
        Ok(Some(String::from_utf8(bytes).context("the line is not UTF-8 text")?))
    }

    fn place(&self) -> String {
        format!("{}:{}", self.path.display(), self.number)
    }
}

#[cfg(test)]
mod tests;
