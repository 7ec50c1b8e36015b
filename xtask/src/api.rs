//! The server's own description against what it does: schemathesis asks it everything that its OpenAPI document allows, and what it does not.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::Result;

use crate::{
    cargo::{cargo, program, run as exec},
    server::Server,
};

const TOKEN: &str = "a-token-for-schemathesis";

/// Runs it with the Python of the clients, if there is one.
pub(crate) fn run(root: &Path) -> Result<()> {
    let Some(python) = env::var_os(crate::clients::PYTHON).map(PathBuf::from) else {
        println!("skipped: {} is not set", crate::clients::PYTHON);
        return Ok(());
    };
    exec(&mut cargo(root, &["build", "-q", "-p", "mainstem-cli", "--locked"]))?;
    let place = tempfile::tempdir()?;
    let tokens = place.path().join("tokens");
    std::fs::write(&tokens, TOKEN)?;
    let mut server = cargo(root, &["run", "-q", "-p", "mainstem-cli", "--locked", "--"]);
    server
        .args("serve -m demo --demo-pace 0 --bind 127.0.0.1:0 --log off --token-file".split(' '))
        .arg(&tokens);
    server.arg("--journal").arg(place.path().join("journal.db"));
    let server = Server::start(&mut server)?;
    let mut schemathesis = program(root, python.with_file_name("schemathesis"));
    schemathesis.arg("--config-file").arg(root.join("tests/clients/schemathesis.toml"));
    schemathesis.args("run -n 20 --seed 5 --no-color --generation-database none".split(' '));
    exec(schemathesis.arg(format!("{}/openapi.json", server.url())).env("MAINSTEM_TOKEN", TOKEN))
}
