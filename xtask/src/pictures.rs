//! Draws the pictures of the terminal: the tests that compare them write them instead.

use std::{fs, path::Path};

use anyhow::Result;

use crate::cargo::{cargo, run as exec};

/// Tells the tests to write; see crates/mainstem-cli/tests/cli/pictures.rs.
const WRITE: &str = "MAINSTEM_PICTURES";

pub(crate) fn run(root: &Path) -> Result<()> {
    fs::create_dir_all(root.join("docs/pictures"))?;
    let mut tests = cargo(root, &["test", "--locked", "-p", "mainstem-cli", "--test", "cli", "pictures::"]);
    exec(tests.env(WRITE, "1"))
}
