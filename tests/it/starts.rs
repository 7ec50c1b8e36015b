//! Who starts: in which order, under which name, and whom a run has just written.

use std::sync::atomic::{AtomicU64, Ordering};

use mainstem::{
    event::{TaskStatus, Timestamp, event::EventType},
    message::{SessionId, TaskId},
    model::scripted::Turn,
    prelude::*,
    task::{ExecutorId, Expected, MemoryTaskStore, TaskChange, TaskError, TaskFilter, TaskRecord, TaskStore},
};
use mainstem_testing::{laws, render};
use serde_json::{Value, json};

use crate::support::{Spawns, harness, ms};

/// A store in memory that takes the longer to keep a record, the earlier it comes.
#[derive(Default)]
struct Slow(MemoryTaskStore, AtomicU64);

#[async_trait]
impl TaskStore for Slow {
    async fn create(&self, record: TaskRecord) -> Result<(), TaskError> {
        tokio::time::sleep(ms(100 - 30 * self.1.fetch_add(1, Ordering::Relaxed))).await;
        self.0.create(record).await
    }

    async fn update(
        &self,
        id: &TaskId,
        expected: Expected,
        change: TaskChange,
        now: Timestamp,
    ) -> Result<TaskRecord, TaskError> {
        self.0.update(id, expected, change, now).await
    }

    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, TaskError> {
        self.0.get(id).await
    }

    async fn list(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, TaskError> {
        self.0.list(filter).await
    }

    async fn remove(&self, id: &TaskId) -> Result<TaskRecord, TaskError> {
        self.0.remove(id).await
    }

    async fn renew(&self, executor: &ExecutorId, until: Timestamp) -> Result<(), TaskError> {
        self.0.renew(executor, until).await
    }

    async fn lease(&self, executor: &ExecutorId) -> Result<Option<Timestamp>, TaskError> {
        self.0.lease(executor).await
    }

    async fn release(&self, executor: &ExecutorId) -> Result<(), TaskError> {
        self.0.release(executor).await
    }

    fn is_shared(&self) -> bool {
        false
    }
}

async fn read(run: Run) -> Vec<AgentEvent> {
    let events: Vec<_> = run.collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    events
}

/// Returns what each child was asked, in the order of their starts.
fn started(events: &[AgentEvent]) -> Vec<String> {
    let task = |event: &AgentEvent| match &event.kind {
        EventKind::AgentStart { input, .. } if !event.is_root() => Some(input[0].text()),
        _ => None,
    };
    events.iter().filter_map(task).collect()
}

#[tokio::test(start_paused = true)]
async fn children_start_in_call_order_whatever_their_records_take() {
    let spawn =
        |task: &str, seconds: u64| json!({ "agent_id": "kid", "task": task, "timeout_seconds": seconds });
    let calls = Turn::new()
        .call("agent_spawn", spawn("1", 0))
        .call("agent_spawn", spawn("2", 0))
        .call("agent_spawn", spawn("3", 30))
        .call("agent_spawn", spawn("4", 0));
    let model = ScriptedModel::new()
        .agent("main", [calls, Turn::new().text("Begun.")])
        .agent("kid", [Turn::new().wait(ms(5)).text("ok")]);
    let harness = harness(model)
        .with_subagent(AgentSpec::new("kid", "K"))
        .with_task_store(Slow::default())
        .build()
        .unwrap();
    let run = harness.stream_events(RunRequest::new("go").with_background(Background::Wait));
    let events: Vec<_> = run.collect().await;
    assert_eq!(started(&events), ["1", "2", "3", "4"], "{}", render(&events));
}

/// One that waits for a permit does not pass those before it that wait for a task to be recorded.
#[tokio::test(start_paused = true)]
async fn children_that_queue_start_in_call_order() {
    let spawn =
        |task: &str, seconds: u64| json!({ "agent_id": "kid", "task": task, "timeout_seconds": seconds });
    let calls = [("1", 30), ("2", 0), ("3", 30), ("4", 30), ("5", 30), ("6", 0), ("7", 30)];
    let calls = calls
        .into_iter()
        .fold(Turn::new(), |turn, (task, seconds)| turn.call("agent_spawn", spawn(task, seconds)));
    let model = ScriptedModel::new()
        .agent("main", [calls, Turn::new().text("Begun.")])
        .agent_on("kid", "1", [Turn::new().wait(ms(5)).text("ok")])
        .agent("kid", [Turn::new().text("ok")]);
    for most in 1..5 {
        let harness = harness(model.clone())
            .with_subagent(AgentSpec::new("kid", "K"))
            .with_max_children(most)
            .with_task_store(Slow::default())
            .build()
            .unwrap();
        let run = harness.stream_events(RunRequest::new("go").with_background(Background::Wait));
        let events = read(run).await;
        let called = started(&events).into_iter().filter(|task| !["2", "6"].contains(&task.as_str()));
        assert_eq!(called.collect::<Vec<_>>(), ["1", "3", "4", "5", "7"], "{}", render(&events));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_runs_does_not_wait_for_a_run_that_is_not_read() {
    let spawn =
        |task: &str, seconds: u64| json!({ "agent_id": "kid", "task": task, "timeout_seconds": seconds });
    let calls = Turn::new()
        .call("agent_spawn", spawn("1", 0))
        .call("agent_spawn", spawn("2", 30))
        .call("agent_spawn", spawn("3", 0));
    let model = ScriptedModel::new()
        .agent("main", [calls, Turn::new().text("Begun.")])
        .agent("kid", [Turn::new().wait(ms(5)).text("ok")]);
    let harness = harness(model)
        .with_subagent(AgentSpec::new("kid", "K"))
        .with_task_store(Slow::default())
        .build()
        .unwrap();
    let mut run = harness.stream_events(RunRequest::new("go").with_background(Background::Wait));
    let mut events: Vec<AgentEvent> = Vec::new();
    let is_begun =
        |event: &&AgentEvent| matches!(event.kind, EventKind::TaskUpdated { to: TaskStatus::Running, .. });
    while events.iter().filter(is_begun).count() < 2 {
        events.push(run.next().await.unwrap());
    }
    let tasks = harness.tasks().live_below(run.handle().session().id());
    let ended = harness.tasks().wait(&tasks, ms(60_000)).await.unwrap();
    assert!(ended.is_some(), "{}", render(&events));
    events.extend(run.collect::<Vec<_>>().await);
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    assert_eq!(started(&events), ["1", "2", "3"], "{}", render(&events));
}

/// Two hundred calls in one answer, which wait so long for their children: of a run's root, and of
/// a background task, whose polls tokio bounds.
async fn many_start_in_call_order(places: usize, seconds: impl Fn(usize) -> u64) {
    let tasks: Vec<_> = (0..200).map(|number| number.to_string()).collect();
    let spawn = |turn: Turn, agent: &str, task: &str, seconds: u64| {
        turn.call("agent_spawn", json!({ "agent_id": agent, "task": task, "timeout_seconds": seconds }))
    };
    let calls = || {
        let tasks = tasks.iter().enumerate();
        tasks.fold(Turn::new(), |turn, (number, task)| spawn(turn, "kid", task, seconds(number)))
    };
    for (root, skipped) in [(calls(), 0), (spawn(Turn::new(), "lead", "go", 0), 1)] {
        // A task that ends late is told of in a further turn.
        let then = |first: Turn| [first].into_iter().chain((0..200).map(|_| Turn::new().text("Begun.")));
        let model = ScriptedModel::new()
            .agent("main", then(root))
            .agent("lead", then(calls()))
            .agent("kid", [Turn::new().text("ok")]);
        let lead = AgentSpec::new("lead", "L").with_tools(["agent_spawn"]);
        let harness = harness(model).with_subagent(lead).with_subagent(AgentSpec::new("kid", "K"));
        let harness = harness.with_max_children(400).with_max_tasks(201).build().unwrap();
        let options = RunOptions::new().with_background(Background::Wait).with_max_children(places);
        let events: Vec<_> =
            harness.stream_events(RunRequest::new("go").with_options(options)).collect().await;
        let started = started(&events).split_off(skipped);
        let first = started.iter().zip(&tasks).position(|(started, task)| started != task);
        assert_eq!((first, started.len()), (None, tasks.len()), "{started:?}\n{}", render(&events));
    }
}

#[tokio::test(start_paused = true)]
async fn two_hundred_start_in_call_order_on_one_thread() {
    many_start_in_call_order(200, |_| 600).await;
    many_start_in_call_order(200, |_| 0).await;
    many_start_in_call_order(200, |number| if number % 8 == 7 { 0 } else { 600 }).await;
    many_start_in_call_order(16, |_| 600).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_start_in_call_order_on_two_threads() {
    many_start_in_call_order(200, |_| 600).await;
    many_start_in_call_order(200, |_| 0).await;
    many_start_in_call_order(200, |number| if number % 8 == 7 { 0 } else { 600 }).await;
    many_start_in_call_order(16, |_| 600).await;
}

#[tokio::test(start_paused = true)]
async fn every_source_has_a_name_and_the_label_of_its_spawn() {
    let call = |label: Option<&str>| json!({ "agent_id": "kid", "task": "go", "label": label });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", call(Some(" First "))).call("agent_spawn", call(None)),
                Turn::new().call("agent_send", json!({ "label": "first", "message": "more" })),
                Turn::new().text("Done."),
            ],
        )
        .agent("kid", [Turn::new().text("ok"), Turn::new().text("ok"), Turn::new().text("ok")]);
    let harness = harness(model).with_subagent(AgentSpec::new("kid", "K")).build().unwrap();
    let events = read(harness.stream_events("go")).await;
    let labels = |turn: u32| {
        let of_turn = events.iter().filter_map(AgentEvent::source).filter(move |source| source.turn == turn);
        let mut labels: Vec<_> = of_turn.map(|source| source.label.as_deref().unwrap_or("-")).collect();
        labels.dedup();
        labels.sort_unstable();
        labels.dedup();
        labels
    };
    assert_eq!((labels(1), labels(2)), (vec!["-", "First"], vec!["First"]));
    let names = events.iter().filter_map(AgentEvent::source).map(|source| source.agent_name.as_deref());
    assert!(names.clone().count() > 0 && names.into_iter().all(|name| name == Some("kid")));
    let json = events.iter().find(|event| !event.is_root()).unwrap().to_json();
    assert!(json.contains(r#""agentName":"kid","label":"First""#), "{json}");
}

#[tokio::test(start_paused = true)]
async fn numbers_that_are_sent_as_text_are_understood() {
    let call = json!({ "agent_id": "kid", "task": "go", "timeout_seconds": "0" });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", call),
                Turn::new().call("agent_send", json!({ "label": "x", "message": "y", "mode": "later" })),
                Turn::new().text("Done."),
            ],
        )
        .agent("kid", [Turn::new().text("ok")]);
    let harness = harness(model).with_subagent(AgentSpec::new("kid", "K")).build().unwrap();
    let events: Vec<_> = harness.stream_events("go").collect().await;
    let input = |kind: &EventKind| match kind {
        EventKind::ToolResultStart { input, .. } => Some(input.clone()),
        _ => None,
    };
    let inputs: Vec<Value> = events.iter().filter_map(|event| input(&event.kind)).collect();
    assert_eq!(inputs[0]["timeout_seconds"], json!(0), "what is executed is said");
    let texts = render(&events);
    assert!(texts.contains("status: accepted"), "{texts}");
    let said: String = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolResultTextDelta { delta, .. } => Some(delta.as_str()),
            _ => None,
        })
        .collect();
    let expected = "- at /mode: must be \"queue\", \"steer\" or \"interrupt\", got \"later\"";
    assert!(said.contains(expected) && !said.contains("oneOf"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn the_list_says_who_waits_and_when_it_was_last_heard() {
    let spawn = json!({ "agent_id": "lead", "task": "go", "timeout_seconds": 0 });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_spawn", spawn),
                Turn::new().call("lookup", json!({ "word": "x", "takes": 50 })),
                Turn::new().call("agent_list", json!({})),
                Turn::new().text("Done."),
            ],
        )
        .agent("lead", [Turn::new().spawn("kid", "go"), Turn::new().text("Led.")])
        .agent("kid", [Turn::new().wait(ms(20)).text("a").wait(ms(500)).text("b")]);
    let lead = AgentSpec::new("lead", "L").with_tools(["agent_spawn"]);
    let harness =
        harness(model).with_subagent(lead).with_subagent(AgentSpec::new("kid", "K")).build().unwrap();
    let events: Vec<_> = harness.stream_events("go").collect().await;
    let list = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::ToolResultTextDelta { delta, .. } if event.is_root() => Some(delta.clone()),
        _ => None,
    });
    let list: Value = serde_json::from_str(&list.unwrap()).unwrap();
    let row = |at: usize| (list[at]["agent_id"].as_str().unwrap(), list[at]["status"].as_str().unwrap());
    assert_eq!([row(0), row(1)], [("lead", "waiting"), ("kid", "running")]);
    assert_eq!(list[1]["last_activity"], "2026-01-01T00:00:00.020000Z");
    harness.shutdown(ms(0)).await;
}

#[tokio::test(start_paused = true)]
async fn v1_says_why_there_is_no_answer() {
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Half an ").rate_limited(1)]);
    let events: Vec<_> =
        harness(model).build().unwrap().stream("go", StreamOptions::default()).collect().await;
    let last = events.last().unwrap();
    assert_eq!((last.kind, last.is_last, last.message.content.len()), (EventType::AgentResult, true, 0));
    assert_eq!(last.error.as_ref().unwrap().code, "rate_limited");
    let model = ScriptedModel::new().agent("main", [Turn::new().text("Whole.")]);
    let events: Vec<_> =
        harness(model).build().unwrap().stream("go", StreamOptions::default()).collect().await;
    let results: Vec<_> = events.iter().filter(|event| event.kind == EventType::AgentResult).collect();
    assert!(results.len() == 1 && results[0].error.is_none() && results[0].message.text() == "Whole.");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_was_just_written_can_be_spawned() {
    let dir = tempfile::tempdir().unwrap();
    let file = "---\ndescription: Finds typos\ntools: [lookup]\n---\nYou find typos.\n";
    let name = json!({ "name": "typo-finder", "description": "Finds typos" });
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().spawn("typo-finder", "too early"),
                Turn::new().call("agent_generate", name),
                Turn::new().spawn("typo-finder", "look"),
                Turn::new().text("Done."),
            ],
        )
        .agent("agent_generate", [Turn::new().text(file)])
        .agent("typo-finder", [Turn::new().text("None.")]);
    let harness = harness(model).with_workspace(dir.path()).with_agent_generate(true).build().unwrap();
    let events = read(harness.stream_events("go")).await;
    let starts: Vec<_> = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::AgentStart { .. }))
        .map(AgentEvent::agent_label)
        .collect();
    assert_eq!(starts, ["main", "agent_generate", "typo-finder"]);
    let tasks =
        harness.tasks().list(&TaskFilter::of_root(SessionId::try_from("session-1").unwrap())).await.unwrap();
    assert!(tasks.iter().all(|task| task.status == TaskStatus::Completed));
}
