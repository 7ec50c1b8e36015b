//! The words of the tree: forms that the glossary of CONTRIBUTING.md replaces, and the width of
//! comments.
//!
//! What was there before the rule is counted for each folder in `words/left.txt`. The numbers only
//! fall: a line more is a problem, and so is a number that is too high.

use std::collections::BTreeMap;

use crate::problem::Problem;

/// Where the numbers are.
const FILE: &str = "xtask/src/tidy/words/left.txt";

/// The numbers: a folder, its lines with a banned form, its public names with a banned word, its
/// comment lines that are too long.
const LEFT: &str = include_str!("words/left.txt");

/// The widest comment line, in columns.
const WIDTH: usize = 100;

/// People where values are meant, pictures where a term of the field is.
const FORMS: [&str; 12] = [
    concat!("nob", "ody"),
    concat!("someb", "ody"),
    concat!("everyb", "ody"),
    concat!("who", "ever"),
    concat!("at ", "work"),
    concat!("for ", "ever"),
    concat!("any ", "more"),
    concat!("says ", "no"),
    concat!("is ", "wanted"),
    concat!("are ", "wanted"),
    concat!("is ", "asked for"),
    concat!("hears ", "of"),
];

/// Words that no public name has: the column "not" of the glossary, and names of scenes.
const NAMES: [&str; 12] = [
    "crew", "people", "offer", "clerk", "keeper", "kept", "audience", "attend", "seldom", "said", "once",
    "whom",
];

/// What a folder has of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    forms: usize,
    names: usize,
    wide: usize,
}

/// The counts of all folders.
#[derive(Debug, Default)]
pub(super) struct Words {
    counts: BTreeMap<String, Count>,
    /// The last place of each kind in a folder, which a problem names.
    places: BTreeMap<(String, &'static str), (String, usize)>,
}

impl Words {
    pub(super) fn add(&mut self, path: &str, text: &str) {
        let folder = folder_of(path);
        for (index, line) in text.lines().enumerate() {
            let count = self.counts.entry(folder.clone()).or_default();
            let mut found = |kind: &'static str, number: &mut usize| {
                *number += 1;
                self.places.insert((folder.clone(), kind), (path.to_owned(), index + 1));
            };
            if has_form(line) {
                found("form", &mut count.forms);
            }
            if public_name(line).is_some_and(has_banned_word) {
                found("name", &mut count.names);
            }
            if is_wide(line) {
                found("wide", &mut count.wide);
            }
        }
    }

    /// Compares the counts with the file.
    pub(super) fn check(&self) -> Vec<Problem> {
        self.compare(&parse(LEFT))
    }

    fn compare(&self, left: &BTreeMap<String, Count>) -> Vec<Problem> {
        let mut problems = Vec::new();
        for folder in self.counts.keys().chain(left.keys()).collect::<std::collections::BTreeSet<_>>() {
            let has = self.counts.get(folder).copied().unwrap_or_default();
            let may = left.get(folder).copied().unwrap_or_default();
            for (kind, what, has, may) in [
                ("form", "lines with a form that the glossary replaces", has.forms, may.forms),
                ("name", "public names with a word that the glossary replaces", has.names, may.names),
                ("wide", "comment lines of more than 100 columns", has.wide, may.wide),
            ] {
                if has > may {
                    let (path, line) = self.places.get(&(folder.clone(), kind)).cloned().unwrap_or_default();
                    let message = format!("{folder} has {has} {what}, and had {may}; the last is here");
                    problems.push(Problem::at(path, line, message));
                } else if has < may {
                    let message = format!("{folder} has {has} {what} left; lower the number from {may}");
                    problems.push(Problem::file(FILE, message));
                }
            }
        }
        problems
    }
}

/// `crates/mainstem-event`, `xtask`, `tests`.
fn folder_of(path: &str) -> String {
    let parts = path.split('/').take(if path.starts_with("crates/") { 2 } else { 1 });
    parts.collect::<Vec<_>>().join("/")
}

fn has_form(line: &str) -> bool {
    let line = line.to_lowercase();
    FORMS.iter().any(|form| {
        line.match_indices(form).any(|(at, _)| {
            let is_letter = |c: char| c.is_alphanumeric() || c == '_';
            !line[..at].ends_with(is_letter) && !line[at + form.len()..].starts_with(is_letter)
        })
    })
}

/// Returns the name that a line declares for others.
fn public_name(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = rest.trim_start_matches("async ").trim_start_matches("const ");
    let (kind, rest) = rest.split_once(' ')?;
    let is_declared = ["fn", "struct", "enum", "trait", "type", "mod"].contains(&kind);
    is_declared.then(|| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default())
}

/// Returns `true` if a part of a name, in snake or camel case, is a banned word.
fn has_banned_word(name: &str) -> bool {
    let mut parts = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| c != '_') {
            part.extend(c.to_lowercase());
        }
    }
    parts.iter().any(|part| NAMES.contains(&part.as_str()))
}

/// Whether a comment line is too long. The target of a link has one line, however long.
fn is_wide(line: &str) -> bool {
    let comment = line.trim_start().strip_prefix("//");
    let is_link =
        |text: &str| text.trim_start_matches(['/', '!', ' ']).starts_with('[') && text.contains("]: ");
    line.chars().count() > WIDTH && comment.is_some_and(|text| !is_link(text))
}

fn parse(text: &str) -> BTreeMap<String, Count> {
    let rows = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut fields = line.split_whitespace();
        let folder = fields.next()?.to_owned();
        let mut number = || fields.next()?.parse().ok();
        Some((folder, Count { forms: number()?, names: number()?, wide: number()? }))
    });
    rows.collect()
}

#[cfg(test)]
mod tests;
