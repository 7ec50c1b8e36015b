//! `cargo xtask public-api`: every public item of each published library, compared with the
//! listings in `docs/api`; the foreign crates whose items are in public signatures; the names of
//! setters; and the items that need an example.
//!
//! rustdoc describes items as JSON, which is unstable: the stable toolchain does it with
//! `RUSTC_BOOTSTRAP`, for rustdoc alone, so that crates are not compiled again.

mod examples;
mod foreign;
mod setters;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::{
    cargo::{cargo, output, run as exec},
    problem::{Problem, report},
};

/// The folder of the listings.
const FOLDER: &str = "docs/api/";

/// The page about foreign crates.
const FOREIGN: &str = "docs/api/foreign.md";

/// Sets the variable for rustdoc only.
const RUSTDOC: &str = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    publish: Option<Vec<String>>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

impl Package {
    fn is_published_library(&self) -> bool {
        let is_published = self.publish.as_ref().is_none_or(|registries| !registries.is_empty());
        is_published && self.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "lib"))
    }
}

/// Files by their paths.
type Files = BTreeMap<String, String>;

/// Compares the listings with the code, or writes them.
pub(crate) fn run(root: &Path, accept: bool) -> Result<()> {
    let listings = listings(root)?;
    report(&setters::check(&listings), "every setter has one form, see CONTRIBUTING.md")?;
    let docs = metadata(root)?.target_directory.join("doc");
    report(&examples::check(&docs)?, "add an example to the documentation")?;
    let mut files: Files = listings.iter().map(|(name, items)| (listing(name), lines(items))).collect();
    files.insert(FOREIGN.to_owned(), foreign::page(&listings));
    let old: Vec<_> = crate::tree::files(root)?.into_iter().filter(|path| path.starts_with(FOLDER)).collect();
    if accept {
        return write(root, &files, &old);
    }
    let read = |path: &String| (path.clone(), fs::read_to_string(root.join(path)).unwrap_or_default());
    let old: Files = old.iter().map(read).collect();
    report(
        &compare(&files, &old),
        "`cargo xtask public-api --accept` writes the listings; read the difference",
    )
}

/// Returns the path of a library's listing.
fn listing(library: &str) -> String {
    format!("{FOLDER}{library}.txt")
}

/// Returns the names of the published libraries.
pub(crate) fn libraries(root: &Path) -> Result<Vec<String>> {
    let packages = metadata(root)?.packages.into_iter();
    Ok(packages.filter(Package::is_published_library).map(|package| package.name).collect())
}

fn metadata(root: &Path) -> Result<Metadata> {
    let json = output(&mut cargo(root, &["metadata", "--no-deps", "--format-version", "1"]))?;
    serde_json::from_str(&json).context("cannot read cargo metadata")
}

/// Returns the public items of each published library, sorted.
fn listings(root: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let metadata = metadata(root)?;
    let libraries: Vec<_> =
        metadata.packages.iter().filter(|package| package.is_published_library()).collect();
    let target = &metadata.target_directory;
    document(root, &libraries, target)?;
    let list = |package: &&Package| {
        let file = target.join("doc").join(package.name.replace('-', "_")).with_extension("json");
        Ok((package.name.clone(), items(&file)?))
    };
    libraries.iter().map(list).collect()
}

/// Lets rustdoc describe the libraries as JSON.
fn document(root: &Path, libraries: &[&Package], target: &Path) -> Result<()> {
    let rustdoc = target.join("rustdoc-with-json");
    fs::write(&rustdoc, RUSTDOC)?;
    #[cfg(unix)]
    fs::set_permissions(&rustdoc, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let mut command = cargo(root, &["doc", "--quiet", "--no-deps", "--lib", "--all-features", "--locked"]);
    libraries.iter().for_each(|library| _ = command.args(["--package", &library.name]));
    command.env("RUSTDOC", rustdoc);
    exec(command.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json"))
}

/// Returns the items of a crate, without those that every type has.
fn items(json: &Path) -> Result<Vec<String>> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| json.display().to_string())?;
    let mut items: Vec<_> = api.items().map(ToString::to_string).collect();
    items.sort();
    items.dedup();
    Ok(items)
}

fn lines(items: &[String]) -> String {
    items.iter().map(|item| format!("{item}\n")).collect()
}

/// Names each item that is new, and each that is gone, at its line.
fn compare(fresh: &Files, old: &Files) -> Vec<Problem> {
    let (none, mut problems) = (String::new(), Vec::new());
    for (path, text) in fresh {
        let known = old.get(path).unwrap_or(&none);
        let lacks = |other: &str, line: &str| !other.lines().any(|known| known == line);
        let removed = (1..).zip(known.lines()).filter(|(_, line)| lacks(text, line));
        problems.extend(removed.map(|(number, line)| Problem::at(path, number, format!("removed: {line}"))));
        let added = text.lines().filter(|line| lacks(known, line));
        problems.extend(added.map(|line| Problem::file(path, format!("added: {line}"))));
    }
    let left = old.keys().filter(|path| !fresh.contains_key(*path));
    problems.extend(left.map(|path| Problem::file(path, "is the listing of no library")));
    problems
}

fn write(root: &Path, files: &Files, old: &[String]) -> Result<()> {
    for path in old.iter().filter(|path| !files.contains_key(*path)) {
        fs::remove_file(root.join(path))?;
    }
    fs::create_dir_all(root.join(FOLDER))?;
    files.iter().try_for_each(|(path, text)| fs::write(root.join(path), text).with_context(|| path.clone()))
}

#[cfg(test)]
mod tests;
