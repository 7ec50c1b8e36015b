//! The stream of random fleets: it parses as the official SDK's types, and keeps the order that the
//! protocol prescribes.

use std::{collections::BTreeMap, time::Duration};

use mainstem::{encode::Encoder as _, prelude::*};
use mainstem_a2a::{
    Framing, TaskFold,
    extension::{Extension, URI},
    sdk::{Artifact, Part, StreamResponse, Task},
};
use mainstem_testing::CountedIds;
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};
use serde_json::json;

/// How many fleets are tried.
const CASES: u32 = 64;

/// One agent, with what it does.
#[derive(Clone, Debug)]
struct Node {
    words: Vec<u8>,
    thinks: bool,
    looks: bool,
    children: Vec<Self>,
    cut: bool,
}

fn node(children: impl Strategy<Value = Vec<Node>> + 'static) -> BoxedStrategy<Node> {
    let cut = prop_oneof![8 => Just(false), 1 => Just(true)];
    (vec(0..26_u8, 0..8), any::<bool>(), any::<bool>(), children, cut)
        .prop_map(|(words, thinks, looks, children, cut)| Node { words, thinks, looks, children, cut })
        .boxed()
}

/// A fleet, and the share of its events after which it is cancelled.
fn case() -> impl Strategy<Value = (Node, Option<f64>)> {
    let kid = node(vec(node(Just(Vec::new())), 0..3));
    (node(vec(kid, 0..3)), proptest::option::weighted(0.2, 0.0..1.0))
}

fn script(node: &Node, name: &str, model: ScriptedModel) -> ScriptedModel {
    let agent = if name == "n;" { "main" } else { "kid" };
    let task = |index: usize| format!("{}-{index};", name.trim_end_matches(';'));
    let mut first = if node.thinks { Turn::new().thinking("hm, ").thinking("well") } else { Turn::new() };
    for letter in &node.words {
        first = first.text(char::from(b'a' + letter).to_string());
    }
    if node.cut {
        first = first.cut();
    }
    if node.looks {
        first = first.call("look", json!({}));
    }
    let spawn = |index| json!({ "agent_id": "kid", "task": task(index) });
    first = (0..node.children.len()).fold(first, |turn, index| turn.call("agent_spawn", spawn(index)));
    let own = model.agent_on(agent, name, [first, Turn::new().text("the ").text("end")]);
    node.children.iter().enumerate().fold(own, |model, (index, kid)| script(kid, &task(index), model))
}

/// Runs a fleet, and returns its events.
async fn events(root: &Node, cancel: Option<f64>) -> Vec<AgentEvent> {
    let look = |_, _: serde_json::Map<String, serde_json::Value>| async move { Ok::<_, ToolError>("seen") };
    let harness = Harness::builder("main", script(root, "n;", ScriptedModel::new()))
        .with_ids(CountedIds::default())
        .with_tool(tool_fn("look", "Looks", look))
        .with_subagent(AgentSpec::new("kid", "Helps"))
        .build()
        .unwrap();
    let mut run = harness.stream_events("n;");
    let (handle, mut events) = (run.handle(), Vec::new());
    while let Some(event) = run.next().await {
        events.push(event);
        if cancel.is_some_and(|share| events.len() as f64 >= share * 40.0) {
            handle.cancel();
        }
    }
    harness.shutdown(Duration::from_secs(1)).await;
    events
}

/// Returns the updates of a stream, parsed as the SDK does.
fn updates(events: &[AgentEvent], extension: Option<Extension>) -> (Vec<StreamResponse>, Task) {
    let (run, session) = (events[0].run_id().unwrap().as_str(), events[0].session_id().as_str());
    let mut fold = TaskFold::new(run, session);
    let mut stream = TaskFold::new(run, session).with_extension(extension).into_stream(Framing::Plain);
    let mut frames = String::from_utf8(stream.begin().to_vec()).unwrap();
    for event in events {
        fold.apply(event);
        frames += std::str::from_utf8(&stream.event(event)).unwrap();
    }
    assert!(stream.is_over() && stream.end().is_empty());
    let data = frames.lines().filter_map(|line| line.strip_prefix("data: "));
    (data.map(|data| serde_json::from_str(data).unwrap()).collect(), fold.task(None))
}

/// What a client has that applies all updates as the protocol says.
#[derive(Default)]
struct Client {
    task: Option<Task>,
    artifacts: BTreeMap<String, (Artifact, bool)>,
}

impl Client {
    fn apply(&mut self, update: StreamResponse) -> Result<(), String> {
        let is_over = self.task.as_ref().is_some_and(|task| task.status.state.is_terminal());
        match (update, &mut self.task) {
            (_, Some(_)) if is_over => Err("an update after the end".to_owned()),
            (StreamResponse::Task(task), None) => {
                self.task = Some(task);
                Ok(())
            }
            (StreamResponse::StatusUpdate(update), Some(task)) => {
                (task.status, task.context_id) = (update.status, update.context_id);
                Ok(())
            }
            (StreamResponse::ArtifactUpdate(update), Some(_)) => {
                let (append, last) = (update.append == Some(true), update.last_chunk == Some(true));
                let id = update.artifact.artifact_id.clone();
                match (self.artifacts.get_mut(&id), append) {
                    _ if update.artifact.parts.is_empty() => return Err("no part".to_owned()),
                    (Some((_, true)), _) => return Err("a chunk after the last".to_owned()),
                    (Some((known, is_last)), true) => {
                        known.parts.extend(update.artifact.parts);
                        *is_last = last;
                    }
                    (None, false) => drop(self.artifacts.insert(id, (update.artifact, last))),
                    other => return Err(format!("{other:?}")),
                }
                Ok(())
            }
            (other, _) => Err(format!("out of place: {other:?}")),
        }
    }
}

fn texts(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::as_text).collect()
}

fn check(events: &[AgentEvent]) -> Result<(), TestCaseError> {
    let (all, task) = updates(events, None);
    let mut client = Client::default();
    for update in all.clone() {
        client.apply(update).map_err(TestCaseError::fail)?;
    }
    let state = client.task.unwrap().status;
    prop_assert!(state.state.is_terminal());
    prop_assert_eq!(&state, &task.status);
    // The texts are those of the root, and the state that is folded has them as well.
    let said: String = events
        .iter()
        .filter(|event| event.is_root())
        .filter_map(|event| match &event.kind {
            EventKind::TextBlockDelta { delta, .. } => Some(delta.as_str()),
            _ => None,
        })
        .collect();
    let folded: Vec<_> = task.artifacts.unwrap_or_default();
    prop_assert_eq!(folded.iter().map(|artifact| texts(&artifact.parts)).collect::<String>(), said);
    for artifact in &folded {
        prop_assert_eq!(texts(&artifact.parts), texts(&client.artifacts[&artifact.artifact_id].0.parts));
    }
    // With the extension there are the same updates, and each event once, in order.
    let (told, _) = updates(events, Some(Extension::default()));
    let seqs = told.iter().skip(1).map(|update| match update {
        StreamResponse::StatusUpdate(update) => &update.metadata,
        StreamResponse::ArtifactUpdate(update) => &update.metadata,
        other => panic!("{other:?}"),
    });
    let seqs: Vec<_> =
        seqs.map(|metadata| metadata.as_ref().unwrap()[URI]["seq"].as_u64().unwrap()).collect();
    prop_assert_eq!(seqs, events.iter().map(|event| event.seq).collect::<Vec<_>>());
    let artifacts = |all: &[StreamResponse]| {
        all.iter().filter(|update| matches!(update, StreamResponse::ArtifactUpdate(_))).count()
    };
    prop_assert_eq!(artifacts(&told), artifacts(&all));
    Ok(())
}

#[test]
fn the_stream_of_a_random_fleet_is_in_order() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let tried = TestRunner::new(config)
        .run(&case(), |(root, cancel)| check(&runtime.block_on(events(&root, cancel))));
    tried.unwrap_or_else(|error| panic!("{error}"));
}
