//! Agents as tools: one that is declared, and one that code has built.
//!
//! `cargo run -p mainstem --example agent_tools`
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use mainstem::prelude::*;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let harness = Harness::builder("editor", editor())
        // It could also run at another machine: `.with_url("https://…")`.
        .with_subagent(AgentSpec::new("researcher", "Looks things up").with_hidden(true))
        .with_tool(AgentTool::new("researcher", "Looks a question up").with_name("research"))
        .with_tool(poet()?.into_tool("Writes a verse"))
        .build()?;
    let session = harness.new_session();
    let mut run = session.run("A verse about Rome")?;
    while let Some(event) = run.next().await {
        if let EventKind::TextBlockDelta { delta, .. } = &event.kind {
            println!(
                "{:indent$}{}: {delta}",
                "",
                event.agent_label(),
                indent = 2 * usize::from(event.depth())
            );
        }
    }
    // They are children like those of `agent_spawn`, which can be sent to.
    for child in session.children() {
        println!("{} has had {} turns", child.agent_id, child.turns);
    }
    Ok(())
}

/// A script, so that the example runs without a key.
fn editor() -> ScriptedModel {
    let verse = json!({ "task": "A verse about an old city", "label": "poet" });
    let again = json!({ "label": "poet", "message": "Shorter." });
    ScriptedModel::new()
        .agent(
            "editor",
            [
                Turn::new().call("research", json!({ "task": "How old is Rome?" })),
                Turn::new().call("poet", verse),
                Turn::new().call("agent_send", again),
                Turn::new().text("Here it is."),
            ],
        )
        .agent("researcher", [Turn::new().text("Since 753 BC, they say.")])
}

/// An agent with its own model.
fn poet() -> Result<Agent, Box<dyn std::error::Error>> {
    let verses = [Turn::new().text("Old walls, old songs, old summer rain."), Turn::new().text("Old walls.")];
    Ok(Agent::builder("poet", ScriptedModel::named("verses").agent("poet", verses)).build()?)
}
