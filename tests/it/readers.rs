//! Readers that are slow, late, many, or absent.

use futures_util::FutureExt as _;
use mainstem::{
    event::{CancelReason, LogOptions, Outcome, SessionLog},
    model::scripted::Turn,
    prelude::*,
};
use mainstem_testing::{laws, render};

use crate::support::{OpenNow, Spawns, harness, ms};

fn chatty(words: usize) -> ScriptedModel {
    ScriptedModel::new()
        .agent(
            "main",
            [Turn::new().spawn("a", "x").spawn("a", "y").spawn("a", "z"), Turn::new().text("Done.")],
        )
        .agent("a", [Turn::new().repeat("word ", words)])
}

fn fleet(words: usize, log: LogOptions) -> Harness {
    harness(chatty(words)).with_subagent(AgentSpec::new("a", "A")).with_log(log).build().unwrap()
}

fn ring(ring: usize, buffer: usize) -> LogOptions {
    let mut options = LogOptions::default();
    (options.ring, options.buffer) = (ring, buffer);
    options
}

#[tokio::test(start_paused = true)]
async fn a_slow_caller_holds_producers_back_and_misses_nothing() {
    let session = fleet(200, ring(16, 8)).session("s");
    let mut run = session.run("go").unwrap();
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        let ahead = session.log().last_seq() - event.seq;
        // The buffer, an event for each live producer, and the events of an ending.
        assert!(ahead <= 8 + 3 + 16, "{ahead} events ahead of the caller at {event}");
        events.push(event);
        tokio::time::sleep(ms(5)).await;
    }
    laws(&events).unwrap();
    assert!(!events.iter().any(|event| matches!(event.kind, EventKind::Gap { .. })));
    assert_eq!(events.iter().filter(|e| e.depth() == 1 && e.kind.name() == "TEXT_BLOCK_DELTA").count(), 600);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_stops_reading_stops_the_work() {
    let session = fleet(1000, LogOptions::default()).session("s");
    let mut run = session.run("go").unwrap();
    for _ in 0..50 {
        run.next().await;
    }
    let before = session.log().last_seq();
    tokio::time::sleep(ms(60_000)).await;
    assert_eq!(session.log().last_seq(), before);
    assert!(before < 50 + 64 + 16, "{before} events for a caller that read 50");
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_falls_behind_gets_one_exact_gap() {
    let session = fleet(100, ring(20, 64)).session("s");
    let run = session.run("go").unwrap();
    let observer = run.handle().subscribe();
    let events: Vec<_> = run.collect().await;
    let late: Vec<_> = observer.take(21).collect().await;
    laws(&late).unwrap();
    let EventKind::Gap { from_seq, to_seq, missed, per_agent, .. } = &late[0].kind else {
        panic!("no gap: {}", late[0])
    };
    let total = events.len() as u64;
    assert_eq!((*from_seq, *to_seq, *missed), (1, total - 20, total - 20));
    let counted = |key: &str| {
        let is_its = |e: &&AgentEvent| e.agent_key().map_or("root", |key| key.as_str()) == key;
        events.iter().take(events.len() - 20).filter(is_its).count() as u64
    };
    for (agent, count) in per_agent {
        assert_eq!(*count, counted(agent.as_str()), "{agent}");
    }
    assert_eq!(render(&late[1..]), render(&events[events.len() - 20..]));
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_never_reads_changes_nothing() {
    let alone: Vec<_> = fleet(50, ring(16, 8)).stream_events("go").collect().await;
    let run = fleet(50, ring(16, 8)).stream_events("go");
    let idle: Vec<_> = (0..20).map(|_| run.handle().subscribe()).collect();
    let watched: Vec<_> = run.collect().await;
    assert_eq!(alone, watched);
    drop(idle);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_comes_back_at_any_event_misses_nothing() {
    let session = fleet(5, LogOptions::default()).session("s");
    let events: Vec<_> = session.run("go").unwrap().collect().await;
    for cut in 0..events.len() {
        let rest = session.log().subscribe_from(events[cut].seq).take(events.len() - cut);
        let again: Vec<_> = futures_util::stream::iter(events[..cut].to_vec()).chain(rest).collect().await;
        assert_eq!(again, events, "resumed at {cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_words_of_a_child_arrive_while_everybody_works() {
    let model = ScriptedModel::new()
        .agent("main", [Turn::new().spawn("a", "x").spawn("a", "y"), Turn::new().text("Done.")])
        .agent_on("a", "x", [Turn::new().text("first").wait(ms(1000)).text("last")])
        .agent("a", [Turn::new().wait(ms(10)).text("second").wait(ms(1000)).text("last")]);
    let mut run = harness(model).with_subagent(AgentSpec::new("a", "A")).build().unwrap().stream_events("go");
    let (mut ended, mut words) = (0, Vec::new());
    while let Some(event) = run.next().await {
        match &event.kind {
            EventKind::TextBlockDelta { delta, .. } => words.push((delta.clone(), ended)),
            EventKind::AgentEnd { .. } => ended += 1,
            _ => {}
        }
    }
    assert_eq!(words[..2], [("first".to_owned(), 0), ("second".to_owned(), 0)], "before anybody has ended");
}

#[tokio::test(start_paused = true)]
async fn a_second_run_of_a_session_is_refused_or_queued() {
    let session = fleet(3, LogOptions::default()).session("s");
    // Held and not polled: a second run fails instead of waiting without end.
    let first = session.run("one").unwrap();
    let refused = session.run("two").unwrap_err();
    assert_eq!(refused.run.as_ref(), Some(first.id()));
    let refused = refused.to_string();
    assert!(refused.starts_with("another run of the session is active (`run-1`); wait"), "{refused}");
    let second = session.queue("two");
    let status = |run: &Run| run.handle().status();
    assert!(matches!((status(&first), status(&second)), (RunStatus::Running, RunStatus::Queued)));
    assert_eq!(session.queued().iter().map(RunHandle::id).collect::<Vec<_>>(), [second.id()]);
    let (one, two) = (first.handle(), second.handle());
    let (a, b) = futures_util::join!(first.collect::<Vec<_>>(), second.collect::<Vec<_>>());
    laws(&a).unwrap();
    laws(&b).unwrap();
    assert_eq!(b[0].seq, a[a.len() - 1].seq + 1);
    assert!(one.status().outcome().is_some() && two.status().outcome().is_some());
    assert!(session.queued().is_empty() && session.active().is_none());
}

#[tokio::test(start_paused = true)]
async fn queued_runs_begin_in_the_order_of_the_calls() {
    let model = ScriptedModel::new().agent("main", ["a", "b", "c", "d"].map(|text| Turn::new().text(text)));
    let session = harness(model).build().unwrap().session("s");
    let first = session.run("one").unwrap();
    let queued = ["two", "three", "four"].map(|text| session.queue(text));
    let ids = queued.each_ref().map(|run| run.id().clone());
    // The last one is polled first.
    let mut last_first = queued.map(Run::reply).into_iter().rev().collect::<Vec<_>>();
    last_first.push(first.reply());
    let replies = futures_util::future::join_all(last_first).await;
    assert!(replies.iter().all(Result::is_ok), "{replies:?}");
    let runs = session.runs().into_iter().map(|run| run.id);
    assert_eq!(runs.skip(1).collect::<Vec<_>>(), ids);
}

#[tokio::test(start_paused = true)]
async fn a_queued_run_that_is_cancelled_or_dropped_leaves_the_queue() {
    let session = fleet(3, LogOptions::default()).session("s");
    let first = session.run("one").unwrap();
    let (cancelled, dropped) = (session.queue("two"), session.queue("x"));
    let handles = [cancelled.handle(), dropped.handle()];
    drop(dropped);
    handles[0].cancel();
    assert!(cancelled.collect::<Vec<_>>().await.is_empty());
    assert_eq!(handles[0].status().outcome().unwrap().outcome, Outcome::Cancelled);
    assert!(matches!(handles[1].status(), RunStatus::Dropped));
    assert!(handles[1].outcome().await.is_none());
    assert!(session.queued().is_empty());
    // A turn that is held and dropped is free again.
    drop(first);
    assert!(session.run("three").unwrap().reply().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_queued_run_that_is_cancelled_as_its_turn_comes_does_not_begin() {
    let session = fleet(3, LogOptions::default()).session("s");
    let first = session.run("one").unwrap();
    let mut second = session.queue("two");
    assert!(second.next().now_or_never().is_none(), "it waits");
    drop(first);
    second.handle().cancel_because(CancelReason::Shutdown);
    assert!(second.next().await.is_none());
    assert!(session.runs()[0].never_began, "{:?}", session.runs());
    // Its permit is free again.
    assert!(session.run("three").unwrap().reply().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_queued_run_that_is_cancelled_is_one_of_the_sessions_runs() {
    // It waits for its caller in the middle of its text.
    let session = fleet(200, ring(16, 8)).session("s");
    let mut first = session.run("one").unwrap();
    let start = first.next().await.unwrap();
    let cancelled = session.queue("two");
    let handle = cancelled.handle();
    handle.cancel_because(CancelReason::user("over HTTP"));
    // At once, while the first continues.
    assert!(matches!(cancelled.reply().await, Err(RunError::Cancelled(CancelReason::User { .. }))));
    let mut events = vec![start];
    events.extend(first.collect::<Vec<_>>().await);
    laws(&events).unwrap();
    let own: Vec<_> = events.iter().filter(|event| event.run_id() == Some(handle.id())).collect();
    assert_eq!(own.len(), 1, "{own:?}");
    assert!(own[0].is_queued_run_cancel(), "{own:?}");
    assert_eq!(own[0].kind.to_string(), "RUN_CANCELLED cancelled by the user (over HTTP)");
    let runs = session.runs();
    let outcomes: Vec<_> = runs.iter().map(|run| run.end.as_ref().unwrap().outcome).collect();
    assert_eq!(outcomes, [Outcome::Success, Outcome::Cancelled]);
    let record = runs.iter().find(|run| run.id == *handle.id()).unwrap();
    assert!(record.never_began && record.first <= own[0].seq, "{record:?}");
    // It can't be resumed, and the next run begins.
    assert_eq!(session.resume(RunOptions::new()).unwrap_err(), NothingToResume::Answered);
    assert_eq!(session.queue("three").collect::<Vec<_>>().await[0].kind.name(), "AGENT_START");
}

/// The log is `Send` and `Sync`, and so are its readers and the run.
#[test]
fn runs_can_be_moved_between_threads() {
    fn is_send<T: Send>() {}
    is_send::<Run>();
    is_send::<RunHandle>();
    is_send::<mainstem::event::Cursor>();
    is_send::<std::sync::Arc<SessionLog>>();
}
