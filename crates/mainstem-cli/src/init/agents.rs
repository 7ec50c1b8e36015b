//! What the agents of this folder do, pinned as a timeline: each event, with the agent that it is
//! from. A change shows as a difference, which `cargo insta review` accepts.

use mainstem::prelude::*;
use mainstem_testing::{CountedIds, FakeClock, timeline};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn the_root_asks_the_researcher() {
    let task = json!({ "agent_id": "researcher", "task": "Where is the entry point?" });
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("agent_spawn", task), Turn::new().text("In src/main.rs.")])
        .agent("researcher", [Turn::new().text("src/main.rs:1")]);
    let harness = Harness::builder("main", model)
        .with_workspace(".")
        .with_clock(FakeClock::default())
        .with_ids(CountedIds::default());
    let run = harness.build().unwrap().stream_events("Where does it begin?");
    insta::assert_snapshot!(timeline(run).await);
}
