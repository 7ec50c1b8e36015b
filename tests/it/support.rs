//! What the tests share: a harness with a fake clock and counted ids, a few tools, milliseconds.

use std::time::Duration;

use mainstem::{model::scripted::Turn, prelude::*};
use mainstem_testing::{CountedIds, FakeClock};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A harness whose root is `main`; the same every time.
pub(crate) fn harness(model: impl Model) -> HarnessBuilder {
    Harness::builder("main", model)
        .clock(FakeClock::default())
        .ids(CountedIds::default())
        .idle_timeout(Duration::MAX)
        .tool(lookup())
        .tool(flaky())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Lookup {
    /// What to look up.
    word: String,
    /// How long that takes, in milliseconds.
    #[serde(default)]
    takes: u64,
}

/// Says something about a word, in two pieces, after a while.
pub(crate) fn lookup() -> impl Tool {
    tool_fn("lookup", "Look a word up", |cx: RunContext, Lookup { word, takes }: Lookup| async move {
        cx.progress(format!("{word} ")).await;
        tokio::time::sleep(ms(takes)).await;
        Ok::<_, ToolError>("found")
    })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Flaky {
    /// `error` or `panic`.
    how: String,
}

/// Fails as it is told.
pub(crate) fn flaky() -> impl Tool {
    tool_fn("flaky", "Fails", |_, Flaky { how }: Flaky| async move {
        assert_ne!(how, "panic", "as asked");
        Err::<ToolOutput, _>(ToolError::new("no luck"))
    })
}

/// A call of `agent_spawn`.
pub(crate) trait Spawns {
    fn spawn(self, agent_id: &str, task: &str) -> Self;
}

impl Spawns for Turn {
    fn spawn(self, agent_id: &str, task: &str) -> Self {
        self.call("agent_spawn", spawn_args(agent_id, task))
    }
}

pub(crate) fn spawn_args(agent_id: &str, task: &str) -> Value {
    json!({ "agent_id": agent_id, "task": task })
}
