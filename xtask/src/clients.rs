//! Clients that are not ours: the vendors' own in Python read the APIs of the testing kit's
//! scripted server, and stock readers of server-sent events read `mainstem serve`.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::{
    browser,
    built::Program,
    cargo::{output, place, program, run as exec},
    server::Server,
};

const TOKEN: &str = "a-token-for-the-clients";

/// Returns a Python with the packages of `tests/clients/requirements.txt`.
pub(crate) fn python() -> Result<Option<PathBuf>> {
    place("MAINSTEM_PYTHON", "a Python with tests/clients/requirements.txt installed")
}

pub(crate) fn run(root: &Path) -> Result<()> {
    let Some(python) = python()? else { return Ok(()) };
    let server = Program::example("crates/mainstem-testing", "model_server").build(root)?;
    let server = Server::start(&mut program(root, server))?;
    exec(program(root, &python).arg("tests/clients/check.py").arg(server.url()))?;
    examples(root, python)
}

/// Runs the clients of `docs/examples/clients` against the demo.
fn examples(root: &Path, python: PathBuf) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, TOKEN)?;
    let mut serve = program(root, Program::CLI.build(root)?);
    serve
        .args("serve -m demo --demo-pace 0 --bind 127.0.0.1:0 --log off --token-file".split(' '))
        .arg(tokens);
    let server = Server::start(&mut serve)?;
    let check = |mut client: std::process::Command| {
        client.args(["Review", "it"]).env("MAINSTEM_SERVER", server.url()).env("MAINSTEM_TOKEN", TOKEN);
        let printed = output(&mut client)?;
        let agents = ["[main ] ", "[reviewer security] ", "[runner ] "];
        ensure!(agents.iter().all(|agent| printed.contains(agent)), "a client printed:\n{printed}");
        Ok(())
    };
    let mut client = program(root, python);
    client.arg("docs/examples/clients/read.py");
    check(client)?;
    let script = browser::with_packages(root, "docs/examples/clients/read.mjs", folder.path())?;
    let Some(script) = script else { return Ok(()) };
    let mut client = program(root, "node");
    client.arg(script);
    check(client)
}
