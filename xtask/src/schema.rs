//! `cargo xtask schema`: docs/events.md, docs/limits.md, docs/schema/*.json and
//! crates/mainstem-spec/KEYS.md, written by the code itself. The binary `schema` of mainstem-tests
//! writes them below a folder; this compares or copies.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::built::Program;
use crate::cargo::{program, run as exec};
use crate::problem::{Problem, report};
use crate::tree;

/// A folder with generated files only, so that a stale one is noticed.
const OWNED: &str = "docs/schema/";

type Files = BTreeMap<String, Vec<u8>>;

pub(crate) fn run(root: &Path, check: bool) -> Result<()> {
    let fresh = generate(root)?;
    let kept = read(root, fresh.keys().cloned().chain(owned(root)?))?;
    if check {
        report(&compare(&fresh, &kept), "run `cargo xtask schema`")
    } else {
        write(root, &fresh, &kept)
    }
}

/// Returns the generated files.
fn generate(root: &Path) -> Result<Files> {
    let folder = tempfile::tempdir()?;
    let schema =
        Program { package: "tests", kind: "bin", name: "schema", by: ["--test", "it"] }.build(root)?;
    exec(program(root, schema).arg(folder.path()))?;
    let files = read(folder.path(), tree::files(folder.path())?)?;
    ensure!(!files.is_empty(), "the schema binary wrote no file");
    Ok(files)
}

/// Returns the generated files that the tree has.
fn owned(root: &Path) -> Result<Vec<String>> {
    let mut files = tree::files(root)?;
    files.retain(|path| path.starts_with(OWNED));
    Ok(files)
}

fn read(root: &Path, paths: impl IntoIterator<Item = String>) -> Result<Files> {
    let present = paths.into_iter().filter(|path| root.join(path).is_file());
    present.map(|path| Ok((path.clone(), fs::read(root.join(&path)).context(path)?))).collect()
}

/// Returns files that are missing, stale or different in `kept`.
fn compare(fresh: &Files, kept: &Files) -> Vec<Problem> {
    let paths: BTreeSet<_> = fresh.keys().chain(kept.keys()).collect();
    let differing = paths.into_iter().filter_map(|path| {
        let message = match (fresh.get(path), kept.get(path)) {
            (Some(_), None) => "is missing",
            (None, _) => "is generated no more",
            (Some(fresh), Some(kept)) if fresh != kept => "differs from what the types say",
            (Some(_), Some(_)) => return None,
        };
        Some(Problem::file(path, message))
    });
    differing.collect()
}

/// Makes the tree equal to `fresh`.
fn write(root: &Path, fresh: &Files, kept: &Files) -> Result<()> {
    for path in kept.keys().filter(|path| !fresh.contains_key(*path)) {
        fs::remove_file(root.join(path))?;
        println!("removed {path}");
    }
    for (path, bytes) in fresh.iter().filter(|(path, bytes)| kept.get(*path) != Some(bytes)) {
        let target = root.join(path);
        fs::create_dir_all(target.parent().unwrap_or(root))?;
        fs::write(&target, bytes).with_context(|| path.clone())?;
        println!("wrote {path}");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
