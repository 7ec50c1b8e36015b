//! ARCHITECTURE.md names the crates and modules that exist, and all of them.
//!
//! Its code map has one list item per crate:
//!
//! ```text
//! - **mainstem-event** — what happened: `source`, `kind` (the thirty of them),
//!   `session_log` is the one place that orders.
//! ```
//!
//! An item begins with `- **crate**` at the left margin and goes on in the indented lines below it.
//! A lower-case word in backticks there is a module `src/<word>.rs`; other code is written as
//! `EventSink`, `emit()` or `a::b`. Anywhere in the file, `mainstem-x` is a crate, and a path that
//! begins with `crates/`, `tests/` or `xtask/` exists.

use std::collections::BTreeMap;

use super::packages::Package;
use crate::problem::Problem;

pub(super) const FILE: &str = "ARCHITECTURE.md";

/// Files of `src/` that the code map need not name.
const UNLISTED: [&str; 3] = ["lib", "main", "tests"];

pub(super) fn check(text: &str, packages: &[Package], files: &[String]) -> Vec<Problem> {
    let mut problems = names(text, packages, files);
    let entries = entries(text);
    for package in packages {
        let name = package.name.as_str();
        match entries.get(name) {
            Some(entry) => problems.extend(entry.check(package, &modules(package, files))),
            None if package.folder.starts_with("crates/") => {
                problems.push(Problem::file(FILE, format!("the code map has no item `- **{name}** …`")));
            }
            None => (),
        }
    }
    problems
}

/// Crates and paths that the text names and the tree doesn't have.
fn names(text: &str, packages: &[Package], files: &[String]) -> Vec<Problem> {
    let objection = |word: &str| {
        if ["crates/", "tests/", "xtask/"].iter().any(|top| word.starts_with(top)) {
            return (!is_path(word, files)).then(|| format!("{word} doesn't exist"));
        }
        let name = word.split(['/', '.']).next()?;
        let is_gone = name.starts_with("mainstem-") && packages.iter().all(|package| package.name != name);
        is_gone.then(|| format!("there is no crate {name}"))
    };
    words(text).filter_map(|(line, word)| Some(Problem::at(FILE, line, objection(word)?))).collect()
}

/// Whether `path` is one of `files` or a folder of one.
fn is_path(path: &str, files: &[String]) -> bool {
    let folder = format!("{}/", path.trim_end_matches('/'));
    files.iter().any(|file| file == path || file.starts_with(&folder))
}

/// Everything that could be a name or a path, with its line.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    text.lines().enumerate().flat_map(move |(index, line)| {
        line.split(move |c| !is_word(c)).map(move |word| (index + 1, word.trim_end_matches(['.', '-'])))
    })
}

/// A crate's item in the code map.
#[derive(Default)]
struct Entry<'a> {
    line: usize,
    /// Module names, each with its line.
    modules: BTreeMap<&'a str, usize>,
}

fn entries(text: &str) -> BTreeMap<&str, Entry<'_>> {
    let mut entries = BTreeMap::<_, Entry<'_>>::new();
    let mut current = None;
    for (index, line) in text.lines().enumerate() {
        if let Some((name, _)) = line.strip_prefix("- **").and_then(|rest| rest.split_once("**")) {
            current = Some(name);
            entries.entry(name).or_default().line = index + 1;
        } else if !line.starts_with(' ') {
            current = None;
        }
        if let Some(name) = current {
            let modules = line.split('`').skip(1).step_by(2).filter(|code| is_module(code));
            entries.entry(name).or_default().modules.extend(modules.map(|module| (module, index + 1)));
        }
    }
    entries
}

fn is_module(code: &str) -> bool {
    let is_word = code.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    is_word && !code.is_empty() && !UNLISTED.contains(&code)
}

impl Entry<'_> {
    fn check(&self, package: &Package, modules: &[&str]) -> Vec<Problem> {
        let (name, folder) = (&package.name, &package.folder);
        let gone = self.modules.iter().filter(|(module, _)| !modules.contains(module));
        let gone = gone.map(|(module, line)| {
            Problem::at(FILE, *line, format!("{name} has no module `{module}` ({folder}/src/{module}.rs)"))
        });
        let unnamed = modules.iter().filter(|module| !self.modules.contains_key(*module));
        let unnamed = unnamed
            .map(|module| Problem::at(FILE, self.line, format!("{name} has a module `{module}`; name it")));
        gone.chain(unnamed).collect()
    }
}

/// The names of `src/*.rs`, without those that every crate has.
fn modules<'a>(package: &Package, files: &'a [String]) -> Vec<&'a str> {
    let source = format!("{}/src/", package.folder);
    let names = files.iter().filter_map(|path| path.strip_prefix(&source)?.strip_suffix(".rs"));
    names.filter(|name| !name.contains('/') && !UNLISTED.contains(name)).collect()
}

#[cfg(test)]
mod tests;
