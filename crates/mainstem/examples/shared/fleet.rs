//! What the examples share: a scripted fleet, so that they run without a key. With a model of your
//! own the code is the same.

use std::time::Duration;

use mainstem::{model::scripted::Turn, prelude::*};
use serde_json::json;

/// A coordinator with two researchers at once, one of whom asks a guide.
pub(crate) fn fleet() -> Result<Harness, mainstem::BuildError> {
    let pace = Duration::from_millis(30);
    let spawn = |city: &str| json!({ "agent_id": "researcher", "task": format!("Tell me about {city}") });
    let model = ScriptedModel::new()
        .agent(
            "coordinator",
            [
                Turn::new()
                    .pace(pace)
                    .say("I ask two researchers. ")
                    .call("agent_spawn", spawn("Paris"))
                    .call("agent_spawn", spawn("Rome")),
                Turn::new().pace(pace).say("Paris is larger, Rome is older."),
            ],
        )
        .agent_on(
            "researcher",
            "Paris",
            [Turn::new().pace(pace).say("Paris has 2.1 million inhabitants and 320 metro stations.")],
        )
        .agent_on(
            "researcher",
            "Rome",
            [
                Turn::new()
                    .call("agent_spawn", json!({ "agent_id": "guide", "task": "What is old in Rome?" })),
                Turn::new().pace(pace).say("Rome has 2.8 million inhabitants and the Forum."),
            ],
        )
        .agent("guide", [Turn::new().pace(pace).say("The Forum, since the 7th century BC.")]);
    Harness::builder("coordinator", model)
        .with_subagent(AgentSpec::new("researcher", "Looks a city up").with_tools(["agent_spawn"]))
        .with_subagent(AgentSpec::new("guide", "Knows what is old"))
        .build()
}
