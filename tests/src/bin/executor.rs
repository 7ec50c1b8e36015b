//! A process that executes background tasks in a workspace until it is killed: for tests of what
//! other processes see of them.

use std::{error::Error, io::Write as _};

use mainstem::{model::scripted::Turn, prelude::*};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let workspace = std::env::args_os().nth(1).ok_or("usage: executor <workspace>")?;
    let begin = json!({ "agent_id": "kid", "task": "hang", "timeout_seconds": 0 });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", begin.clone()).call("agent_spawn", begin),
                Turn::new().text("Begun."),
            ],
        )
        .agent("kid", [Turn::new().text("I hang").hang()]);
    let harness = Harness::builder("main", model)
        .with_workspace(workspace)
        .with_subagent(AgentSpec::new("kid", "K"))
        .build()?;
    let reply = harness.open_session("s").await?.run("go")?.reply().await?;
    writeln!(std::io::stdout(), "{}", reply.text())?;
    std::future::pending().await
}
