//! ARCHITECTURE.md names every crate in one line, after the crates that it depends on.
//!
//! Its list of crates has one item per crate, in one line:
//!
//! ```text
//! - **mainstem-event** — the kinds of events, the session log, sinks, cursors
//! ```
//!
//! Anywhere in this file and in docs/changes.md, `mainstem-x` is a crate, and a path that begins
//! with the name of a folder at the top or with a crate's name exists. Modules are described where
//! they are: `rust_file` checks that every file begins with `//!`.

use std::collections::BTreeMap;

use super::packages::Package;
use crate::problem::Problem;

pub(super) const FILE: &str = "ARCHITECTURE.md";

/// The page that says which files a change touches.
pub(super) const CHANGES: &str = "docs/changes.md";

/// The folders whose paths are checked.
const TOPS: [&str; 5] = ["crates/", "docs/", "fuzz/", "tests/", "xtask/"];

pub(super) fn check(text: &str, packages: &[Package], files: &[String]) -> Vec<Problem> {
    let mut problems = names(FILE, text, packages, files);
    let items = items(text);
    problems.extend(long_items(text));
    for package in packages.iter().filter(|package| package.folder.starts_with("crates/")) {
        match items.get(package.name.as_str()) {
            Some(&line) => problems.extend(order(package, line, &items)),
            None => {
                let message = format!("the list of crates has no item `- **{}** …`", package.name);
                problems.push(Problem::file(FILE, message));
            }
        }
    }
    problems
}

/// Crates and paths that the text of a page names and the tree doesn't have.
pub(super) fn names(page: &str, text: &str, packages: &[Package], files: &[String]) -> Vec<Problem> {
    let objection = |word: &str| {
        if TOPS.iter().any(|top| word.starts_with(top)) {
            return (!is_path(word, files)).then(|| format!("{word} doesn't exist"));
        }
        let name = word.split(['/', '.']).next().filter(|name| name.starts_with("mainstem-"))?;
        let Some(package) = packages.iter().find(|package| package.name == name) else {
            return Some(format!("there is no crate {name}"));
        };
        let path = format!("{}{}", package.folder, word.strip_prefix(name)?);
        (!is_path(&path, files)).then(|| format!("{path} doesn't exist"))
    };
    words(text).filter_map(|(line, word)| Some(Problem::at(page, line, objection(word)?))).collect()
}

/// Returns `true` if `path` is one of `files` or a folder of one.
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

/// Returns the crate that a line of the list is about.
fn item(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("- **")?.split_once("**")?;
    Some(name)
}

/// Returns the crates of the list, each with its line.
fn items(text: &str) -> BTreeMap<&str, usize> {
    text.lines().enumerate().filter_map(|(index, line)| Some((item(line)?, index + 1))).collect()
}

/// Items that go on in a second line.
fn long_items(text: &str) -> impl Iterator<Item = Problem> {
    let pairs = text.lines().zip(text.lines().skip(1)).enumerate();
    pairs.filter_map(|(index, (line, next))| {
        let name = item(line).filter(|_| next.starts_with(' '))?;
        let message = format!("{name} has more than one line; describe its modules in their files");
        Some(Problem::at(FILE, index + 2, message))
    })
}

/// Dependencies of a crate that the list names below it.
fn order(package: &Package, line: usize, items: &BTreeMap<&str, usize>) -> Vec<Problem> {
    let normal = package.dependencies.iter().filter(|to| to.kind.is_none());
    let below = normal.filter(|to| items.get(to.name.as_str()).is_some_and(|&at| at > line));
    let message = |to: &str| format!("{} depends on {to}, which is below it", package.name);
    below.map(|to| Problem::at(FILE, line, message(&to.name))).collect()
}

#[cfg(test)]
mod tests;
