//! Required and forbidden parts of a package.

use std::{collections::BTreeMap, path::Path};

use super::manifest::Manifest;
use crate::problem::Problem;

/// The files of every package.
const REQUIRED: [&str; 4] = ["Cargo.toml", "README.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// The largest package as it is uploaded; crates.io takes 10 MiB.
const MAX_BYTES: u64 = 256 * 1024;

/// Keywords that crates.io takes.
const MAX_KEYWORDS: usize = 5;

/// Releases between the toolchain of the workspace and the oldest one that its crates compile with.
const RELEASES_BEHIND: u32 = 2;

/// A package, as it would be uploaded.
#[derive(Default)]
pub(super) struct Package {
    /// Its folder, from the root.
    pub(super) folder: String,
    pub(super) manifest: Manifest,
    /// The size of the archive.
    pub(super) bytes: u64,
    /// Paths in the package, each with the text of the file.
    pub(super) files: BTreeMap<String, String>,
}

pub(super) fn check(package: &Package, toolchain: &str) -> Vec<Problem> {
    let mut problems = contents(package);
    problems.extend(readme(package));
    problems.extend(metadata(package, toolchain));
    problems.extend(includes(package));
    problems
}

fn contents(package: &Package) -> Vec<Problem> {
    let missing = REQUIRED.iter().filter(|name| !package.files.contains_key(**name));
    let missing = missing.map(|name| package.problem(format!("the package has no {name}")));
    let is_test = |file: &&String| file.starts_with("tests/") || file.ends_with(".snap");
    let tests = package.files.keys().filter(is_test);
    let tests = tests.map(|file| {
        package.problem(format!("the package has {file}, which only the tests of the workspace read"))
    });
    let size = (package.bytes > MAX_BYTES).then(|| {
        package.problem(format!(
            "the package has {} KiB; {} are the limit",
            package.bytes / 1024,
            MAX_BYTES / 1024
        ))
    });
    missing.chain(tests).chain(size).collect()
}

/// Checks that a library's docs begin with its README, so that its example is a test.
fn readme(package: &Package) -> Vec<Problem> {
    let Some(library) = package.files.get("src/lib.rs") else { return Vec::new() };
    let text = package.files.get("README.md").map_or("", String::as_str);
    let example = (!text.contains("\n```rust")).then(|| package.problem("README.md has no example in Rust"));
    let tested = (!library.starts_with(r#"#![doc = include_str!("../README.md")]"#))
        .then(|| package.problem("src/lib.rs does not begin with its README, whose example is then no test"));
    example.into_iter().chain(tested).collect()
}

fn metadata(package: &Package, toolchain: &str) -> Vec<Problem> {
    let manifest = &package.manifest;
    let rules = [
        (manifest.description.is_some(), "has no `description`"),
        (manifest.repository.is_some(), "has no `repository`"),
        ((1..=MAX_KEYWORDS).contains(&manifest.keywords.len()), "has no `keywords`, or more than 5"),
        (!manifest.categories.is_empty(), "has no `categories`"),
        (manifest.is_documented_whole(), "has no `all-features = true` for docs.rs"),
        (
            is_behind(manifest.rust_version.as_deref(), toolchain),
            "has a `rust-version` that is not two releases behind the toolchain",
        ),
    ];
    rules
        .iter()
        .filter(|(holds, _)| !holds)
        .map(|(_, rule)| package.problem(format!("{} {rule}", manifest.name)))
        .collect()
}

fn is_behind(oldest: Option<&str>, toolchain: &str) -> bool {
    let channel = toolchain.lines().find_map(|line| line.strip_prefix("channel = "));
    let (Some(oldest), Some(channel)) =
        (oldest.and_then(minor), channel.and_then(|it| minor(it.trim_matches('"'))))
    else {
        return false;
    };
    oldest + RELEASES_BEHIND == channel
}

/// Returns the 95 of 1.95.0.
fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

/// Checks that a package contains the files that its code includes: it would not compile otherwise.
fn includes(package: &Package) -> Vec<Problem> {
    let sources = package
        .files
        .iter()
        .filter(|(path, _)| path.starts_with("src/") && path.ends_with(".rs") && !path.ends_with("tests.rs"));
    let missing = sources.flat_map(|(path, text)| {
        let missing = included(text).filter(move |file| !package.files.contains_key(&join(path, file)));
        missing.map(move |file| {
            Problem::file(
                format!("{}/{path}", package.folder),
                format!("includes {file}, which is not in the package"),
            )
        })
    });
    missing.collect()
}

/// Returns the paths in `include_str!` and `include_bytes!`, without those that only doctests read.
fn included(text: &str) -> impl Iterator<Item = &str> {
    let compiled = text.split("#[cfg(doctest)]").next().unwrap_or_default();
    let calls = compiled.split("include_").skip(1);
    calls.filter_map(|call| {
        call.strip_prefix("str!(\"").or_else(|| call.strip_prefix("bytes!(\""))?.split('"').next()
    })
}

/// Returns the path `file` relative to the file `from`, both with forward slashes.
fn join(from: &str, file: &str) -> String {
    let mut parts: Vec<_> = Path::new(from)
        .parent()
        .into_iter()
        .flat_map(Path::iter)
        .map(|part| part.to_string_lossy())
        .collect();
    for part in file.split('/') {
        if part != ".." {
            parts.push(part.into());
        } else if parts.pop().is_none() {
            return file.to_owned();
        }
    }
    parts.join("/")
}

impl Package {
    fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::file(format!("{}/Cargo.toml", self.folder), message)
    }
}

#[cfg(test)]
mod tests;
