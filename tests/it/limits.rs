//! The limit of children that run at once.

use mainstem::{
    model::{ModelDelta, ModelRequest, ModelStream, scripted::Turn},
    prelude::*,
};
use mainstem_testing::{laws, render};

use crate::support::{Spawns, harness, ms};

/// Returns the largest number of children that ran at one time.
fn most_at_once(events: &[AgentEvent]) -> usize {
    let (mut live, mut most) = (0_usize, 0);
    for event in events.iter().filter(|event| !event.is_root()) {
        match event.kind {
            EventKind::AgentStart { .. } => live += 1,
            EventKind::AgentEnd { .. } => live -= 1,
            _ => {}
        }
        most = most.max(live);
    }
    most
}

async fn read(run: Run) -> Vec<AgentEvent> {
    let events: Vec<_> = run.collect().await;
    laws(&events).unwrap();
    events
}

#[tokio::test(start_paused = true)]
async fn children_above_the_cap_wait_for_their_turn() {
    for (cap, most, millis) in [(1, 1, 60), (2, 2, 30), (16, 6, 10)] {
        let call = (0..6).fold(Turn::new(), |turn, n| turn.spawn("kid", &n.to_string()));
        let model = ScriptedModel::new()
            .agent("main", [call, Turn::new().text("Done.")])
            .agent("kid", [Turn::new().wait(ms(10)).text("Hi")]);
        let run =
            harness(model).with_subagent(AgentSpec::new("kid", "K")).with_max_children(cap).build().unwrap();
        let events = read(run.stream_events("go")).await;
        assert_eq!(most_at_once(&events), most, "cap {cap}");
        if cap == 1 {
            insta::assert_snapshot!(render(&events));
        }
        let took = events.last().unwrap().at.millis_since(events[0].at);
        assert_eq!(took, millis, "cap {cap}");
        let tasks: Vec<_> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::AgentStart { input, .. } if !event.is_root() => Some(input[0].text()),
                _ => None,
            })
            .collect();
        assert_eq!(tasks, ["0", "1", "2", "3", "4", "5"], "they start in call order");
    }
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_waits_holds_no_place() {
    // Three levels, twins on each, and one slot.
    let twins = |id: &str| Turn::new().spawn(id, "left").spawn(id, "right");
    let spawning = |id: &str| AgentSpec::new(id, "S").with_tools(["agent_spawn", "lookup"]);
    let model = ScriptedModel::new()
        .agent("main", [twins("a"), Turn::new().text("Done.")])
        .agent("a", [twins("b"), Turn::new().wait(ms(1)).text("a")])
        .agent("b", [twins("c"), Turn::new().wait(ms(1)).text("b")])
        .agent("c", [Turn::new().wait(ms(1)).text("c")]);
    let harness = harness(model)
        .with_subagent(spawning("a"))
        .with_subagent(spawning("b"))
        .with_subagent(AgentSpec::new("c", "C"))
        .with_max_children(1)
        .build()
        .unwrap();
    let events = read(harness.stream_events("go")).await;
    let ends = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::AgentEnd { outcome: Outcome::Success, .. }));
    assert_eq!(ends.count(), 1 + 2 + 4 + 8);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_its_turn_can_be_stopped() {
    let call = (0..4).fold(Turn::new(), |turn, n| turn.spawn("kid", &n.to_string()));
    let model = ScriptedModel::new()
        .agent("main", [call, Turn::new().text("Done.")])
        .agent("kid", [Turn::new().text("Hi").hang()]);
    let harness =
        harness(model).with_subagent(AgentSpec::new("kid", "K")).with_max_children(2).build().unwrap();
    let mut run = harness.stream_events("go");
    let handle = run.handle();
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        if matches!(event.kind, EventKind::TextBlockDelta { .. }) {
            handle.cancel();
        }
        events.push(event);
    }
    laws(&events).unwrap();
    let starts = events.iter().filter(|event| matches!(event.kind, EventKind::AgentStart { .. })).count();
    assert_eq!(starts, 3, "the other two never begin");
    assert!(matches!(events.last().unwrap().kind, EventKind::AgentEnd { outcome: Outcome::Cancelled, .. }));
}

#[tokio::test(start_paused = true)]
async fn agents_that_are_tools_take_a_place_too_and_lend_it() {
    // Two levels of tools, each called twice at once, and one slot.
    let task = |task: &str| serde_json::json!({ "task": task });
    let twice = |tool: &str| Turn::new().call(tool, task("left")).call(tool, task("right"));
    let b = ScriptedModel::new().agent("b", [Turn::new().wait(ms(10)).text("b")]);
    let b = Agent::builder("b", b).build().unwrap().into_tool("B");
    let a = ScriptedModel::new().agent("a", [twice("b"), Turn::new().wait(ms(10)).text("a")]);
    let a = Agent::builder("a", a).with_tool(b).build().unwrap().into_tool("A");
    let model = ScriptedModel::new().agent("main", [twice("a"), Turn::new().text("Done.")]);
    let harness = harness(model).with_tool(a).with_max_children(1).build().unwrap();
    let events = read(harness.stream_events("go")).await;
    let took = events.last().unwrap().at.millis_since(events[0].at);
    assert_eq!(took, 6 * 10, "each in its turn");
    let ends = events.iter().filter(|event| matches!(event.kind, EventKind::AgentEnd { .. }));
    assert_eq!(ends.count(), 1 + 2 + 4);
}

/// Streams without end: text, or the arguments of a call.
struct Endless {
    calls: bool,
}

impl Model for Endless {
    fn name(&self) -> &str {
        "endless"
    }

    fn stream(&self, _: ModelRequest) -> ModelStream {
        let piece = "x".repeat(64 << 10);
        let start = ModelDelta::CallStart { slot: 0, id: None, name: "lookup".into() };
        let calls = self.calls;
        let more = move |_| match calls {
            true => ModelDelta::CallArguments { slot: 0, delta: piece.clone() },
            false => ModelDelta::Text(piece.clone()),
        };
        let deltas = calls.then_some(start).into_iter().chain((0..).map(more));
        Box::pin(futures_util::stream::iter(deltas.map(Ok)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_never_stops_is_stopped() {
    for (calls, expected) in [
        (false, "16777216 bytes is the limit for an answer"),
        (true, "4194304 bytes is the limit for the arguments of a tool call"),
    ] {
        let mut run = harness(Endless { calls }).build().unwrap().stream_events("go");
        let mut bytes = 0;
        while let Some(event) = run.next().await {
            match &event.kind {
                EventKind::TextBlockDelta { delta, .. } | EventKind::ToolCallDelta { delta, .. } => {
                    bytes += delta.len()
                }
                EventKind::AgentEnd { outcome, error, .. } => {
                    let error = error.as_ref().unwrap();
                    assert_eq!((*outcome, &*error.code), (Outcome::Error, "limit"));
                    assert!(error.message.ends_with(expected), "{error}");
                }
                _ => {}
            }
        }
        assert_eq!(bytes, if calls { 4 << 20 } else { 16 << 20 });
    }
}

/// A run can only narrow the limits of its session.
#[tokio::test(start_paused = true)]
async fn a_run_has_limits_of_its_own_below_the_sessions() {
    for (own, most) in [(1, 1), (2, 2), (9, 3)] {
        let call = (0..4).fold(Turn::new(), |turn, n| turn.spawn("kid", &n.to_string()));
        let model = ScriptedModel::new()
            .agent("main", [call, Turn::new().text("Done.")])
            .agent("kid", [Turn::new().wait(ms(10)).text("Hi")]);
        let run =
            harness(model).with_subagent(AgentSpec::new("kid", "K")).with_max_children(3).build().unwrap();
        let events = read(run.stream_events(RunRequest::new("go").with_max_children(own))).await;
        assert_eq!(most_at_once(&events), most, "own limit {own}");
    }
    for (own, deepest) in [(0, 0), (1, 1), (2, 2), (9, 2)] {
        let model = ScriptedModel::new()
            .agent("main", [Turn::new().spawn("kid", "go"), Turn::new().text("Done.")])
            .agent("kid", [Turn::new().spawn("kid", "go"), Turn::new().text("ok")]);
        let kid = AgentSpec::new("kid", "K").with_tools(["agent_spawn"]);
        let run = harness(model).with_subagent(kid).with_max_depth(2).build().unwrap();
        let events = read(run.stream_events(RunRequest::new("go").with_max_depth(own))).await;
        assert_eq!(events.iter().map(|event| event.depth()).max(), Some(deepest), "own limit {own}");
    }
}

/// Within its own limit, too, a parent that waits holds no slot, also in the background.
#[tokio::test(start_paused = true)]
async fn a_narrow_run_does_not_block_itself() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("lead", "a").spawn("lead", "b"), Turn::new().text("Done.")])
        .agent("lead", [Turn::new().spawn("kid", "go"), Turn::new().text("ok")])
        .agent("kid", [Turn::new().wait(ms(10)).text("Hi")]);
    let lead = AgentSpec::new("lead", "L").with_tools(["agent_spawn"]);
    let run = harness(model).with_subagent(lead).with_subagent(AgentSpec::new("kid", "K")).build().unwrap();
    let events = read(run.stream_events(RunRequest::new("go").with_max_children(1))).await;
    assert_eq!(events.iter().filter(|event| matches!(event.kind, EventKind::AgentResult { .. })).count(), 5);
}
