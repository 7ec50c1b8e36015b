//! What the tests share: a harness with a fake clock and counted ids, and a few tools.

#[path = "../common.rs"]
mod common;

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use mainstem::{
    message::ToolState,
    model::{ModelRequest, ModelStream},
    prelude::*,
};
use mainstem_testing::{CountedIds, FakeClock, laws, render};
use schemars::JsonSchema;
use serde::Deserialize;
use tempfile::TempDir;

pub(crate) use self::common::{OpenNow, Spawns, ms, spawn_args};

/// Returns a harness whose root is `main`; the same every time.
pub(crate) fn harness(model: impl Model) -> HarnessBuilder {
    Harness::builder("main", model)
        .with_clock(FakeClock::default())
        .with_ids(CountedIds::default())
        .with_idle_timeout(Duration::MAX)
        .with_tool(lookup())
        .with_tool(flaky())
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
    tool_fn("lookup", "Look a word up", |cx: ToolContext, Lookup { word, takes }: Lookup| async move {
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

/// Notes the instructions that each agent's model gets.
pub(crate) struct Overheard {
    told: Told,
    inner: ScriptedModel,
}

/// Agents and their instructions, one entry a model call.
pub(crate) type Told = Arc<Mutex<Vec<(String, String)>>>;

impl Overheard {
    pub(crate) fn new(inner: ScriptedModel) -> (Self, Told) {
        let told = Told::default();
        (Self { told: told.clone(), inner }, told)
    }
}

impl Model for Overheard {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let system = request.system.as_deref().unwrap_or_default().to_owned();
        self.told.lock().unwrap().push((request.agent.to_string(), system));
        self.inner.stream(request)
    }
}

/// Checks the laws; then what each agent's calls of file tools came to, sorted.
pub(crate) async fn answers(run: Run) -> Vec<String> {
    let events: Vec<_> = run.collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let (mut open, mut answers) = (BTreeMap::new(), Vec::new());
    for event in &events {
        match &event.kind {
            EventKind::ToolResultStart { tool_call_id, tool_call_name: name, .. } => {
                open.insert(tool_call_id.clone(), (name.clone(), String::new()));
            }
            EventKind::ToolResultTextDelta { tool_call_id, delta } => {
                open.get_mut(tool_call_id).unwrap().1.push_str(delta);
            }
            EventKind::ToolResultEnd { tool_call_id, state, .. } => {
                let (name, text) = open.remove(tool_call_id).unwrap();
                if !name.starts_with("agent_") {
                    let failed = if *state == ToolState::Success { "" } else { "failed: " };
                    answers.push(format!("{} {name}: {failed}{}", event.agent_label(), text.trim_end()));
                }
            }
            _ => {}
        }
    }
    // Calls of one turn end as they like.
    answers.sort();
    answers
}

/// Returns a directory with these files.
pub(crate) fn workspace(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        write(dir.path(), path, text);
    }
    dir
}

/// Writes a file, and the directories on the way to it.
pub(crate) fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
