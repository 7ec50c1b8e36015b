//! A program over `mainstem-react` alone: one agent with a tool, as a stream of events.

use futures_util::StreamExt;
use mainstem_react::{
    Agent,
    event::EventKind,
    model::{ScriptedModel, scripted::Turn},
    tool::{ToolError, tool_fn},
};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("clock", json!({})), Turn::new().text("It is noon.")]);
    let clock = tool_fn("clock", "Tells the time", |_cx, _: Value| async { Ok::<_, ToolError>("12:00") });
    let agent = Agent::builder("main", model).with_tool(clock).build().expect("one tool");

    // Polling runs the agent; dropping the stream would stop it.
    let mut run = agent.stream_events("What time is it?");
    let mut text = String::new();
    while let Some(event) = run.next().await {
        if let EventKind::TextBlockDelta { delta, .. } = &event.kind {
            text += delta;
        }
    }
    assert_eq!(text, "It is noon.");
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_program_runs() {
        super::main();
    }
}
