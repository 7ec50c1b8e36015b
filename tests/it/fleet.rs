//! Parents and children: spawns, twins, grandchildren, failures, caps.

use mainstem::{model::scripted::Turn, prelude::*};
use mainstem_testing::timeline;

use crate::support::{Spawns, harness, ms};

async fn run(model: ScriptedModel) -> String {
    let harness = harness(model)
        .subagent(AgentSpec::new("reviewer", "Reviews"))
        .subagent(AgentSpec::new("tester", "Tests").with_tools(["lookup", "agent_spawn"]))
        .build()
        .unwrap();
    timeline(harness.stream_events("review this")).await
}

#[tokio::test(start_paused = true)]
async fn two_parallel_children_of_one_type() {
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().spawn("reviewer", "left").spawn("reviewer", "right"),
                Turn::new().text("Both done."),
            ],
        )
        .agent_on("reviewer", "left", [Turn::new().wait(ms(5)).pace(ms(20)).say("left is fine")])
        .agent("reviewer", [Turn::new().pace(ms(10)).say("right has a bug")]);
    insta::assert_snapshot!(run(model).await, @"");
}
