//! The items of foreign crates in public signatures: a change of such a crate's major version is a
//! change of ours.

use std::collections::{BTreeMap, BTreeSet};

/// Crates that come with the compiler.
const STANDARD: [&str; 3] = ["core", "alloc", "std"];

const HEAD: &str = "\
# Foreign items in public signatures

<!-- written by `cargo xtask public-api --accept`; do not edit -->

A new major version of one of these crates is a breaking change of the libraries beside it.

";

/// Returns the page: the foreign crates, their items, and the libraries that show them.
pub(super) fn page(listings: &BTreeMap<String, Vec<String>>) -> String {
    let mut crates: BTreeMap<&str, (BTreeSet<&str>, BTreeSet<&str>)> = BTreeMap::new();
    for (library, items) in listings {
        for path in items.iter().flat_map(|item| paths(item)) {
            let Some(name) = foreign(path, library) else { continue };
            let (items, libraries) = crates.entry(name).or_default();
            items.insert(path);
            libraries.insert(library);
        }
    }
    let list =
        |names: &BTreeSet<&str>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let row = |(name, (items, libraries)): (&&str, &(BTreeSet<&str>, BTreeSet<&str>))| {
        format!("| `{name}` | {} | {} |\n", list(items), list(libraries))
    };
    let rows: String = crates.iter().map(row).collect();
    format!("{HEAD}| crate | items | libraries |\n|---|---|---|\n{rows}")
}

/// Returns the crate of a path, if it is neither ours nor the compiler's.
fn foreign<'a>(path: &'a str, library: &str) -> Option<&'a str> {
    let name = path.split("::").next()?;
    let is_ours = name.starts_with("mainstem") || name == library;
    (!is_ours && !STANDARD.contains(&name)).then_some(name)
}

/// Returns the paths in an item: names joined by `::` that begin with a crate.
fn paths(item: &str) -> impl Iterator<Item = &str> {
    let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = item.split(move |c| !is_of_path(c)).map(|word| word.trim_end_matches(':'));
    words.filter(|word| word.contains("::") && word.starts_with(|c: char| c.is_lowercase()))
}
