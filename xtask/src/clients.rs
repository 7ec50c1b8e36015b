//! The vendors' own clients in Python, against the scripted server of the testing kit: it speaks their APIs, or they would not read it.

use std::{
    env,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::cargo::{cargo, program, run as exec};

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
    let example = ["-p", "mainstem-testing", "--example", "model_server", "--locked"];
    exec(cargo(root, &["build"]).args(example))?;
    let mut server = cargo(root, &["run", "-q"]);
    let server = server.args(example).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = Ended(server.spawn().context("cannot start the model server")?);
    let mut url = String::new();
    let stdout = server.0.stdout.take().context("the model server has no stdout")?;
    BufReader::new(stdout).read_line(&mut url)?;
    exec(program(root, python).arg("tests/clients/check.py").arg(url.trim()))
}

/// Ended with its standard input when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // How it ends says nothing any more.
        let _ = self.0.wait();
    }
}
