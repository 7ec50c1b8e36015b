//! The laws over random fleets: the shape of the tree, delays, faults, drops and cancels of the
//! caller, observers.

use std::{cell::RefCell, fmt};

use mainstem::{
    event::LogOptions,
    model::{Retry, RetryPolicy, scripted::Turn},
    policy::{Budget, Cost, Price, Prices},
    prelude::*,
};
use mainstem_testing::{Recording, laws, render};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestCaseResult, TestRunner},
};
use serde_json::json;

use crate::{
    encoders::{check_fleet, check_tasks},
    support::{OpenNow, harness, ms},
};

/// One agent of a random fleet, with its script.
#[derive(Clone, Debug)]
struct Node {
    words: Vec<(u64, u8)>,
    thinks: bool,
    tools: Vec<Call>,
    children: Vec<Self>,
    fanout: bool,
    fault: Fault,
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Lookup(u64),
    Error,
    Panic,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    Cut,
    Panic,
    RateLimited,
    CutInTheEnd,
}

/// The caller's behaviour.
#[derive(Clone, Copy, Debug)]
enum Caller {
    Reads,
    Drops(f64),
    Cancels(f64),
    Pauses(u64),
}

#[derive(Clone, Debug)]
struct Case {
    root: Node,
    caller: Caller,
    ring: usize,
    buffer: usize,
    /// How long each model waits before it answers, in milliseconds.
    latency: u64,
}

fn node(children: impl Strategy<Value = Vec<Node>> + 'static) -> BoxedStrategy<Node> {
    let call = prop_oneof![
        4 => (0..30_u64).prop_map(Call::Lookup),
        1 => Just(Call::Error),
        1 => Just(Call::Panic),
        1 => Just(Call::Unknown),
    ];
    let fault = prop_oneof![
        12 => Just(Fault::None),
        1 => Just(Fault::Cut),
        1 => Just(Fault::Panic),
        1 => Just(Fault::RateLimited),
        1 => Just(Fault::CutInTheEnd),
    ];
    let words = vec((0..4_u64, 0..26_u8), 0..20);
    (words, any::<bool>(), vec(call, 0..3), children, any::<bool>(), fault)
        .prop_map(|(words, thinks, tools, children, fanout, fault)| Node {
            words,
            thinks,
            tools,
            children,
            fanout,
            fault,
        })
        .boxed()
}

fn case() -> impl Strategy<Value = Case> {
    let leaf = node(Just(Vec::new()));
    let twig = node(vec(leaf.clone(), 0..3));
    let branch = node(vec(prop_oneof![leaf, twig], 0..4));
    let root = node(vec(branch, 0..4));
    let caller = prop_oneof![
        3 => Just(Caller::Reads),
        2 => (0.0..1.0).prop_map(Caller::Drops),
        2 => (0.0..1.0).prop_map(Caller::Cancels),
        1 => (1..20_u64).prop_map(Caller::Pauses),
    ];
    (root, caller, 1..200_usize, 1..80_usize).prop_map(|(root, caller, ring, buffer)| Case {
        root,
        caller,
        ring,
        buffer,
        latency: 0,
    })
}

/// Returns the scripts of all nodes; each is found by its name in the task.
fn script(node: &Node, name: &str, latency: u64, model: ScriptedModel) -> ScriptedModel {
    let agent = if name == "n;" { "main" } else { "worker" };
    let task = |index: usize| format!("{}-{index};", name.trim_end_matches(';'));
    let begin = || if latency == 0 { Turn::new() } else { Turn::new().wait(ms(latency)) };
    let mut first = begin();
    if node.thinks {
        first = first.thinking("hm, ").thinking("well");
    }
    for (wait, letter) in &node.words {
        first = first.wait(ms(*wait)).text(char::from(b'a' + letter).to_string());
    }
    first = match node.fault {
        Fault::Cut => first.cut(),
        Fault::Panic => first.panic("as asked"),
        Fault::RateLimited => first.rate_limited(1),
        Fault::None | Fault::CutInTheEnd => first,
    };
    for call in &node.tools {
        first = match call {
            Call::Lookup(takes) => first.call("lookup", json!({ "word": "w", "takes": takes })),
            Call::Error => first.call("flaky", json!({ "how": "error" })),
            Call::Panic => first.call("flaky", json!({ "how": "panic" })),
            Call::Unknown => first.call("nothing", json!({})),
        };
    }
    let spawns: Vec<_> =
        (0..node.children.len()).map(|index| json!({ "agent_id": "worker", "task": task(index) })).collect();
    first = match &spawns[..] {
        [] => first,
        all if node.fanout => first.call("agent_fanout", json!({ "spawns": all })),
        all => all.iter().fold(first, |turn, spawn| turn.call("agent_spawn", spawn.clone())),
    };
    let last = begin().text("the end");
    let last = if node.fault == Fault::CutInTheEnd { last.cut() } else { last };
    let own = model.agent_on(agent, name, [first, last]);
    node.children
        .iter()
        .enumerate()
        .fold(own, |model, (index, child)| script(child, &task(index), latency, model))
}

fn session(case: &Case) -> Session {
    let mut log = LogOptions::default();
    (log.ring, log.buffer) = (case.ring, case.buffer);
    let mut policy = RetryPolicy::default();
    policy.jitter = false;
    let model = Retry::with_policy(script(&case.root, "n;", case.latency, ScriptedModel::new()), policy);
    let worker =
        AgentSpec::new("worker", "Works").with_tools(["lookup", "flaky", "agent_spawn", "agent_fanout"]);
    // So that actual and reserved amounts must add up in any case.
    let price = Price::new(Cost::from_dollars(1), Cost::from_dollars(10));
    let prices = Prices::default().with_price("scripted", price);
    let budget = Budget::default().with_cost(Cost::from_dollars(1_000_000));
    harness(model)
        .with_prices(prices)
        .with_budget(budget)
        .with_subagent(worker)
        .with_log(log)
        .build()
        .unwrap()
        .session("s")
}

/// The caller's events, and those that the session recorded from the caller's last one on.
struct Seen {
    events: Vec<AgentEvent>,
    rest: Vec<AgentEvent>,
}

/// Runs a case, with observers that do not read.
async fn play(case: &Case, whole: usize, observers: usize) -> Seen {
    let session = session(case);
    let mut run = session.run("n;").unwrap();
    let idle: Vec<_> = (0..observers).map(|_| run.handle().subscribe()).collect();
    let handle = run.handle();
    let at = |part: f64| (part * whole as f64) as usize;
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
        match case.caller {
            Caller::Drops(part) if events.len() > at(part) => break,
            Caller::Cancels(part) if events.len() == at(part) + 1 => handle.cancel(),
            Caller::Pauses(pause) if events.len() % 7 == 0 => tokio::time::sleep(ms(pause)).await,
            _ => {}
        }
    }
    let mut keeper = session.log().subscribe_from(events.last().map_or(1, |event| event.seq + 1));
    drop(run);
    let last = session.log().last_seq();
    tokio::time::sleep(ms(100_000)).await;
    assert_eq!(session.log().last_seq(), last, "an agent continued after the run was dropped");
    drop(idle);
    Seen { events, rest: std::iter::from_fn(|| keeper.try_next()).collect() }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(future)
}

fn fail(what: impl fmt::Display, events: &[AgentEvent]) -> TestCaseError {
    TestCaseError::fail(format!("{what}\n{}", render(events)))
}

fn check(case: &Case, coverage: &RefCell<Coverage>) -> TestCaseResult {
    let undisturbed = Case { caller: Caller::Reads, ..case.clone() };
    let whole = block_on(play(&undisturbed, 0, 0)).events;
    laws(&whole).map_err(|broken| fail(broken, &whole))?;
    check_fleet(&whole).map_err(|broken| fail(broken, &whole))?;
    check_tasks(&whole).map_err(|broken| fail(broken, &whole))?;
    no_gap(&whole)?;
    contained(&case.root, &whole)?;
    said_once(&whole)?;
    let seen = block_on(play(case, whole.len(), 0));
    let all = [&seen.events[..], &seen.rest].concat();
    laws(&all).map_err(|broken| fail(broken, &all))?;
    check_fleet(&all).map_err(|broken| fail(broken, &all))?;
    check_tasks(&all).map_err(|broken| fail(broken, &all))?;
    no_gap(&seen.events)?;
    said_once(&all)?;
    if matches!(case.caller, Caller::Reads) {
        prop_assert_eq!(render(&whole), render(&all), "law 13: the same every time");
    }
    let watched = block_on(play(case, whole.len(), 3));
    prop_assert_eq!(render(&seen.events), render(&watched.events), "law 9: observers change nothing");
    plays_again(case)?;
    coverage.borrow_mut().count(case, &whole);
    Ok(())
}

/// Law 8: the caller's own stream has no gap, however small the ring.
fn no_gap(events: &[AgentEvent]) -> TestCaseResult {
    match events.iter().find(|event| matches!(event.kind, EventKind::Gap { .. })) {
        Some(gap) => Err(fail(format!("the caller missed something: {gap}"), events)),
        None => Ok(()),
    }
}

/// Law 11: a fault ends the agent that has it, and no other.
fn contained(root: &Node, events: &[AgentEvent]) -> TestCaseResult {
    fn faults(node: &Node) -> usize {
        let own = usize::from(ends_badly(node));
        own + if node.fault == Fault::Cut || node.fault == Fault::Panic {
            0
        } else {
            node.children.iter().map(faults).sum()
        }
    }
    let bad = |event: &&AgentEvent| matches!(event.kind, EventKind::AgentEnd { outcome: Outcome::Error, .. });
    let failed = events.iter().filter(bad).count();
    prop_assert_eq!(failed, faults(root), "law 11\n{}", render(events));
    Ok(())
}

fn ends_badly(node: &Node) -> bool {
    let acts = !node.tools.is_empty() || !node.children.is_empty();
    let is_mute = node.words.is_empty() && !acts && !node.thinks;
    let has_second_turn = acts || node.words.is_empty();
    match node.fault {
        Fault::Cut | Fault::Panic => true,
        Fault::CutInTheEnd => has_second_turn,
        Fault::None | Fault::RateLimited => is_mute,
    }
}

/// Law 14: no agent repeats itself; each of its turns has one model call with text.
fn said_once(events: &[AgentEvent]) -> TestCaseResult {
    for invocation in mainstem::event::fold::fold(events) {
        let mut texts: Vec<_> =
            invocation.messages().iter().filter_map(|message| message.id.clone()).collect();
        let before = texts.len();
        texts.dedup();
        prop_assert_eq!(texts.len(), before, "law 14");
        let answers = invocation.messages().iter().filter(|message| message.role == Role::Assistant);
        let endings = answers.filter(|message| message.text() == "the end").count();
        prop_assert!(endings <= 1, "law 14: {} endings", endings);
    }
    Ok(())
}

/// A fleet that is run again from its record does what it did, if its models take a moment as all
/// models do: what happens within one microsecond has no order of its own.
fn plays_again(case: &Case) -> TestCaseResult {
    let case = Case { latency: 1, ..case.clone() };
    if matches!(case.caller, Caller::Drops(_)) {
        return Ok(());
    }
    let undisturbed = Case { caller: Caller::Reads, ..case.clone() };
    let whole = block_on(play(&undisturbed, 0, 0)).events;
    let Seen { events, rest } = block_on(play(&case, whole.len(), 0));
    let events = [events, rest].concat();
    block_on(async {
        let recording = Recording::new(events.clone()).map_err(|error| fail(error, &events))?;
        let again = recording.play(&recording.harness().build().unwrap()).await;
        let same = recording.compare(&again);
        same.map_err(|difference| fail(format!("{difference}\n\nthe recording:"), &events))
    })
}

/// How often the cases had each feature.
#[derive(Debug, Default)]
struct Coverage {
    cases: usize,
    events: usize,
    deep: usize,
    twins: usize,
    faults: usize,
    cancels: usize,
}

impl Coverage {
    fn count(&mut self, case: &Case, events: &[AgentEvent]) {
        let ended_badly =
            |e: &AgentEvent| matches!(e.kind, EventKind::AgentEnd { outcome: Outcome::Error, .. });
        let retried = |e: &AgentEvent| matches!(e.kind, EventKind::ModelRetry { .. });
        self.cases += 1;
        self.events += events.len();
        self.deep += usize::from(events.iter().any(|event| event.depth() >= 2));
        self.twins +=
            usize::from(case.root.children.len() > 1 && events.iter().any(|event| event.depth() == 1));
        self.faults += usize::from(events.iter().any(|event| ended_badly(event) || retried(event)));
        self.cancels += usize::from(matches!(case.caller, Caller::Drops(_) | Caller::Cancels(_)));
    }
}

#[test]
fn laws_hold_for_random_fleets() {
    let cases = if std::env::var_os("RUN_SLOW_TESTS").is_some() { 5000 } else { 200 };
    let coverage = RefCell::new(Coverage::default());
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    // Silent in this thread alone: other tests that fail meanwhile must print why.
    let (here, told) = (std::thread::current().id(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() != here {
            told(panic);
        }
    }));
    let result = runner.run(&case(), |case| check(&case, &coverage));
    _ = std::panic::take_hook();
    result.unwrap_or_else(|error| panic!("{error}"));
    let coverage = coverage.into_inner();
    println!("{coverage:?}");
    let at_least = coverage.cases * 3 / 10;
    let Coverage { deep, twins, faults, cancels, .. } = coverage;
    assert!(deep.min(twins).min(faults).min(cancels) >= at_least, "the cases are too tame");
}
