//! `cargo xtask bench`: the performance rows, all taken in one run so that their ratios mean
//! something.

use std::path::Path;

use anyhow::Result;

use crate::cargo::{cargo, run as exec};

pub(crate) fn run(root: &Path, args: &[String]) -> Result<()> {
    let bench = ["run", "--release", "--quiet", "--locked", "--package", "mainstem-bench", "--"];
    exec(cargo(root, &bench).args(args))
}
