//! The official Python client of MCP, over HTTP. `mainstem-cli/tests/cli/mcp_agents.rs` tries it
//! over stdio.

use mainstem::{model::scripted::Turn, prelude::*};
use mainstem_server::Protocol;
use serde_json::json;

use crate::support::{Folder, Served};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_calls_agents_over_http() {
    let Some(folder) = Folder::find("mcp") else { return };
    let spawn = json!({ "agent_id": "kid", "task": "look" });
    let turns =
        [Turn::new().call("agent_spawn", spawn), Turn::new().text("All done."), Turn::new().text("Again.")];
    let model = ScriptedModel::new().agent("main", turns).agent("kid", [Turn::new().text("Seen.")]);
    let harness =
        Harness::builder("main", model).with_subagent(AgentSpec::new("kid", "A kid")).build().unwrap();
    let served = Served::start(&harness, &[Protocol::Mcp]).await;
    insta::assert_snapshot!(folder.run("check.py", &served.url).await, @r#"
    server: mainstem
    tools: main
    progress: True True
    reply: All done. False
    again: Again. True
    error: there is no agent "stranger"; known: main
    "#);
}
