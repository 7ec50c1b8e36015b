//! Where recorded events come from: a file of lines, the journal, or a server.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, ensure};
use futures_util::{
    StreamExt, TryStreamExt,
    stream::{self, LocalBoxStream},
};
use mainstem::{
    api::{Code, Error, EventQuery},
    message::SessionId,
};
use mainstem_event::{AgentEvent, MAX_LINE_BYTES};

use crate::{
    args::Replay,
    exit::{Exit, Fault, OrExit},
    host,
    store::Access,
};

/// The byte order mark of UTF-8.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Recorded events, in order; an error is the last item.
pub(crate) type Source = LocalBoxStream<'static, anyhow::Result<AgentEvent>>;

/// Opens the file at that path, else the session with that id, on the server if one is given: then
/// only a path that looks like one is taken for a file.
///
/// # Errors
/// Neither exists, or it can't be opened.
pub(super) async fn open(args: &Replay) -> Result<Source, Fault> {
    let may_be_file = args.at.server.is_none() || is_record(&args.what);
    if may_be_file
        && args.journal.is_none()
        && let Some(events) = file(&args.what).or_exit(Exit::Usage)?
    {
        return Ok(events);
    }
    let host = host::open(&args.at, Access::Read, args.journal.as_ref())?;
    let id = SessionId::parse_scoped(&args.what)
        .map_err(|error| unknown(args, error.into()))
        .or_exit(Exit::Failed)?;
    let session = host.session(&id);
    // Reports an unknown session before the first frame.
    session.view().await.map_err(|error| unknown(args, error)).or_exit(Exit::Failed)?;
    Ok(session.events(EventQuery::stored()).map_err(anyhow::Error::from).boxed_local())
}

/// Returns `true` if this is a file, rather than the id of a session.
pub(crate) fn is_record(what: &str) -> bool {
    Path::new(what).is_file() && (what.contains(['.', '/', '\\']) || SessionId::parse_scoped(what).is_err())
        || Path::new(what).is_dir() && SessionId::parse_scoped(what).is_err()
}

/// Opens the file at a path; `None` if there is none.
///
/// # Errors
/// It can't be opened.
pub(crate) fn file(path: &str) -> anyhow::Result<Option<Source>> {
    let path = Path::new(path);
    if !path.exists() {
        return Ok(None);
    }
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let lines = Lines::new(path, BufReader::new(file), MAX_LINE_BYTES);
    let next = |mut lines: Lines<_>| async { Ok(lines.event()?.map(|event| (event, lines))) };
    Ok(Some(stream::try_unfold(lines, next).boxed_local()))
}

fn unknown(args: &Replay, error: Error) -> anyhow::Error {
    let is_unknown = error.has_code(&Code::NotFound) || error.has_code(&Code::BadId);
    if args.at.server.is_none() && is_unknown {
        let what = &args.what;
        return anyhow!(
            "there is no file {what:?}, and no session of that name; `mainstem sessions list` lists sessions"
        );
    }
    host::advised(error)
}

/// The lines of a file, a pipe or a device, which may be endless.
pub(super) struct Lines<R> {
    path: PathBuf,
    reader: R,
    /// Longest line, in bytes.
    max: usize,
    /// Number of the last line that was read, from 1.
    number: usize,
}

impl<R: BufRead> Lines<R> {
    fn new(path: &Path, reader: R, max: usize) -> Self {
        Self { path: path.to_owned(), reader, max, number: 0 }
    }

    /// Returns the event of the next line that is not blank; `None` at the end.
    ///
    /// # Errors
    /// A line is too long, not UTF-8, not an event, or can't be read; the error has the path and
    /// the number of the line.
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
        if self.number == 1 {
            self.skip_mark()?;
        }
        // One more byte, for the line feed of the longest line.
        self.reader.by_ref().take(self.max as u64 + 1).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let fits = bytes.len() <= self.max || bytes.ends_with(b"\n");
        ensure!(fits, "the line is longer than {} MiB", self.max >> 20);
        Ok(Some(String::from_utf8(bytes).context("the line is not UTF-8 text")?))
    }

    /// Skips the byte order mark that some editors write before the first line.
    fn skip_mark(&mut self) -> io::Result<()> {
        if self.reader.fill_buf()?.starts_with(MARK) {
            self.reader.consume(MARK.len());
        }
        Ok(())
    }

    fn place(&self) -> String {
        format!("{}:{}", self.path.display(), self.number)
    }
}

#[cfg(test)]
mod tests;
