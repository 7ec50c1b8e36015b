//! A package in cargo's metadata.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub(super) struct Metadata {
    pub(super) packages: Vec<Manifest>,
    pub(super) target_directory: PathBuf,
}

#[derive(Clone, Default, Deserialize)]
pub(super) struct Manifest {
    pub(super) name: String,
    pub(super) version: String,
    manifest_path: PathBuf,
    /// The registries for publishing: `None` is all, an empty list none.
    publish: Option<Vec<String>>,
    pub(super) description: Option<String>,
    pub(super) repository: Option<String>,
    pub(super) rust_version: Option<String>,
    pub(super) keywords: Vec<String>,
    pub(super) categories: Vec<String>,
    /// The tables below `package.metadata`.
    metadata: Value,
}

impl Manifest {
    pub(super) fn is_published(&self) -> bool {
        self.publish.as_ref().is_none_or(|registries| !registries.is_empty())
    }

    pub(super) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or_else(|| Path::new("."))
    }

    /// Returns `true` if docs.rs shows all features.
    pub(super) fn is_documented_whole(&self) -> bool {
        self.metadata["docs"]["rs"]["all-features"] == true
    }
}
