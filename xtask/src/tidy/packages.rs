//! The crates of this workspace, as cargo knows them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::cargo::{cargo, output};
use crate::tree;

#[derive(Debug, Default)]
pub(super) struct Package {
    pub(super) name: String,
    /// Its folder, as a path from the root.
    pub(super) folder: String,
    /// The text of its Cargo.toml.
    pub(super) manifest: String,
    pub(super) dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Dependency {
    pub(super) name: String,
    /// `dev`, `build`, or none for a normal one.
    pub(super) kind: Option<String>,
}

impl Package {
    pub(super) fn manifest_path(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }

    /// Returns the first line of the manifest that begins with `name`, or line 1.
    pub(super) fn line_of(&self, name: &str) -> usize {
        let begins =
            |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
        self.manifest.lines().position(begins).map_or(1, |index| index + 1)
    }
}

/// Cargo's answer, as far as it matters here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

/// Returns the crates of the workspace at `root`.
pub(super) fn read(root: &Path) -> Result<Vec<Package>> {
    let json = output(&mut cargo(root, &["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Metadata = serde_json::from_str(&json).context("cannot read cargo metadata")?;
    let package = |Entry { name, manifest_path, dependencies }: Entry| {
        let manifest = fs::read_to_string(&manifest_path)?;
        let folder = tree::relative(root, manifest_path.parent().unwrap_or(root));
        Ok(Package { name, folder, manifest, dependencies })
    };
    metadata.packages.into_iter().map(package).collect()
}
