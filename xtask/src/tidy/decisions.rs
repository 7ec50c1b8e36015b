//! Decision files sort by number and say in their name what was decided:
//! `docs/decisions/0007-one-log.md`.

use crate::problem::Problem;

const FOLDER: &str = "docs/decisions/";

pub(super) fn check(files: &[String]) -> Vec<Problem> {
    let named = files.iter().filter_map(|path| Some((path, path.strip_prefix(FOLDER)?)));
    let misnamed = named.filter(|(_, name)| !is_decision(name));
    misnamed.map(|(path, _)| Problem::file(path, "a decision is named NNNN-title-in-lower-case.md")).collect()
}

fn is_decision(name: &str) -> bool {
    let Some((number, title)) = name.strip_suffix(".md").and_then(|stem| stem.split_once('-')) else {
        return false;
    };
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    number.len() == 4
        && number.chars().all(|c| c.is_ascii_digit())
        && !title.is_empty()
        && title.chars().all(word)
}

#[cfg(test)]
mod tests;
