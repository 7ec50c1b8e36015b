//! `grep_files`: finds lines by a regular expression.

mod found;

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use mainstem_tool::{Tool, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use self::found::Found;
use super::glob_files::Pattern;
use crate::{
    Workspace, WorkspaceError, Workspaces,
    blocking::Stop,
    error::Written,
    path::Inside,
    text::shown,
    walk::{Failures, Kind, Walk},
    workspace::explain,
};

/// The default number of matches that are shown.
const MATCHES: usize = 200;

/// The maximum number of matches that are shown.
const MOST_MATCHES: usize = 2000;

/// The maximum number of lines around a match.
const CONTEXT: usize = 20;

/// The longest pattern, in bytes.
const PATTERN: usize = 16 << 10;

/// The size of the largest compiled pattern, and of the largest cache of its search, in bytes:
/// `\w{80}` fits, and the calls of a turn take some 100 MiB at most.
const COMPILED: usize = 4 << 20;

/// The longest line that is searched, in bytes.
const LINE: usize = 8 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GrepFiles {
    /// A regular expression (Rust's syntax) that is looked for in each line.
    pattern: String,
    /// The directory or file to look in, relative to the workspace. Default: the whole workspace.
    #[serde(default)]
    path: Option<String>,
    /// Look only in files that match this pattern, such as "*.rs" or "src/**/*.ts".
    #[serde(default)]
    glob: Option<String>,
    /// Whether upper and lower case are the same. Default false.
    #[serde(default)]
    case_insensitive: bool,
    /// How many lines before and after each match to show. Default 0, maximum 20.
    #[serde(default)]
    context: usize,
    /// How many matches to show. Default 200, maximum 2000.
    #[serde(default)]
    #[schemars(range(min = 1))]
    max: Option<usize>,
}

pub(super) fn tool(workspaces: Workspaces) -> Arc<dyn Tool> {
    let description = "Search the files of the workspace for lines that match a regular expression. The answer has path:line:text for a \
                       match and path-line-text for a line around it. Binary files and what .gitignore excludes are left out.";
    let tool = tool_fn("grep_files", description, move |cx, grep: GrepFiles| {
        let workspaces = workspaces.clone();
        async move { workspaces.work(&cx, move |workspace, stop| grep.run(workspace, stop)).await }
    });
    Arc::new(tool.with_read_only(true))
}

impl GrepFiles {
    fn run(self, workspace: &Workspace, stop: &Stop) -> Result<String, WorkspaceError> {
        let matcher = self.matcher()?;
        let glob = self.glob.as_deref().map(|glob| Pattern::new("glob", glob)).transpose()?;
        let max = self.max.unwrap_or(MATCHES).clamp(1, MOST_MATCHES);
        let mut search = Search {
            searcher: searcher(self.context.min(CONTEXT)),
            found: Found::new(&matcher, max),
            failures: Failures::default(),
            stop,
        };
        match self.file(workspace)? {
            Some(path) => search.file(&path.relative, workspace.open_file(&path)?, &path.written)?,
            None => search.below(workspace, workspace.directory(self.path.as_deref())?, glob.as_ref())?,
        }
        Ok(search.found.finish(search.failures))
    }

    fn matcher(&self) -> Result<RegexMatcher, WorkspaceError> {
        let wrong = |error: &dyn std::fmt::Display| {
            WorkspaceError::Refused(format!("pattern is no regular expression: {error}"))
        };
        if self.pattern.len() > PATTERN {
            let long = self.pattern.len();
            return Err(WorkspaceError::Refused(format!("pattern has {long} bytes, more than {PATTERN}")));
        }
        // The matcher wraps the pattern before it parses it, so that its errors point beside the
        // place.
        regex_syntax::parse(&self.pattern).map_err(|error| wrong(&error))?;
        RegexMatcherBuilder::new()
            .multi_line(true)
            .case_insensitive(self.case_insensitive)
            .crlf(true)
            .size_limit(COMPILED)
            .dfa_size_limit(COMPILED)
            .build(&self.pattern)
            .map_err(|error| match error.to_string() {
                large if large.contains("size limit") => WorkspaceError::Refused(format!(
                    "pattern is too large: compiled it takes more than {} MiB; repeat less often, or use smaller classes such as [a-z] for \\w",
                    COMPILED >> 20
                )),
                _ => wrong(&error),
            })
    }

    /// Returns the path, unless it is that of a directory.
    fn file(&self, workspace: &Workspace) -> Result<Option<Inside>, WorkspaceError> {
        let Some(path) = &self.path else { return Ok(None) };
        let path = workspace.path(path)?;
        let metadata = workspace.dir().metadata(&path.relative);
        let is_dir = metadata.map_err(|error| explain(&path.written, error))?.is_dir();
        Ok((!is_dir).then_some(path))
    }
}

fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .line_terminator(LineTerminator::crlf())
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .memory_map(MmapChoice::never())
        .heap_limit(Some(LINE))
        .build()
}

/// One search over many files.
struct Search<'a> {
    searcher: Searcher,
    found: Found<'a>,
    failures: Failures,
    stop: &'a Stop,
}

impl Search<'_> {
    fn below(
        &mut self,
        workspace: &Workspace,
        start: Inside,
        glob: Option<&Pattern>,
    ) -> Result<(), WorkspaceError> {
        let base: PathBuf = start.relative.clone();
        for entry in Walk::unignored(workspace, self.stop, start) {
            let path = match entry {
                Ok(entry) if entry.kind == Kind::File => entry.path,
                Ok(_) => continue,
                Err(error) => {
                    self.failures.add(error)?;
                    continue;
                }
            };
            if glob.is_some_and(|glob| !glob.matches(&path, &base)) {
                continue;
            }
            let inside = Inside { written: Written::new(shown(&path)), relative: path };
            match workspace.open_file(&inside) {
                Ok(file) => self.file(&inside.relative, file, &inside.written)?,
                Err(error) => self.failures.add(error)?,
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, file: fs::File, written: &Written) -> Result<(), WorkspaceError> {
        let mut matches = self.found.of_file(shown(path));
        let searched =
            self.searcher.search_reader(matches.matcher(), Watched { file, stop: self.stop }, &mut matches);
        self.stop.check()?;
        let Err(error) = searched else { return Ok(()) };
        self.failures.add(WorkspaceError::Unfit {
            path: written.clone(),
            why: format!("was not searched to its end: {error}"),
        })
    }
}

/// A file whose reading ends when the call is cancelled.
struct Watched<'a> {
    file: fs::File,
    stop: &'a Stop,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stop.check().map_err(io::Error::other)?;
        self.file.read(buffer)
    }
}

#[cfg(test)]
mod tests;
