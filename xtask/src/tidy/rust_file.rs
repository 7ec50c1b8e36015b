//! What every Rust file keeps: it says what it is for, stays short, and holds no unfinished work.

use crate::problem::Problem;

/// Lines of a file that isn't a test. Functions are clippy's: `too_many_lines`.
const MAX_LINES: usize = 500;

/// How a library begins whose README says what it is for.
const README: &str = r#"#![doc = include_str!("../README.md")]"#;

/// Marks of unfinished work, in two halves so that this file doesn't hold them.
const MARKS: [&str; 5] = [
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("#[", "ignore"),
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
];

pub(super) fn check(path: &str, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut file = |message: String| problems.push(Problem::file(path, message));
    if path.ends_with("/mod.rs") {
        file("a module `foo` is `foo.rs`, beside the folder `foo/`".into());
    }
    if !text.starts_with("//! ") && !text.starts_with(README) {
        file("the first line says what the file is for: `//! …`".into());
    }
    let lines = text.lines().count();
    if lines > MAX_LINES && !is_test(path) {
        file(format!("{lines} lines; split it, {MAX_LINES} is the limit"));
    }
    problems.extend(marks(path, text));
    problems
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.split('/').any(|folder| folder == "tests")
}

fn marks(path: &str, text: &str) -> Vec<Problem> {
    let found = text.lines().enumerate().flat_map(|(index, line)| {
        let marks = MARKS.iter().filter(move |mark| has_word(line, mark));
        marks.map(move |mark| Problem::at(path, index + 1, format!("unfinished: `{mark}`")))
    });
    found.collect()
}

/// Returns `true` if `mark` stands in `line` and is not part of a longer word.
fn has_word(line: &str, mark: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(mark).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + mark.len()..]);
        !before.ends_with(is_word) && (mark.ends_with('(') || !after.starts_with(is_word))
    })
}

#[cfg(test)]
mod tests;
