//! Each bound on the page of limits has a test.

use std::collections::BTreeSet;

use crate::problem::Problem;

pub(super) const FILE: &str = "docs/limits.md";

/// Returns the tests that rows of the page name and that no file has. `tests` are the names of all
/// functions.
pub(super) fn check(page: &str, functions: &BTreeSet<String>) -> Vec<Problem> {
    let rows = page.lines().enumerate().filter_map(|(number, line)| Some((number + 1, test_of(line)?)));
    let missing = rows.filter(|(_, test)| !functions.contains(*test));
    missing.map(|(line, test)| Problem::at(FILE, line, format!("there is no test `{test}`"))).collect()
}

/// Returns the test in the last cell of a row.
fn test_of(line: &str) -> Option<&str> {
    let cell = line.strip_prefix('|')?.strip_suffix('|')?.rsplit('|').next()?.trim();
    cell.strip_prefix('`')?.strip_suffix('`')
}

/// Returns the names of the functions of a Rust file.
pub(super) fn functions(text: &str) -> impl Iterator<Item = String> + '_ {
    let names = text.lines().filter_map(|line| line.trim_start().split_once("fn "));
    let names = names.filter(|(before, _)| matches!(before.trim_end(), "" | "async" | "pub" | "pub async"));
    names.filter_map(|(_, rest)| rest.split_once('(').map(|(name, _)| name.to_owned()))
}

#[cfg(test)]
mod tests;
