//! Compares the server with its own description: schemathesis sends every request that the OpenAPI
//! document allows, and requests that it does not.

use std::{path::Path, process::Stdio};

use anyhow::Result;
use serde_json::Value;

use crate::{
    built::Program,
    cargo::{output, program, run as exec},
    clients,
    server::Server,
};

const TOKEN: &str = "a-token-for-schemathesis";

/// Runs it with the Python of the clients, if there is one.
pub(crate) fn run(root: &Path) -> Result<()> {
    let Some(python) = clients::python()? else { return Ok(()) };
    let mainstem = Program::CLI.build(root)?;
    let place = tempfile::tempdir()?;
    let tokens = place.path().join("tokens");
    std::fs::write(&tokens, TOKEN)?;
    let mut server = program(root, &mainstem);
    server
        .args("serve -m demo --demo-pace 0 --bind 127.0.0.1:0 --log off --token-file".split(' '))
        .arg(&tokens);
    server.arg("--journal").arg(place.path().join("journal.db"));
    let server = Server::start(&mut server)?;
    let ask = |words: &str| {
        let mut client = program(root, &mainstem);
        client.args(words.split(' ')).env("MAINSTEM_SERVER", server.url()).env("MAINSTEM_TOKEN", TOKEN);
        client
    };
    // Data for the requests: a run with children and a task.
    let line = place.path().join("line");
    std::fs::write(&line, "Review it\n")?;
    let mut chat = ask("chat --session one --progress quiet");
    exec(chat.stdin(std::fs::File::open(&line)?).stdout(Stdio::null()))?;
    let tasks: Value = serde_json::from_str(&output(&mut ask("tasks list --output json"))?)?;
    let events = output(&mut ask("sessions export one"))?;
    let first: Value = serde_json::from_str(events.lines().next().unwrap_or_default())?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();

    let mut schemathesis = program(root, python.with_file_name("schemathesis"));
    schemathesis.arg("--config-file").arg(root.join("tests/clients/schemathesis.toml"));
    schemathesis.args("run -n 20 --seed 5 --no-color --generation-database none".split(' '));
    schemathesis.arg(format!("{}/openapi.json", server.url()));
    schemathesis.env("MAINSTEM_TOKEN", TOKEN).env("MAINSTEM_RUN", text(&first["runId"]));
    schemathesis
        .env("MAINSTEM_TASK", text(&tasks[0]["id"]))
        .env("MAINSTEM_AGENT", text(&tasks[0]["agentKey"]));
    exec(&mut schemathesis)
}
