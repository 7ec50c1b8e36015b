//! The laws over random fleets with background tasks, promotions and caps, disturbed at every
//! event.

use std::collections::BTreeSet;

use mainstem::{event::LogOptions, message::AgentKey, model::scripted::Turn, prelude::*};
use mainstem_testing::{laws, render};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestCaseResult, TestRunner},
};
use serde_json::json;

use crate::support::{OpenNow, harness, ms};

/// One agent of a random fleet, with its script.
#[derive(Clone, Debug)]
struct Node {
    words: Vec<u64>,
    tool: Option<u64>,
    /// Begun in the background.
    background: bool,
    children: Vec<Self>,
}

#[derive(Clone, Debug)]
struct Case {
    root: Node,
    /// The timeout of calls, in milliseconds; a longer child is promoted.
    wait: u64,
    most: usize,
    at_end: Background,
}

/// The disturbance at an event.
#[derive(Clone, Copy, Debug)]
enum Disturbance {
    None,
    Drop,
    Cancel,
    CancelAgent,
    Interrupt,
    Shutdown,
}

fn node(children: impl Strategy<Value = Vec<Node>> + 'static) -> BoxedStrategy<Node> {
    let words = vec(0..20_u64, 1..5);
    (words, prop::option::of(0..40_u64), any::<bool>(), children)
        .prop_map(|(words, tool, background, children)| Node { words, tool, background, children })
        .boxed()
}

fn case() -> impl Strategy<Value = Case> {
    let leaf = node(Just(Vec::new()));
    let twig = node(vec(leaf.clone(), 1..3));
    let root = node(vec(prop_oneof![1 => leaf, 3 => twig], 1..4));
    let at_end = prop_oneof![Just(Background::Detach), Just(Background::Wait), Just(Background::Cancel)];
    (root, 5..30_u64, 1..5_usize, at_end).prop_map(|(root, wait, most, at_end)| Case {
        root,
        wait,
        most,
        at_end,
    })
}

/// Returns the scripts of all nodes; each is found by its name in the task.
fn script(node: &Node, name: &str, model: ScriptedModel) -> ScriptedModel {
    let task = |index: usize| format!("{}-{index};", name.trim_end_matches(';'));
    let mut first = node.words.iter().fold(Turn::new(), |turn, wait| turn.wait(ms(*wait)).text("word "));
    if let Some(takes) = node.tool {
        first = first.call("lookup", json!({ "word": "w", "takes": takes }));
    }
    for (index, child) in node.children.iter().enumerate() {
        let mut call = json!({ "agent_id": "worker", "task": task(index) });
        if child.background {
            call["timeout_seconds"] = 0.into();
        }
        first = first.call("agent_spawn", call);
    }
    let agent = if name == "n;" { "main" } else { "worker" };
    // A turn more for each possible delivery.
    let later = (0..8).map(|n| Turn::new().text(format!("the end {n}")));
    let own = model.agent_on(agent, name, std::iter::once(first).chain(later));
    node.children.iter().enumerate().fold(own, |model, (index, child)| script(child, &task(index), model))
}

fn build(case: &Case) -> Harness {
    let mut log = LogOptions::default();
    log.ring = 100_000;
    let worker = AgentSpec::new("worker", "Works").with_tools(["lookup", "agent_spawn"]);
    let harness = harness(script(&case.root, "n;", ScriptedModel::new())).with_subagent(worker).with_log(log);
    harness.with_wait(ms(case.wait)).with_max_children(case.most).with_max_tasks(3).build().unwrap()
}

/// Runs a case, disturbed at an event, to the end of all work that it began; returns the events of
/// the session.
async fn play(case: &Case, at: usize, disturbance: Disturbance) -> Vec<AgentEvent> {
    let harness = build(case);
    let session = harness.session("s");
    let mut run = session.run(RunRequest::new("n;").with_background(case.at_end)).unwrap();
    let handle = run.handle();
    let mut children: Vec<AgentKey> = Vec::new();
    let mut seen = 0;
    while let Some(event) = run.next().await {
        children.extend(event.agent_key().filter(|key| !children.contains(key)).cloned());
        seen += 1;
        if seen != at {
            continue;
        }
        let child = children.get(at % children.len().max(1));
        match (disturbance, child) {
            (Disturbance::Drop, _) => break,
            (Disturbance::Cancel, _) => handle.cancel(),
            (Disturbance::CancelAgent, Some(child)) => _ = handle.cancel_agent(child),
            (Disturbance::Interrupt, Some(child)) => handle.send(child, "and?", SendMode::Interrupt).unwrap(),
            (Disturbance::Shutdown, _) => harness.shutdown(ms(1000)).await,
            _ => {}
        }
    }
    drop(run);
    tokio::time::sleep(ms(100_000)).await;
    assert_eq!(harness.tasks().live(), 0, "everything ends by itself");
    assert!(session.tasks().await.unwrap().iter().all(mainstem::task::TaskRecord::is_over));
    harness.shutdown(ms(0)).await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
    let mut all = session.subscribe_from(1);
    std::iter::from_fn(|| all.try_next()).collect()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(future)
}

const ALL: [Disturbance; 5] = [
    Disturbance::Drop,
    Disturbance::Cancel,
    Disturbance::CancelAgent,
    Disturbance::Interrupt,
    Disturbance::Shutdown,
];

fn check(case: &Case, every: usize, coverage: &mut Coverage) -> TestCaseResult {
    let lawful = |events: &[AgentEvent], what: &str| {
        laws(events).map_err(|broken| TestCaseError::fail(format!("{what}: {broken}\n{}", render(events))))
    };
    let whole = block_on(play(case, 0, Disturbance::None));
    lawful(&whole, "undisturbed")?;
    let again = block_on(play(case, 0, Disturbance::None));
    prop_assert_eq!(render(&whole), render(&again), "law 13: the same every time");
    coverage.count(&whole);
    for at in (1..=whole.len()).step_by(every) {
        for disturbance in ALL {
            let events = block_on(play(case, at, disturbance));
            lawful(&events, &format!("{disturbance:?} at {at}"))?;
            coverage.plays += 1;
        }
    }
    Ok(())
}

/// How often the undisturbed cases had each feature.
#[derive(Debug, Default)]
struct Coverage {
    cases: usize,
    plays: usize,
    tasks: usize,
    promoted: usize,
    nested: usize,
}

impl Coverage {
    fn count(&mut self, events: &[AgentEvent]) {
        let tasks: BTreeSet<_> = events.iter().filter_map(|event| event.source()?.task_id.clone()).collect();
        let promoted = events.iter().any(|event| matches!(&event.kind, EventKind::ToolResultTextDelta { delta, .. } if delta.contains("status: promoted")));
        self.cases += 1;
        self.tasks += usize::from(!tasks.is_empty());
        self.promoted += usize::from(promoted);
        self.nested += usize::from(events.iter().any(|event| {
            event.depth() >= 2 && event.source().is_some_and(|source| source.task_id.is_some())
        }));
    }
}

#[test]
fn laws_hold_whatever_happens_to_fleets_with_tasks() {
    let is_slow = std::env::var_os("RUN_SLOW_TESTS").is_some();
    let (cases, every) = if is_slow { (150, 1) } else { (24, 6) };
    let coverage = std::cell::RefCell::new(Coverage::default());
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let result = runner.run(&case(), |case| check(&case, every, &mut coverage.borrow_mut()));
    result.unwrap_or_else(|error| panic!("{error}"));
    let coverage = coverage.into_inner();
    println!("{coverage:?}");
    let at_least = coverage.cases * 3 / 10;
    let Coverage { tasks, promoted, nested, .. } = coverage;
    assert!(tasks.min(promoted).min(nested) >= at_least, "the cases are too tame: {coverage:?}");
}
