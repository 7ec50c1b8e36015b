//! A server whose agent spawns one at another server: the middle of a chain, for tests that kill
//! it.

use std::{error::Error, io::Write as _, time::Duration};

use mainstem::{journal::SqliteJournal, model::scripted::Turn, prelude::*};
use mainstem_server::Server;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [journal, next] = &*arguments else { return Err("usage: link <journal> <url>".into()) };
    let third = AgentSpec::new("third", "Helps").with_url(next);
    let third = third.with_header("Authorization", "Bearer ${MAINSTEM_TEST_TOKEN:-the-token-of-the-harness}");
    let harness = Harness::builder("second", script())
        .with_remote_host("127.0.0.1".parse()?)
        .with_subagent(third)
        .with_tool(tool_fn("echo", "Echoes", |_, given: Map<String, Value>| async move {
            tokio::time::sleep(Duration::from_millis(15)).await;
            Ok::<_, ToolError>(Value::Object(given).to_string())
        }))
        .with_journal(SqliteJournal::open(journal)?)
        .build()?;
    let server = Server::new(harness).build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;
    server.serve(listener, CancellationToken::new()).await?;
    Ok(())
}

/// Each step takes a moment, in which a reader follows.
fn script() -> ScriptedModel {
    let moment = Duration::from_millis(15);
    let step = || Turn::new().wait(moment).pace(moment);
    let spawn = json!({ "agent_id": "third", "task": "look", "timeout_seconds": 600 });
    let turns = [
        step().thinking("Hm.").say("I ask another.").wait(moment).call("agent_spawn", spawn),
        step().call("echo", json!({ "say": "a" })),
        step().say("It is so."),
        // For a turn that goes on behind a cut one.
        step().say("Still so."),
        step().say("Yes."),
    ];
    ScriptedModel::new().agent("second", turns)
}
