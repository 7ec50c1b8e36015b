//! Diagnostics of a run: the events of each agent, those that the reader got, and the time to the
//! first token.

use mainstem::{
    event::{Diagnostics, LogOptions, diagnostics::InvocationDiagnostics},
    model::{ModelDelta, scripted::Turn},
    prelude::*,
};
use mainstem_testing::laws;
use serde_json::json;

use crate::support::{OpenNow, Spawns, harness, ms};

/// Returns a child that streams, its twin, and one whose model can't.
fn fleet(log: LogOptions) -> Harness {
    let in_one_piece = ModelDelta::NotStreaming { reason: "this model does not stream".to_owned() };
    let model = ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().spawn("poet", "rose").spawn("poet", "thorn").spawn("mute", "hum"),
                Turn::new().text("Done."),
            ],
        )
        .agent_on("poet", "rose", [Turn::new().wait(ms(20)).pace(ms(10)).say("red as wine")])
        .agent_on("poet", "thorn", [Turn::new().wait(ms(70)).thinking("hm").text("ouch")])
        .agent("mute", [Turn::new().delta(in_one_piece).wait(ms(500)).text("all at once")]);
    let agents = ["poet", "mute"].map(|id| AgentSpec::new(id, id));
    agents.into_iter().fold(harness(model), HarnessBuilder::with_subagent).with_log(log).build().unwrap()
}

fn counted() -> RunOptions {
    RunOptions::new().with_diagnostics(true)
}

fn ring(ring: usize) -> LogOptions {
    let mut options = LogOptions::default();
    options.ring = ring;
    options
}

/// Returns how many of the events are of this invocation.
fn of(events: &[AgentEvent], invocation: &InvocationDiagnostics) -> u64 {
    let is_its = |event: &&AgentEvent| {
        event.agent_key() == invocation.agent_key.as_ref() && event.reply_id().is_some()
    };
    events.iter().filter(is_its).count() as u64
}

/// Checks that everything was read.
fn is_whole(diagnostics: &Diagnostics, events: &[AgentEvent]) {
    assert_eq!(diagnostics.forwarded, events.len() as u64);
    assert_eq!((diagnostics.lost, diagnostics.unread, diagnostics.unknown), (0, 0, 0), "{diagnostics}");
    for invocation in &diagnostics.invocations {
        assert_eq!(invocation.received, of(events, invocation), "{diagnostics}");
        assert_eq!(invocation.forwarded, invocation.received);
    }
}

#[tokio::test(start_paused = true)]
async fn each_child_says_what_it_sent_and_how_long_its_first_token_took() {
    for options in [RunOptions::new(), counted()] {
        let mut run = fleet(LogOptions::default())
            .session("s")
            .run(RunRequest::new("go").with_options(options))
            .unwrap();
        let events: Vec<_> = run.by_ref().collect().await;
        laws(&events).unwrap();
        let diagnostics = run.diagnostics();
        is_whole(&diagnostics, &events);
        assert_eq!(run.handle().diagnostics(), diagnostics);
        insta::allow_duplicates!(insta::assert_snapshot!(diagnostics, @"
        agent     events  read  lost  unread  gaps  first token    work
        main          28    28     0       0     0       500 ms  500 ms
          poet#1      10    10     0       0     0        30 ms   50 ms
          poet#2      11    11     0       0     0        70 ms   70 ms
          mute         9     9     0       0     0       500 ms  500 ms  not streamed: this model does not stream
        "));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_counts_knows_more_than_the_ring_keeps() {
    let mut run = fleet(ring(8)).session("s").run(RunRequest::new("go").with_options(counted())).unwrap();
    let events: Vec<_> = run.by_ref().collect().await;
    is_whole(&run.diagnostics(), &events);

    let mut run = fleet(ring(8)).session("s").run("go").unwrap();
    let total = run.by_ref().collect::<Vec<_>>().await.len() as u64;
    let diagnostics = run.diagnostics();
    assert_eq!((diagnostics.forwarded, diagnostics.unknown), (8, total - 8));
}

#[tokio::test(start_paused = true)]
async fn what_a_reader_lost_or_never_took_is_said() {
    // The child continues in the background while its reader does not read.
    let dig = json!({ "agent_id": "digger", "task": "dig", "timeout_seconds": 0 });
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().call("agent_spawn", dig), Turn::new().pace(ms(1)).say("It digs.")])
        .agent("digger", [Turn::new().wait(ms(5)).repeat("dirt ", 100)]);
    let digs = || {
        let harness = harness(model.clone()).with_subagent(AgentSpec::new("digger", "D")).with_log(ring(20));
        harness
            .build()
            .unwrap()
            .session("s")
            .run(RunRequest::new("go").with_options(counted().with_background(Background::Wait)))
            .unwrap()
    };
    let digger = |diagnostics: &Diagnostics| diagnostics.children().next().unwrap().clone();

    let mut run = digs();
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        let is_start = matches!(event.kind, EventKind::AgentStart { .. }) && !event.is_root();
        events.push(event);
        if is_start {
            tokio::time::sleep(ms(1000)).await;
        }
    }
    laws(&events).unwrap();
    let diagnostics = run.diagnostics();
    let child = digger(&diagnostics);
    assert_eq!((child.forwarded, child.forwarded + child.lost), (of(&events, &child), child.received));
    assert!(child.lost > 80 && child.gaps == 1 && child.unread == 0, "{diagnostics}");
    assert_eq!((child.first_token_ms, child.outcome), (None, Some(Outcome::Success)), "the first is lost");
    assert_eq!(diagnostics.lost, diagnostics.invocations.iter().map(|it| it.lost).sum::<u64>());
    assert_eq!(diagnostics.gaps, 1);

    // A reader that is dropped leaves unread events.
    let mut run = digs();
    let (handle, read) = (run.handle(), 12);
    for _ in 0..read {
        run.next().await;
    }
    drop(run);
    let diagnostics = handle.diagnostics();
    assert_eq!(diagnostics.forwarded, read);
    assert!(diagnostics.unread > 0, "the root was cancelled: {diagnostics}");
    assert_eq!(diagnostics.invocations[0].outcome, Some(Outcome::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_run_before_or_beside_it_is_not_counted() {
    let session = fleet(LogOptions::default()).session("s");
    let run = session.run("go").unwrap();
    let queued = session.queue("later");
    let events: Vec<_> = run.collect().await;
    assert_eq!(queued.diagnostics(), Diagnostics::default());
    drop(queued);
    let mut second = session.run("again").unwrap();
    second.next().await;
    let diagnostics = second.diagnostics();
    assert_eq!(diagnostics.forwarded, 1);
    assert_eq!(diagnostics.received(), diagnostics.seq - events.len() as u64, "{diagnostics}");
}
