//! `cargo xtask sbom`: the dependencies of the binary `mainstem`, as a CycloneDX file below the
//! target folder. `cargo-cyclonedx` makes it.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::{cargo, has, output, place, program, run as exec};

const INSTALL: &str = "cargo-cyclonedx is not installed; `cargo install cargo-cyclonedx --locked`";

/// The package that is described, and the file that the tool leaves in the folder of each.
const FOLDER: &str = "crates/mainstem-cli";
const DRAFT: &str = "bill-of-materials";

pub(crate) fn run(root: &Path, check: bool) -> Result<()> {
    if !has(root, "cyclonedx") {
        ensure!(env::var_os("CI").is_none(), INSTALL);
        println!("skipped: {INSTALL}");
        return Ok(());
    }
    let bill = make(root)?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let path = target.join("mainstem.cdx.json");
    fs::create_dir_all(&target)?;
    fs::write(&path, &bill).with_context(|| path.display().to_string())?;
    println!("wrote {}", path.display());
    if !check {
        return Ok(());
    }
    if make(root)? != bill {
        bail!("the same tree gave another bill of materials");
    }
    let Some(python) = place("MAINSTEM_SBOM_PYTHON", "a Python with tests/sbom/requirements.txt installed")?
    else {
        return Ok(());
    };
    exec(program(root, python).arg("tests/sbom/check.py").arg(&path))
}

/// Makes the file, which is the same for the same commit: with the commit's date, without a random
/// number and without this machine's paths.
fn make(root: &Path) -> Result<String> {
    let date = output(program(root, "git").args(["log", "-1", "--format=%ct"]))?;
    let mut tool = cargo(root, &["cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5"]);
    tool.args(["--target", "all", "--no-build-deps", "--override-filename", DRAFT]);
    let made = exec(tool.env("SOURCE_DATE_EPOCH", date.trim()));
    let bill = fs::read_to_string(root.join(FOLDER).join(DRAFT).with_extension("json"));
    remove_drafts(root)?;
    made?;
    Ok(without_place(&bill.context("cargo cyclonedx wrote no file")?, root))
}

/// Removes the files that the tool writes beside each manifest.
fn remove_drafts(root: &Path) -> Result<()> {
    let draft = Path::new(DRAFT).with_extension("json");
    let mut ours = crate::tree::files(root)?
        .into_iter()
        .filter(|path| Path::new(path).file_name() == Some(draft.as_os_str()));
    ours.try_for_each(|path| fs::remove_file(root.join(path))).context(DRAFT)
}

fn without_place(bill: &str, root: &Path) -> String {
    bill.replace(&format!("path+file://{}/", root.display()), "path+file:///")
}

#[cfg(test)]
mod tests;
