//! Poll by poll: when a run is driven, wakes, waits and ends, and what a drop does.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream};
use mainstem_event::{EventKind, EventSink, LogOptions, Origin, Outcome, SessionLog, SystemClock};
use mainstem_message::Message;
use mainstem_model::{Model, ModelDelta, ModelRequest, ModelStream, ScriptedModel, scripted::Turn};
use mainstem_testing::{laws, render};
use tokio::sync::{Mutex, mpsc};
use tokio_test::{assert_pending, assert_ready, task::spawn};

use super::*;
use crate::{Agent, RunContext};

/// Returns a run of a scripted agent, and the log it writes to.
fn run(turn: Turn) -> (RunStream, Arc<SessionLog>) {
    run_of(ScriptedModel::new().agent("main", [turn]))
}

fn run_of(model: impl Model) -> (RunStream, Arc<SessionLog>) {
    let log = SessionLog::with("s".parse().unwrap(), Arc::new(SystemClock), LogOptions::default());
    let origin = Origin {
        reply_id: Some("r".parse().unwrap()),
        ..Origin::session("s".parse().unwrap(), Some("run".parse().unwrap()))
    };
    let cx = RunContext::root("main", EventSink::root(log.clone(), origin)).build();
    let agent = Agent::builder("main", model).build().unwrap();
    (agent.stream_in(cx, Vec::new(), vec![Arc::new(Message::user("go"))]), log)
}

fn recorded(log: &Arc<SessionLog>) -> Vec<AgentEvent> {
    let mut cursor = log.subscribe_from(1);
    std::iter::from_fn(|| cursor.try_next()).collect()
}

fn note(name: &str) -> EventKind {
    EventKind::Custom { name: name.to_owned(), value: serde_json::Value::Null }
}

/// A model that streams what the test sends it, when the test sends it.
struct Dictated(Arc<Mutex<mpsc::Receiver<&'static str>>>);

impl Model for Dictated {
    fn name(&self) -> &str {
        "dictated"
    }

    fn stream(&self, _: ModelRequest) -> ModelStream {
        let words = self.0.clone();
        Box::pin(stream::unfold(words, |words| async {
            let word = words.lock().await.recv().await?;
            Some((Ok(ModelDelta::Text(word.to_owned())), words))
        }))
    }
}

fn dictated() -> (Dictated, mpsc::Sender<&'static str>) {
    let (send, receive) = mpsc::channel(8);
    (Dictated(Arc::new(Mutex::new(receive))), send)
}

#[test]
fn it_does_nothing_before_it_is_polled() {
    let (run, log) = run(Turn::new().text("Hi"));
    assert_eq!(log.last_seq(), 0);
    drop(run);
    assert_eq!(log.last_seq(), 0);
}

#[test]
fn it_ends_with_the_agent_and_stays_ended() {
    let (run, log) = run(Turn::new().text("Hi"));
    let mut run = spawn(run);
    let events: Vec<_> = std::iter::from_fn(|| assert_ready!(run.poll_next())).collect();
    assert_eq!(events, recorded(&log));
    assert!(events[events.len() - 1].is_run_end());
    assert!(run.is_terminated());
    assert_eq!(run.outcome().unwrap().outcome, Outcome::Success);
    log.emit(note("after the end"));
    for _ in 0..3 {
        assert!(assert_ready!(run.poll_next()).is_none());
    }
}

#[test]
fn it_gives_each_event_in_the_poll_that_made_it() {
    let (model, words) = dictated();
    let (run, log) = run_of(model);
    let mut run = spawn(run);
    let mut said = Vec::new();
    while let Poll::Ready(event) = run.poll_next() {
        said.push(event.unwrap().kind.name().to_owned());
    }
    assert_eq!(said, ["AGENT_START", "MODEL_CALL_START"]);
    words.try_send("Hi").unwrap();
    assert!(run.is_woken());
    assert_eq!(assert_ready!(run.poll_next()).unwrap().kind.name(), "TEXT_BLOCK_START");
    assert_eq!(assert_ready!(run.poll_next()).unwrap().kind.name(), "TEXT_BLOCK_DELTA");
    assert_pending!(run.poll_next());
    assert_eq!(log.last_seq(), 4);
    drop(words);
    assert!(run.is_woken());
    assert_eq!(assert_ready!(run.poll_next()).unwrap().kind.name(), "TEXT_BLOCK_END");
}

#[test]
fn it_is_woken_by_what_others_write_to_the_log() {
    let (run, log) = run(Turn::new().hang());
    let mut run = spawn(run);
    while run.poll_next().is_ready() {}
    assert!(!run.is_woken());
    for name in ["once", "and again"] {
        log.emit(note(name));
        assert!(run.is_woken());
        let event = assert_ready!(run.poll_next()).unwrap();
        assert_eq!(event.kind, note(name));
        assert_pending!(run.poll_next());
        assert!(!run.is_woken());
    }
    assert!(run.outcome().is_none() && !run.is_terminated());
}

#[test]
fn a_drop_closes_what_is_open() {
    let (model, words) = dictated();
    let (run, log) = run_of(model);
    let mut run = spawn(run);
    words.try_send("Hi").unwrap();
    while run.poll_next().is_ready() {}
    drop(run);
    let events = recorded(&log);
    laws(&events).unwrap();
    let names: Vec<_> = events.iter().map(|event| event.kind.name()).collect();
    assert_eq!(names[4..], ["TEXT_BLOCK_END", "MODEL_CALL_END", "AGENT_END"], "{}", render(&events));
    let EventKind::AgentEnd { outcome, .. } = events[events.len() - 1].kind else { panic!() };
    assert_eq!(outcome, Outcome::Cancelled);
    assert!(words.is_closed(), "the model's stream is gone too");
}

#[test]
fn a_drop_after_the_end_adds_nothing() {
    let (run, log) = run(Turn::new().text("Hi"));
    let mut run = spawn(run);
    while assert_ready!(run.poll_next()).is_some() {}
    let last = log.last_seq();
    drop(run);
    assert_eq!(log.last_seq(), last);
}

#[test]
fn finish_gives_the_outcome_from_anywhere() {
    for read in 0..9 {
        let (mut run, _) = run(Turn::new().text("Hi"));
        for _ in 0..read {
            assert_ready!(spawn(run.next()).poll());
        }
        let outcome = assert_ready!(spawn(run.finish()).poll());
        assert_eq!(outcome.answer.unwrap().text(), "Hi");
    }
}

/// Reading a stream that is always ready, without another await, must not starve its thread.
#[tokio::test(flavor = "current_thread")]
async fn it_lets_timers_fire() {
    let (mut run, _log) = run(Turn::new().repeat("word ", 1_000_000));
    let fired = Arc::new(AtomicBool::new(false));
    let flag = fired.clone();
    let mut others = tokio::task::JoinSet::new();
    others.spawn(async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        flag.store(true, Ordering::Relaxed);
    });
    while !fired.load(Ordering::Relaxed) {
        assert!(run.next().await.is_some(), "the timer had no turn until the stream was over");
    }
}

#[test]
fn it_can_be_moved_between_threads() {
    fn check<T: Send + Unpin + 'static>() {}
    check::<RunStream>();
}
