//! Every event of a run is valid against the published schema.

use mainstem::{model::scripted::Turn, prelude::*};
use serde_json::Value;

use crate::support::{Spawns, harness};

const SCHEMA: &str = include_str!("../../docs/schema/agent_event.json");

#[tokio::test(start_paused = true)]
async fn every_event_fits_the_published_schema() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new()
                    .thinking("hm")
                    .text("I ask.")
                    .spawn("a", "x")
                    .spawn("b", "y")
                    .spawn("unknown", "z"),
                Turn::new().text("Done."),
            ],
        )
        .agent("a", [Turn::new().text("ok")])
        .agent("b", [Turn::new().text("no").cut()]);
    let fleet = harness(model)
        .with_subagent(AgentSpec::new("a", "A"))
        .with_subagent(AgentSpec::new("b", "B"))
        .build()
        .unwrap();
    let lines: Vec<_> = fleet.stream_events("go").into_ndjson().collect().await;
    assert!(lines.len() > 40);
    for line in &lines {
        let event: Value = serde_json::from_str(line).unwrap();
        let wrong: Vec<_> = schema.iter_errors(&event).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{line}{wrong:?}");
        let mut broken = event.clone();
        broken["seq"] = Value::from("one");
        assert!(!schema.is_valid(&broken), "the schema lets anything through");
    }
}
