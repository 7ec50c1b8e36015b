//! A program over `mainstem-react` alone: one agent with a tool, as a stream of events. Beside
//! tokio, the manifest has one dependency.

use mainstem_react::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "mainstem_react::serde")]
#[schemars(crate = "mainstem_react::schemars")]
struct Clock {
    /// The city.
    city: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let model = ScriptedModel::new().agent(
        "main",
        [Turn::new().call("clock", json!({ "city": "Rome" })), Turn::new().text("It is noon.")],
    );
    let clock = tool_fn("clock", "Tells the time", |_cx, Clock { city }| async move {
        Ok::<_, ToolError>(format!("12:00 in {city}"))
    });
    let agent = Agent::builder("main", model).with_tool(clock).build().expect("one tool");

    // Polling runs the agent; dropping the stream would stop it.
    let mut run = agent.stream_events("What time is it in Rome?");
    let (mut text, mut told) = (String::new(), String::new());
    while let Some(event) = run.next().await {
        match &event.kind {
            EventKind::TextBlockDelta { delta, .. } => text += delta,
            EventKind::ToolResultTextDelta { delta, .. } => told += delta,
            _ => {}
        }
    }
    assert_eq!((&*text, &*told), ("It is noon.", "12:00 in Rome"));
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_program_runs() {
        super::main();
    }

    /// What an author of an agent writes into a manifest.
    #[test]
    fn it_needs_one_crate_beside_tokio() {
        let manifest = include_str!("../Cargo.toml");
        let (_, dependencies) = manifest.split_once("[dependencies]\n").unwrap();
        assert_eq!(dependencies, "mainstem-react.workspace = true\ntokio.workspace = true\n");
    }
}
