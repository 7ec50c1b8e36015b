//! Programs that consume a server: the five ways to consume a stream, an application with agents in
//! it, and its page in Chromium.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::{
    built::Program,
    cargo::{output, place, program, run as exec},
    server::Server,
};

/// The five patterns, agents as tools, and a tool, a middleware and a model of one's own; each with
/// a part of its output.
const EXAMPLES: [(&str, &str); 9] = [
    ("panel_per_agent", "Forum"),
    ("await_one_child", "since the 7th century"),
    ("collect_and_group", "researcher"),
    ("forward_as_lines", "\"type\":\"AGENT_END\""),
    ("filter_by_depth", "Paris"),
    ("agent_tools", "poet has had 2 turns"),
    ("own_tool", "{\"words\":6,\"on_behalf_of\":\"ann\"}"),
    ("own_middleware", "a.txt is in the archive."),
    ("own_model", "TEXT_BLOCK_DELTA \"5.\""),
];

/// A folder with the `node_modules` of `tests/peers/package.json`.
const PEERS: &str = "MAINSTEM_PEERS";

/// Runs each of the examples that ends by itself.
pub(crate) fn examples(root: &Path) -> Result<()> {
    for (name, said) in EXAMPLES {
        let example = Program::example("crates/mainstem", name).build(root)?;
        let printed = output(&mut program(root, example))?;
        ensure!(printed.contains(said), "example {name} did not say {said:?}:\n{printed}");
        println!("{name}: {} lines", printed.lines().count());
    }
    Ok(())
}

/// Runs the application, and its page in Chromium.
pub(crate) fn run(root: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let Some(script) = with_packages(root, "tests/browser/check.mjs", folder.path())? else { return Ok(()) };
    let app = Program::example("crates/mainstem-server", "embed").build(root)?;
    let app = Server::start(program(root, app).arg("127.0.0.1:0"))?;
    exec(program(root, "node").arg(script).arg(app.url()))
}

/// Copies a script into a folder with the packages that it imports: Node looks for them beside it.
pub(crate) fn with_packages(root: &Path, script: &str, folder: &Path) -> Result<Option<PathBuf>> {
    let Some(peers) = place(PEERS, "a folder with the packages of tests/peers/package.json")? else {
        return Ok(None);
    };
    let copy = folder.join("script.mjs");
    std::fs::copy(root.join(script), &copy)?;
    #[cfg(unix)]
    std::os::unix::fs::symlink(peers.join("node_modules"), folder.join("node_modules"))?;
    Ok(Some(copy))
}
