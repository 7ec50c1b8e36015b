//! `cargo deny`: bans, licences and sources always; advisories where their database can be reached.

use std::path::Path;

use anyhow::{Result, bail};

use crate::cargo::{cargo, has, run as exec};

const INSTALL: &str = "cargo-deny is not installed; `cargo install cargo-deny --locked`";

/// On a developer's machine the tool may be missing; `.ci/run` installs it.
pub(crate) fn run(root: &Path) -> Result<()> {
    if has(root, "deny") {
        exec(&mut cargo(root, &["deny", "--locked", "check", "bans", "licenses", "sources"]))?;
        return advisories(root);
    }
    if std::env::var_os("CI").is_some() {
        bail!(INSTALL);
    }
    println!("skipped: {INSTALL}");
    Ok(())
}

/// Checks known vulnerabilities, in a database that is fetched first. On a machine that can't reach
/// it, prints so and continues.
fn advisories(root: &Path) -> Result<()> {
    let fetched = cargo(root, &["deny", "fetch", "db"]).output()?;
    if !fetched.status.success() {
        let said = String::from_utf8_lossy(&fetched.stderr);
        let why = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
        println!("advisories NOT CHECKED: their database can't be reached: {}", why.trim());
        return Ok(());
    }
    exec(&mut cargo(root, &["deny", "--offline", "--locked", "check", "advisories"]))
}
