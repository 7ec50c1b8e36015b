//! The vendors' own clients in Python, which read the APIs of the testing kit's scripted server.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::{
    built::Program,
    cargo::{place, program, run as exec},
    server::Server,
};

/// Returns a Python with the packages of `tests/clients/requirements.txt`.
pub(crate) fn python() -> Result<Option<PathBuf>> {
    place("MAINSTEM_PYTHON", "a Python with tests/clients/requirements.txt installed")
}

pub(crate) fn run(root: &Path) -> Result<()> {
    let Some(python) = python()? else { return Ok(()) };
    let server = Program::example("crates/mainstem-testing", "model_server").build(root)?;
    let server = Server::start(&mut program(root, server))?;
    exec(program(root, python).arg("tests/clients/check.py").arg(server.url()))
}
