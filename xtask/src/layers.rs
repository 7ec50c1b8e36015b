//! The table of docs/layers.md: how many crates each layer brings, as `cargo tree` counts them.
//!
//! The column of times is measured by hand, and stays as it is.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result};

use crate::{
    cargo::{cargo, output},
    problem::{Problem, report},
};

/// The page, and the folder with a program over each layer.
const PAGE: &str = "docs/layers.md";
const FOLDER: &str = "tests/layers/";

/// Compares the counts of the page with the lock file.
pub(crate) fn run(root: &Path) -> Result<()> {
    let page = fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let mut problems = Vec::new();
    for layer in layers(&crate::tree::files(root)?) {
        let tree = cargo_tree(root, &layer)?;
        problems.extend(check(&page, &layer, count(&tree)));
    }
    report(&problems, "write the numbers into the table")
}

/// Returns the layers that a program uses alone.
fn layers(files: &[String]) -> Vec<String> {
    let names = files.iter().filter_map(|path| path.strip_prefix(FOLDER)?.strip_suffix("/Cargo.toml"));
    names.map(String::from).collect()
}

/// Returns the dependencies of a layer's crate, with its own default features and on Linux.
fn cargo_tree(root: &Path, layer: &str) -> Result<String> {
    let package = format!("mainstem-{layer}");
    let tree = ["tree", "--locked", "--edges", "normal", "--prefix", "none", "--package", &package];
    output(cargo(root, &tree).args(["--target", "x86_64-unknown-linux-gnu"]))
}

/// Returns the number of crates in a tree, itself included, each version once.
fn count(tree: &str) -> usize {
    let crates = tree.lines().map(|line| line.trim_end_matches(" (*)")).filter(|line| !line.is_empty());
    crates.collect::<BTreeSet<_>>().len()
}

/// Returns the row of a layer: name, crates, seconds.
fn check(page: &str, layer: &str, crates: usize) -> Option<Problem> {
    let start = format!("| `mainstem-{layer}` | ");
    let row = (1..).zip(page.lines()).find(|(_, line)| line.starts_with(&start));
    let Some((number, line)) = row else {
        return Some(Problem::file(PAGE, format!("mainstem-{layer} has no row; it brings {crates} crates")));
    };
    let written = line[start.len()..].split(' ').next();
    (written != Some(&crates.to_string()))
        .then(|| Problem::at(PAGE, number, format!("mainstem-{layer} brings {crates} crates")))
}

#[cfg(test)]
mod tests;
