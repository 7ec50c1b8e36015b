//! `cargo xtask versions`: the checker of many nodes, in which every second server is of the
//! version before the newest tables.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::{
    cargo::{cargo, output, program, run as exec},
    suite,
};

/// The changes of the tables, one file for each version.
const MIGRATIONS: &str = "crates/mainstem-postgres/migrations";

/// Names the program of every second server for the checker.
const NEIGHBOUR: &str = "MAINSTEM_NEIGHBOUR";

/// Builds the program of `commit`, or of the last commit before the newest tables, and runs the
/// checker with it.
pub(crate) fn run(root: &Path, commit: Option<&str>) -> Result<()> {
    let commit = match commit {
        Some(commit) => commit.to_owned(),
        None => before_newest_tables(root)?,
    };
    let commit = output(program(root, "git").args(["rev-parse", "--verify", &commit]))?;
    println!("every second server is that of {}", commit.trim());
    let neighbour = build(root, commit.trim())?;
    exec(suite::checker(root).env(NEIGHBOUR, neighbour))
}

/// Returns the parent of the commit that has added the newest migration.
fn before_newest_tables(root: &Path) -> Result<String> {
    let version = |name: &str| name.strip_prefix('V')?.split_once("__")?.0.parse::<u32>().ok();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root.join(MIGRATIONS)).context(MIGRATIONS)? {
        files.push(entry?.file_name().to_string_lossy().into_owned());
    }
    let newest = files.iter().max_by_key(|name| version(name)).context("there are no migrations")?;
    let path = format!("{MIGRATIONS}/{newest}");
    let added = ["log", "-1", "--format=%H^", "--diff-filter=A", "--", &path];
    let commit = output(program(root, "git").args(added))?;
    ensure!(!commit.trim().is_empty(), "git knows no commit that has added {path}");
    Ok(commit.trim().to_owned())
}

/// Builds a commit's server of the checker in a clone, below the target folder.
fn build(root: &Path, commit: &str) -> Result<PathBuf> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let (clone, target) = (tempfile::tempdir()?, target.join("neighbour"));
    exec(
        program(root, "git").args(["clone", "--quiet", "--shared", "--no-checkout", "."]).arg(clone.path()),
    )?;
    exec(program(clone.path(), "git").args(["checkout", "--quiet", "--detach"]).arg(commit))?;
    let build = ["build", "--locked", "-p", "mainstem-tests", "--bin", "node"];
    exec(cargo(clone.path(), &build).env("CARGO_TARGET_DIR", &target))?;
    Ok(target.join("debug/node"))
}
