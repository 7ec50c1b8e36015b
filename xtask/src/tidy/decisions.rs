//! Decision files sort by number and have the decision in their name:
//! `docs/decisions/0007-one-log.md`. They cite pages of this repository only.

use crate::problem::Problem;

const FOLDER: &str = "docs/decisions/";

pub(super) fn check(files: &[String]) -> Vec<Problem> {
    let named = files.iter().filter_map(|path| Some((path, path.strip_prefix(FOLDER)?)));
    let misnamed = named.filter(|(_, name)| !is_decision(name));
    misnamed.map(|(path, _)| Problem::file(path, "a decision is named NNNN-title-in-lower-case.md")).collect()
}

/// Checks the pages that a decision cites: each is a file of this repository.
pub(super) fn cited(path: &str, text: &str, files: &[String]) -> Vec<Problem> {
    let is_here = |page: &str| files.iter().any(|file| file.rsplit('/').next() == page.rsplit('/').next());
    let problem = |(line, page)| Problem::at(path, line, format!("{page} is not a page of this repository"));
    pages(text).filter(|(_, page)| !is_here(page)).map(problem).collect()
}

/// Returns `true` if a file is a decision.
pub(super) fn is_in_folder(path: &str) -> bool {
    path.starts_with(FOLDER)
}

/// The names of pages in a text, each with its line.
fn pages(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    text.lines().enumerate().flat_map(move |(index, line)| {
        let words = line.split(move |c| !is_word(c)).map(|word| word.trim_end_matches('.'));
        words.filter(|word| word.ends_with(".md")).map(move |word| (index + 1, word))
    })
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
