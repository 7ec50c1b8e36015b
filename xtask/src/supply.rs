//! `cargo xtask supply`: which foreign crates run code while ours are compiled (build scripts and
//! procedural macros), in which version, compared with the list in the tree. A crate that is new or
//! has changed is read before it is put on the list.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::cargo::{cargo, output};
use crate::problem::{Problem, report};

/// The list: kind, name and version, sorted.
const LIST: &str = "docs/supply/compile-time.txt";

const HEAD: &str = "\
# Foreign crates that run code on the machine that compiles: `cargo xtask supply` compares, `--accept` writes.
# Before you accept a line, read the crate's build script or macro in that version (`cargo vendor`, or docs.rs/crate/NAME/VERSION/source).
";

/// Cargo's answer, as far as it matters here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    /// None for a crate of the tree.
    source: Option<String>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

pub(crate) fn run(root: &Path, accept: bool) -> Result<()> {
    let json = output(&mut cargo(root, &["metadata", "--locked", "--format-version", "1"]))?;
    let running = running(&json)?;
    if accept {
        fs::create_dir_all(root.join("docs/supply"))?;
        let lines: String = running.iter().map(|line| format!("{line}\n")).collect();
        return fs::write(root.join(LIST), format!("{HEAD}{lines}")).context(LIST);
    }
    let list = fs::read_to_string(root.join(LIST)).unwrap_or_default();
    report(&compare(&running, &list), "read what is new, then `cargo xtask supply --accept`")
}

/// Returns the foreign crates that run code while others are compiled, one a line.
fn running(metadata: &str) -> Result<BTreeSet<String>> {
    let metadata: Metadata = serde_json::from_str(metadata).context("cannot read cargo metadata")?;
    let foreign = metadata.packages.into_iter().filter(|package| package.source.is_some());
    Ok(foreign.flat_map(|package| lines(&package)).collect())
}

fn lines(package: &Package) -> Vec<String> {
    let kinds = package.targets.iter().flat_map(|target| &target.kind);
    let name = |kind: &String| match kind.as_str() {
        "custom-build" => Some("build-script"),
        "proc-macro" => Some("proc-macro"),
        _ => None,
    };
    kinds.filter_map(name).map(|kind| format!("{kind} {} {}", package.name, package.version)).collect()
}

fn compare(running: &BTreeSet<String>, list: &str) -> Vec<Problem> {
    let listed = || (1..).zip(list.lines()).filter(|(_, line)| !line.starts_with('#'));
    let known: BTreeSet<_> = listed().map(|(_, line)| line).collect();
    let new = running.iter().filter(|line| !known.contains(line.as_str()));
    let new =
        new.map(|line| Problem::file(LIST, format!("`{line}` runs while we compile, and is not listed")));
    let gone = listed().filter(|(_, line)| !running.contains(*line));
    new.chain(gone.map(|(at, line)| Problem::at(LIST, at, format!("`{line}` is no longer compiled"))))
        .collect()
}

#[cfg(test)]
mod tests;
