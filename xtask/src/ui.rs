//! `cargo xtask ui`: the page of the server. Its types come from the OpenAPI document, its files
//! are built from `ui/` into the server's crate, and it is tested by itself and in Chromium, with
//! its npm packages.

use std::path::Path;

use anyhow::{Context, Result};

use crate::{
    built::Program,
    cargo::{place, program, run as exec},
    problem::{Problem, report},
    suite::{self, SLOW},
    tree,
};

/// The sources.
const UI: &str = "ui";

/// What is built from them.
const PAGE: &str = "crates/mainstem-server/page";

/// A folder with the `node_modules` of `ui/package.json`.
const PACKAGES: &str = "MAINSTEM_UI";

/// Whether the tests in the browser write the pictures that differ from those in `ui/test/screens`.
const ACCEPT: &str = "ACCEPT_SCREENS";

/// Builds the page and compares it with the tree, or writes it; then tests it.
pub(crate) fn run(root: &Path, accept: bool, slow: bool) -> Result<()> {
    let ui = root.join(UI);
    if !packages(&ui)? {
        return Ok(());
    }
    let npm = |args: &[&str]| exec(program(&ui, "npm").args(["run", "--silent"]).args(args));
    npm(if accept { &["types"] } else { &["types", "--", "--check"] })?;
    npm(&["check"])?;
    if accept {
        npm(&["build"])?;
    } else {
        let fresh = tempfile::tempdir()?;
        let folder = fresh.path().to_str().context("the temporary folder has an unusual name")?;
        npm(&["build", "--", "--outDir", folder])?;
        report(&compare(fresh.path(), &root.join(PAGE))?, "run `cargo xtask ui --accept`")?;
    }
    let timelines = tempfile::tempdir()?;
    suite::keep(root, timelines.path())?;
    exec(
        program(&ui, "npm").args(["run", "--silent", "test"]).env(suite::TIMELINES_FOLDER, timelines.path()),
    )?;
    let mainstem = Program::CLI.build(root)?;
    let mut browser = program(&ui, "node");
    browser.arg("test/browser/page.mjs").arg(mainstem).env(ACCEPT, if accept { "1" } else { "0" });
    if slow {
        browser.env(SLOW, "1");
    }
    exec(&mut browser)
}

/// Returns whether the packages are installed: in the folder itself, or where `.ci/run` has them.
fn packages(ui: &Path) -> Result<bool> {
    let link = ui.join("node_modules");
    if link.exists() {
        return Ok(true);
    }
    let Some(packages) = place(PACKAGES, "a folder with the packages of ui/package.json")? else {
        return Ok(false);
    };
    #[cfg(unix)]
    std::os::unix::fs::symlink(packages.join("node_modules"), link)?;
    Ok(true)
}

/// Returns the files that differ between two folders.
fn compare(fresh: &Path, kept: &Path) -> Result<Vec<Problem>> {
    let mut paths = tree::files(fresh)?;
    paths.extend(tree::files(kept)?);
    paths.sort();
    paths.dedup();
    let content = |folder: &Path, path: &str| std::fs::read(folder.join(path)).ok();
    let differing = paths.iter().filter(|path| content(fresh, path) != content(kept, path));
    Ok(differing.map(|path| Problem::file(format!("{PAGE}/{path}"), "is not what ui/ builds")).collect())
}
