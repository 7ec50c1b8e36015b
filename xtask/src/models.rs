//! `cargo xtask models`: models of threads, under a model checker that tries many schedules. It
//! replaces the synchronization primitives, so everything is compiled once more, into a folder of
//! its own.

use std::{env, path::Path};

use anyhow::Result;

use crate::cargo::{cargo, run as exec};
use crate::suite::SLOW;

/// The packages with models, and their targets.
const MODELS: [(&str, &[&str]); 3] = [
    ("mainstem-event", &["--lib", "session_log::models"]),
    ("mainstem-journal", &["--test", "models"]),
    ("mainstem-subagent", &["--test", "models"]),
];

pub(crate) fn run(root: &Path, slow: bool) -> Result<()> {
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into).join("shuttle");
    for (package, place) in MODELS {
        let mut command = cargo(root, &["test", "--quiet", "--locked", "--package", package]);
        command.args(place).env("CARGO_TARGET_DIR", &target).env("RUSTFLAGS", "--cfg shuttle");
        if slow {
            command.env(SLOW, "1");
        }
        exec(&mut command)?;
    }
    Ok(())
}
