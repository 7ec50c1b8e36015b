//! Streams of random fleets, checked by the official schemas and verifier: whole, in parts between
//! questions, and read again.

use std::{fs, sync::Arc};

use mainstem::{
    encode::{
        Encoder,
        agui::{Agui, Asked, Children, Requested},
    },
    event::FleetState,
    model::scripted::Turn,
    prelude::*,
};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use serde_json::{Value, json};

use super::builder;
use crate::support::{Folder, TOKEN};

/// What an agent does in a turn.
#[derive(Clone, Debug)]
enum Act {
    Say(&'static str),
    Think,
    Poke,
    Locate,
    Spawn(usize, bool),
    Fail,
}

const AGENTS: [&str; 4] = ["a", "b", "mid", "leaf"];

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        prop_oneof![Just(""), Just("Hi"), Just("two\nlines")].prop_map(Act::Say),
        Just(Act::Think),
        Just(Act::Poke),
        Just(Act::Locate),
        (0..AGENTS.len(), any::<bool>()).prop_map(|(agent, waits)| Act::Spawn(agent, waits)),
        Just(Act::Fail),
    ]
}

/// The turns of the root and of each agent that it can spawn.
fn scripts() -> impl Strategy<Value = Vec<Vec<Vec<Act>>>> {
    let turn = prop::collection::vec(act(), 1..4);
    prop::collection::vec(prop::collection::vec(turn, 1..4), AGENTS.len() + 1)
}

fn turn(acts: &[Act]) -> Turn {
    acts.iter().fold(Turn::new(), |turn, act| match act {
        Act::Say(text) => turn.text(*text),
        Act::Think => turn.thinking("Hm."),
        Act::Poke => turn.call("poke", json!({ "at": 1 })),
        Act::Locate => turn.call("locate", json!({})),
        Act::Spawn(agent, waits) => {
            let seconds = if *waits { 30 } else { 0 };
            let spawn = json!({ "agent_id": AGENTS[*agent], "task": "go", "timeout_seconds": seconds });
            turn.call("agent_spawn", spawn)
        }
        Act::Fail => turn.cut(),
    })
}

/// Returns the runs of so many random fleets.
pub(crate) async fn random(count: usize) -> Vec<Vec<AgentEvent>> {
    let mut runner = TestRunner::deterministic();
    let mut all = Vec::new();
    for _ in 0..count {
        let scripts = scripts().new_tree(&mut runner).unwrap().current();
        all.push(recorded(&scripts).await);
    }
    all
}

/// Records a run of a fleet whose questions are answered as soon as they are asked.
async fn recorded(scripts: &[Vec<Vec<Act>>]) -> Vec<AgentEvent> {
    let names = std::iter::once("main").chain(AGENTS);
    let model = names.zip(scripts).fold(ScriptedModel::new(), |model, (name, turns)| {
        let turns = turns.iter().map(|acts| turn(acts)).chain([Turn::new().text("The end.")]);
        model.agent(name, turns)
    });
    let rules = RuleSet::default().with_pattern(Effect::Ask, "poke").unwrap();
    let locate = ExternalTool::new("locate", "Locates", json!({ "type": "object" }));
    let harness = builder(model).with_permissions(rules).with_tool(locate).build().unwrap();
    let mut run = harness.stream_events("go");
    let (handle, mut events) = (run.handle(), Vec::new());
    while let Some(event) = run.next().await {
        match &event.kind {
            EventKind::RequireUserConfirm { confirm_id, .. } => {
                let _ = handle.confirm(confirm_id, Decision::Allow);
            }
            EventKind::RequireExternalExecution { tool_calls, .. } => {
                let _ = handle.submit_tool_result(&tool_calls[0].id, "here");
            }
            _ => {}
        }
        events.push(event);
    }
    events
}

fn requested(children: Children) -> Requested {
    Requested {
        thread_id: "t".into(),
        run_id: "r".into(),
        parent_run_id: None,
        is_versioned: children != Children::Flatten,
        children,
        state: json!({ "theirs": 1 }),
        results: Default::default(),
    }
}

/// Returns the events of AG-UI in frames.
fn parsed(frames: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(frames).unwrap();
    let data = text.split("\n\n").filter_map(|frame| frame.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Encodes events until the stream ends; with `is_patient`, only at the end of the events. Returns
/// the stream, and the number of the last event in it.
fn encoded(mut agui: Agui, events: &[AgentEvent], pauses: &impl Fn(u64) -> bool) -> (Vec<Value>, u64) {
    let mut frames = agui.begin().to_vec();
    for event in events {
        frames.extend(agui.event(event));
        if pauses(event.seq) {
            frames.extend(agui.keep_alive());
        }
        if agui.is_over() {
            return (parsed(&frames), event.seq);
        }
    }
    frames.extend(agui.end());
    (parsed(&frames), events.last().map_or(0, |last| last.seq))
}

/// Returns the streams of a run that waits for each answer, one for each request of the frontend.
fn in_parts(events: &[AgentEvent], children: Children, pauses: impl Fn(u64) -> bool) -> Vec<Vec<Value>> {
    let (mut streams, mut after) = (Vec::new(), 0);
    let end = events.last().map_or(0, |last| last.seq);
    loop {
        let mut asked = Asked::default();
        events.iter().filter(|event| event.seq <= after).for_each(|event| asked.apply(event));
        asked.open.clear();
        let agui = Agui::new(requested(children), FleetState::default()).with_asked(asked).with_after(after);
        let (stream, last) = encoded(agui, events, &|seq| seq > after && pauses(seq));
        streams.push(stream);
        if last <= after || last == end {
            return streams;
        }
        after = last;
    }
}

/// Returns the texts of a conversation, as a client that reads these streams has them.
fn texts(streams: &[Vec<Value>]) -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = Vec::new();
    for event in streams.iter().flatten() {
        let id = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let (id, delta) = match event["type"].as_str().unwrap_or_default() {
            "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => (id("messageId"), &event["delta"]),
            "TOOL_CALL_ARGS" => (id("toolCallId"), &event["delta"]),
            "TOOL_CALL_RESULT" => (id("messageId"), &event["content"]),
            _ => continue,
        };
        let delta = delta.as_str().unwrap_or_default();
        match texts.iter_mut().find(|(known, _)| *known == id) {
            Some((_, text)) => text.push_str(delta),
            None => texts.push((id, delta.to_owned())),
        }
    }
    texts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_random_fleets_are_lawful() {
    let Some(folder) = Folder::find("agui") else { return };
    let count = if std::env::var_os("RUN_SLOW_TESTS").is_some() { 500 } else { 60 };
    let mut runner = TestRunner::deterministic();
    let mut streams = Vec::new();
    for _ in 0..count {
        let scripts = scripts().new_tree(&mut runner).unwrap().current();
        let events = Arc::new(recorded(&scripts).await);
        let whole =
            encoded(Agui::new(requested(Children::Subagents), FleetState::default()), &events, &|_| false);
        let every = any::<u64>().new_tree(&mut runner).unwrap().current() % 5 + 1;
        let parts = in_parts(&events, Children::Subagents, |seq| seq % every == 0);
        assert_eq!(texts(&parts), texts(std::slice::from_ref(&whole.0)), "{scripts:?}");
        streams.push(whole.0);
        streams.extend(parts);
        for children in [Children::Flatten, Children::Hide] {
            streams.extend(in_parts(&events, children, |seq| seq % every == 0));
        }
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), json!(streams).to_string()).unwrap();
    let mut command = folder.command("client.mjs");
    command.args(["unused#verify", TOKEN]).env("AGUI_STREAMS", file.path());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let (said, why) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{why}");
    assert!(said.contains("isMany:true") && !said.contains("complaints"), "{said}");
}
