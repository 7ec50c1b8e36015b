//! `cargo xtask package`: the packages that would be published, made without a registry, and their
//! contents.

mod check;
mod manifest;

use std::{env, fs, path::Path};

use anyhow::{Context, Result};

use self::{
    check::{Package, check},
    manifest::{Manifest, Metadata},
};
use crate::{
    cargo::{cargo, output, program, run as exec},
    problem::report,
};

/// The file with the toolchain, and the line with its version.
const TOOLCHAIN: &str = "rust-toolchain.toml";

pub(crate) fn run(root: &Path) -> Result<()> {
    let json = output(&mut cargo(root, &["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Metadata = serde_json::from_str(&json).context("cannot read cargo metadata")?;
    make(root, &metadata)?;
    let toolchain = fs::read_to_string(root.join(TOOLCHAIN)).context(TOOLCHAIN)?;
    let published = metadata.packages.iter().filter(|package| package.is_published());
    let packages = published.map(|manifest| read(root, &metadata, manifest)).collect::<Result<Vec<_>>>()?;
    let problems: Vec<_> = packages.iter().flat_map(|package| check(package, &toolchain)).collect();
    println!("{} packages, {} KiB", packages.len(), packages.iter().map(|it| it.bytes).sum::<u64>() / 1024);
    report(&problems, "the rules are in xtask/src/package/check.rs")
}

/// Makes each package; cargo then resolves its dependencies as from a registry.
fn make(root: &Path, metadata: &Metadata) -> Result<()> {
    let mut command = cargo(root, &["package", "--quiet", "--workspace", "--no-verify", "--allow-dirty"]);
    for package in metadata.packages.iter().filter(|package| !package.is_published()) {
        command.args(["--exclude", &package.name]);
    }
    // CI has fetched every dependency by then; a developer's machine may use the registry.
    if env::var_os("CI").is_some() {
        command.arg("--offline");
    }
    exec(&mut command)
}

/// Reads the package that cargo has made.
fn read(root: &Path, metadata: &Metadata, manifest: &Manifest) -> Result<Package> {
    let name = format!("{}-{}", manifest.name, manifest.version);
    let archive = metadata.target_directory.join("package").join(format!("{name}.crate"));
    let list = output(program(root, "tar").arg("-tzf").arg(&archive))?;
    let files = list.lines().filter_map(|line| line.strip_prefix(&name)?.strip_prefix('/')).map(String::from);
    let folder = manifest.folder();
    Ok(Package {
        folder: crate::tree::relative(root, folder),
        manifest: manifest.clone(),
        bytes: fs::metadata(&archive).with_context(|| archive.display().to_string())?.len(),
        files: files.map(|file| (file.clone(), text(&folder.join(file)))).collect(),
    })
}

/// Returns the text of a file of the tree; empty for one that cargo has made.
fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
