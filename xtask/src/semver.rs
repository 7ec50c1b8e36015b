//! `cargo xtask semver`: each published library, compared with the latest release by
//! cargo-semver-checks. A release is a tag `v*`; before the first one, the step passes.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{
    cargo::{cargo, has, program, run as exec},
    public_api::libraries,
};

/// Compares with `baseline`, or with the latest release.
pub(crate) fn run(root: &Path, baseline: Option<&str>) -> Result<()> {
    let baseline = match baseline {
        Some(baseline) => baseline.to_owned(),
        None => match latest_release(root)? {
            Some(tag) => tag,
            None => {
                println!("no release yet: no tag `v*` to compare with");
                return Ok(());
            }
        },
    };
    ensure!(
        has(root, "semver-checks"),
        "cargo-semver-checks is not installed; run `cargo install cargo-semver-checks --locked`"
    );
    let mut check = cargo(root, &["semver-checks", "--baseline-rev", &baseline]);
    for library in libraries(root)? {
        let manifest = format!("{baseline}:crates/{library}/Cargo.toml");
        // A library that the release did not have broke no promise.
        if git(root, &["cat-file", "-e", &manifest])?.is_some() {
            check.args(["--package", &library]);
        }
    }
    exec(&mut check).with_context(|| format!("the interface of {baseline} is broken; raise the version"))
}

/// Returns the latest tag `v*` that this commit descends from.
fn latest_release(root: &Path) -> Result<Option<String>> {
    let tag = git(root, &["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"])?;
    Ok(tag.map(|tag| tag.trim().to_owned()))
}

/// Returns what git prints, or `None` if it fails.
fn git(root: &Path, args: &[&str]) -> Result<Option<String>> {
    let output = program(root, "git").args(args).output().context("cannot start git")?;
    Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
}

#[cfg(test)]
mod tests;
