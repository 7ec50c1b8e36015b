//! The vendors' own clients in Python, against the scripted server of the testing kit: it speaks their APIs, or they would not read it.

use std::{env, path::Path};

use anyhow::{Result, bail};

use crate::{
    built::Program,
    cargo::{program, run as exec},
    server::Server,
};

/// A Python that has what `tests/clients/requirements.txt` lists. `.ci/run` makes one; only a person's own machine may lack it.
pub(crate) const PYTHON: &str = "MAINSTEM_PYTHON";

pub(crate) fn run(root: &Path) -> Result<()> {
    let Some(python) = env::var_os(PYTHON) else {
        let how = format!("{PYTHON} does not name a Python with tests/clients/requirements.txt installed");
        if env::var_os("CI").is_some() {
            bail!(how);
        }
        println!("skipped: {how}");
        return Ok(());
    };
    let server = Program::example("crates/mainstem-testing", "model_server").build(root)?;
    let server = Server::start(&mut program(root, server))?;
    exec(program(root, python).arg("tests/clients/check.py").arg(server.url()))
}
