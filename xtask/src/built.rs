//! Programs of the workspace as its tests have built them: for a package alone, cargo would choose
//! other features, and build all dependencies again.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::cargo::{cargo, output};

/// A program among the targets of a package.
pub(crate) struct Program<'a> {
    /// The package's folder, from the root.
    pub(crate) package: &'a str,
    /// `bin`, `example` or `test`.
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    /// The target by which cargo builds it; a test brings the package's binaries, too.
    pub(crate) by: [&'a str; 2],
}

impl<'a> Program<'a> {
    /// `mainstem` itself.
    pub(crate) const CLI: Self =
        Program { package: "crates/mainstem-cli", kind: "bin", name: "mainstem", by: ["--test", "cli"] };

    pub(crate) fn example(package: &'a str, name: &'a str) -> Self {
        Self { package, kind: "example", name, by: ["--example", name] }
    }

    /// Builds it if needed; returns its path.
    pub(crate) fn build(&self, root: &Path) -> Result<PathBuf> {
        let mut build = cargo(root, &["build", "--quiet", "--workspace", "--locked"]);
        let messages = output(build.args(self.by).args(["--message-format", "json"]))?;
        self.find(&messages, root).with_context(|| format!("cargo built no {} {}", self.kind, self.name))
    }

    fn find(&self, messages: &str, root: &Path) -> Option<PathBuf> {
        let manifest = root.join(self.package).join("Cargo.toml");
        let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Artifact>(line).ok());
        let is_it = |it: &Artifact| {
            it.manifest_path == manifest
                && it.target.name == self.name
                && it.target.kind.iter().any(|kind| kind == self.kind)
        };
        artifacts.filter(is_it).find_map(|it| it.executable)
    }
}

/// A line of cargo's JSON messages.
#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[cfg(test)]
mod tests;
