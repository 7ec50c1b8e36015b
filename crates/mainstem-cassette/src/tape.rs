//! An open tape: played exchanges, new ones, and errors.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use hyper::{HeaderMap, Method};
use mainstem_http::Url;

use super::{
    canonical::{Ignored, same},
    exchange::{Body, End, Exchange, TapeRequest, TapeResponse},
    format, headers, miss,
    secrets::Secrets,
};
use crate::CassetteError;

/// The exchanges, in the order of the tape.
pub(super) struct Tape {
    path: PathBuf,
    entries: Vec<Entry>,
    ignored: Ignored,
    secrets: Secrets,
    misses: Vec<String>,
    /// The first reason for which an exchange was not recorded.
    problem: Option<CassetteError>,
}

struct Entry {
    exchange: Exchange,
    state: State,
    /// The encoded line, valid while the number of known secrets stays the same.
    line: Option<(usize, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Played,
    /// The response is still coming.
    Open,
    Recorded,
    /// Discarded.
    Void,
}

impl Tape {
    /// Creates an empty tape.
    pub(super) fn new(path: PathBuf, ignored: Ignored, secrets: Secrets) -> Self {
        Self { path, entries: Vec::new(), ignored, secrets, misses: Vec::new(), problem: None }
    }

    /// Reads the file. Returns `false` if there is none.
    pub(super) fn load(&mut self) -> Result<bool, CassetteError> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(CassetteError::Read { path: self.path.clone(), source }),
        };
        for mut exchange in format::decode(&self.path, &text)? {
            self.ignored.canonical(&mut exchange.request);
            self.entries.push(Entry { exchange, state: State::Waiting, line: None });
        }
        Ok(true)
    }

    /// Returns a request in canonical form, without secrets.
    pub(super) fn tape_request(
        &mut self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: &[u8],
    ) -> TapeRequest {
        self.secrets.learn(headers, url);
        let query = url.query().map_or_else(String::new, |query| format!("?{query}"));
        let mut requested = TapeRequest {
            method: method.to_string(),
            path: format!("{}{query}", url.path()),
            headers: headers::of_request(headers),
            body: Body::of(body),
        };
        self.secrets.redact_request(&mut requested);
        self.ignored.canonical(&mut requested);
        requested
    }

    /// Returns the next response to a request that has not been played.
    pub(super) fn play(&mut self, requested: &TapeRequest) -> Option<TapeResponse> {
        let waits =
            |entry: &&mut Entry| entry.state == State::Waiting && same(&entry.exchange.request, requested);
        let entry = self.entries.iter_mut().find(waits)?;
        entry.state = State::Played;
        Some(entry.exchange.response.clone())
    }

    /// Records a request that has no response on the tape, and returns the message.
    pub(super) fn miss(&mut self, requested: &TapeRequest, why: &str) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy();
        let kept = self.entries.iter().enumerate().filter(|(_, entry)| entry.is_written());
        let recorded: Vec<_> =
            kept.map(|(index, entry)| (line(index), entry.request(&self.secrets))).collect();
        let sentence = format!("{}{why}", miss::sentence(&name, requested, &recorded));
        self.misses.push(sentence.clone());
        sentence
    }

    /// Adds a request; returns the index of its response.
    pub(super) fn begin(&mut self, requested: TapeRequest) -> usize {
        let exchange = Exchange { request: requested, response: TapeResponse::default() };
        self.entries.push(Entry { exchange, state: State::Open, line: None });
        self.entries.len() - 1
    }

    /// Returns the response at an index.
    pub(super) fn response(&mut self, index: usize) -> &mut TapeResponse {
        &mut self.entries[index].exchange.response
    }

    pub(super) fn end(&mut self, index: usize, end: End) {
        let entry = &mut self.entries[index];
        entry.exchange.response.end = end;
        entry.state = State::Recorded;
        self.save();
    }

    /// Discards an exchange.
    pub(super) fn void(&mut self, index: usize) {
        self.entries[index].state = State::Void;
    }

    /// Discards an exchange, and reports why at the end.
    pub(super) fn unfit(&mut self, index: Option<usize>, what: String) {
        index.into_iter().for_each(|index| self.void(index));
        self.fail(CassetteError::Unfit { path: self.path.clone(), what });
    }

    fn fail(&mut self, error: CassetteError) {
        self.problem.get_or_insert(error);
    }

    /// Writes the complete exchanges, if one is new.
    fn save(&mut self) {
        if let Err(error) = self.write() {
            self.fail(error);
        }
    }

    fn write(&mut self) -> Result<(), CassetteError> {
        let mut text = format::head();
        let kept = self.entries.iter_mut().filter(|entry| entry.is_written());
        for (index, entry) in kept.enumerate() {
            match entry.line(&self.secrets) {
                Some(line) => text.push_str(line),
                None => return Err(CassetteError::Secret { path: self.path.clone(), line: line(index) }),
            }
        }
        replace(&self.path, &text).map_err(|source| CassetteError::Write { path: self.path.clone(), source })
    }

    /// Ends the open responses. Fails if there was an error.
    pub(super) fn close(&mut self, may_leave_unused: bool) -> Result<(), CassetteError> {
        let is_open = |index: &usize| self.entries[*index].state == State::Open;
        let open: Vec<_> = (0..self.entries.len()).filter(is_open).collect();
        open.into_iter().for_each(|index| self.end(index, End::Left));
        if !self.misses.is_empty() {
            return Err(CassetteError::Missed { misses: std::mem::take(&mut self.misses) });
        }
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        let requests = self.unused();
        if may_leave_unused || requests.is_empty() {
            Ok(())
        } else {
            Err(CassetteError::Unused { path: self.path.clone(), requests })
        }
    }

    /// Returns the requests whose responses were not used.
    fn unused(&self) -> Vec<String> {
        let unused = self.entries.iter().enumerate().filter(|(_, entry)| entry.state == State::Waiting);
        unused
            .map(|(index, entry)| format!("{} (line {})", entry.exchange.request.line(), line(index)))
            .collect()
    }

    /// Returns the requests so far that were not on the tape.
    pub(super) fn misses(&self) -> &[String] {
        &self.misses
    }
}

impl Entry {
    /// Returns `true` if it is written to the tape.
    fn is_written(&self) -> bool {
        matches!(self.state, State::Waiting | State::Played | State::Recorded)
    }

    /// Returns the request without secrets.
    fn request(&self, secrets: &Secrets) -> TapeRequest {
        let mut request = self.exchange.request.clone();
        secrets.redact_request(&mut request);
        request
    }

    /// Returns the line to write, without secrets; `None` if some are left.
    fn line(&mut self, secrets: &Secrets) -> Option<&str> {
        if self.line.as_ref().is_none_or(|(known, _)| *known != secrets.len()) {
            let mut exchange = self.exchange.clone();
            exchange.request = self.request(secrets);
            secrets.redact_response(&mut exchange.response);
            let line = format::encode(&exchange);
            self.line = (!secrets.are_in(&exchange, &line)).then_some((secrets.len(), line));
        }
        self.line.as_ref().map(|(_, line)| &**line)
    }
}

/// Returns the number of an exchange's line, after the first.
fn line(index: usize) -> usize {
    index + 2
}

/// Replaces a file atomically.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let directory =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(directory)?;
    let mut file = new_file(directory)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}

/// Creates a file that others can read, as any file in a repository.
fn new_file(directory: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    builder.tempfile_in(directory)
}
