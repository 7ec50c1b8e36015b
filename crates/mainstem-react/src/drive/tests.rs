//! Unusual loops: empty answers, the limit, cancels between two steps, and panics.

use std::{
    pin::Pin,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use futures_util::StreamExt;
use mainstem_event::{AgentEvent, EventSink, LogOptions, Origin, SessionLog};
use mainstem_message::ToolSpec;
use mainstem_model::{Model, ModelStream, ScriptedModel, scripted::Turn};
use mainstem_testing::{CountedIds, FakeClock, laws, render};
use mainstem_tool::{Tool, ToolContext, ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::AgentBuilder;

/// Runs an agent, checks the laws, and returns its outcome and its events in lines.
async fn play(agent: AgentBuilder, cancel: CancellationToken) -> (RunOutcome, Vec<String>) {
    let log = SessionLog::with("s".parse().unwrap(), Arc::new(FakeClock::default()), LogOptions::default());
    let origin = Origin {
        reply_id: Some("r".parse().unwrap()),
        ..Origin::session("s".parse().unwrap(), Some("run".parse().unwrap()))
    };
    let cx = RunContext::root("main", EventSink::root(log.clone(), origin));
    let cx = cx.with_ids(Arc::new(CountedIds::default())).with_cancel(cancel).build();
    let agent = agent.build().unwrap();
    let outcome = agent.run(cx, Vec::new(), vec![Arc::new(Message::user("go"))]).await;
    let mut cursor = log.subscribe_from(1);
    let events: Vec<AgentEvent> = std::iter::from_fn(|| cursor.try_next()).collect();
    laws(&events).unwrap_or_else(|broken| panic!("{broken}\n{}", render(&events)));
    (outcome, events.iter().map(|event| event.kind.to_string()).collect())
}

/// Runs an agent on a log whose record is full after so many events; returns its outcome and the
/// last event of its reader.
async fn play_until_full(events: u64, agent: AgentBuilder) -> (RunOutcome, AgentEvent) {
    let log = mainstem_testing::journal::log_on_full_disk(events).await;
    let sink = mainstem_testing::journal::root_sink(&log, "run");
    let cx = RunContext::root("main", sink).with_ids(Arc::new(CountedIds::default())).build();
    let mut run = agent.build().unwrap().stream_in(cx, Vec::new(), vec![Arc::new(Message::user("go"))]);
    let mut seen = Vec::new();
    while let Some(event) = run.next().await {
        seen.push(event);
    }
    laws(&seen).unwrap_or_else(|broken| panic!("{broken}\n{}", render(&seen)));
    (run.outcome().unwrap().clone(), seen.pop().unwrap())
}

#[tokio::test]
async fn a_record_that_fails_anywhere_ends_the_run_with_an_error() {
    let agent = || {
        scripted([call("look"), Turn::new().say("one two three four")])
            .with_tool(act("look", |_, _| Ok("here".into())))
    };
    let (well, end) = play_until_full(1000, agent()).await;
    assert_eq!(well.outcome, Outcome::Success);
    for events in 1..end.seq {
        let (outcome, last) = play_until_full(events, agent()).await;
        assert_eq!(outcome.outcome, Outcome::Error, "full after {events}");
        let why = outcome.error.unwrap();
        assert!(matches!(&why, AgentError::Unrecorded { .. }), "{why}");
        let EventKind::AgentEnd { outcome: Outcome::Error, error: Some(error), .. } = &last.kind else {
            panic!("{last}")
        };
        assert_eq!((error.code.as_str(), &error.message), ("record", &why.to_string()));
        assert!(last.seq <= end.seq, "it does not go on as if nothing were");
    }
}

fn scripted(turns: impl IntoIterator<Item = Turn>) -> AgentBuilder {
    Agent::builder("main", ScriptedModel::new().agent("main", turns))
}

fn call(name: &str) -> Turn {
    Turn::new().call(name, json!({}))
}

/// Returns a turn whose message is blank.
fn blank() -> Turn {
    Turn::new().text(" ")
}

/// A tool that does one thing, written without `async_trait` so that it can do it before the first
/// await.
struct Act {
    name: &'static str,
    act: fn(&ToolContext, &str) -> Result<ToolOutput, ToolError>,
    ran: Arc<Mutex<Vec<&'static str>>>,
}

impl Tool for Act {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name, "", json!({ "type": "object" }))
    }

    fn is_exclusive(&self) -> bool {
        true
    }

    fn call<'a, 'b, 'c>(
        &'a self,
        cx: &'b ToolContext,
        _: Value,
    ) -> Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'c>>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        self.ran.lock().unwrap_or_else(PoisonError::into_inner).push(self.name);
        let output = (self.act)(cx, self.name);
        Box::pin(std::future::ready(output))
    }
}

fn act(name: &'static str, act: fn(&ToolContext, &str) -> Result<ToolOutput, ToolError>) -> Act {
    Act { name, act, ran: Arc::default() }
}

#[tokio::test(start_paused = true)]
async fn a_reminder_at_the_limit_and_the_last_call_are_two_hints() {
    let agent = scripted([blank(), Turn::new().text("That is all.")]).with_max_iterations(1);
    let (outcome, lines) = play(agent, CancellationToken::new()).await;
    assert_eq!(outcome.outcome, Outcome::MaxIterations);
    assert_eq!(outcome.answer.unwrap().text(), "That is all.");
    assert_eq!(lines.iter().filter(|line| line.starts_with("HINT_BLOCK")).count(), 2, "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn only_empty_answers_in_a_row_are_too_many() {
    let work = || call("work");
    let turns = [blank(), work(), blank(), work(), blank(), work(), Turn::new().text("Done.")];
    let agent = scripted(turns).with_tool(act("work", |_, _| Ok("ok".into())));
    let (outcome, _) = play(agent, CancellationToken::new()).await;
    assert_eq!(outcome.answer.unwrap().text(), "Done.");
    let (outcome, _) = play(scripted([blank(), blank(), blank()]), CancellationToken::new()).await;
    assert_eq!(outcome.error.unwrap().to_string(), "the model gave an empty answer");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_cancelled_before_asks_nobody() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (outcome, lines) = play(scripted([Turn::new().text("Hi")]), cancel).await;
    assert_eq!(outcome.outcome, Outcome::Cancelled);
    assert!(!lines.concat().contains("Hi"), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_drops_the_model_call_at_once() {
    let cancel = CancellationToken::new();
    let before = tokio::time::Instant::now();
    let later = async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        cancel.cancel();
    };
    let run = play(scripted([Turn::new().text("Well").hang()]), cancel.clone());
    let ((outcome, lines), ()) = futures_util::join!(run, later);
    assert_eq!((outcome.outcome, before.elapsed().as_millis()), (Outcome::Cancelled, 50));
    assert_eq!(lines[lines.len() - 3..lines.len() - 1], ["TEXT_BLOCK_END", "MODEL_CALL_END cancelled"]);
}

/// Counts the tool calls that reach it.
#[derive(Clone, Default)]
struct Counts(Arc<AtomicU32>);

#[async_trait]
impl crate::Middleware for Counts {
    async fn on_tool_call(
        &self,
        cx: &RunContext,
        call: crate::PendingCall,
        next: crate::NextTool<'_>,
    ) -> Result<ToolOutput, ToolError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        next.run(cx, call).await
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_cancel_no_further_tool_begins() {
    let cancel = |cx: &ToolContext, _: &str| {
        cx.cancellation().cancel();
        Ok("told them".into())
    };
    let second = act("second", |_, _| Ok("too late".into()));
    let ran = second.ran.clone();
    let turn = call("first").call("second", json!({}));
    let counts = Counts::default();
    let agent = scripted([turn, Turn::new().text("never")]).with_tool(act("first", cancel)).with_tool(second);
    let agent = agent.with_middleware(counts.clone());
    let (outcome, lines) = play(agent, CancellationToken::new()).await;
    assert_eq!(outcome.outcome, Outcome::Cancelled);
    assert!(ran.lock().unwrap().is_empty());
    assert_eq!(counts.0.load(Ordering::Relaxed), 1, "nor is a middleware asked about it");
    assert!(lines.contains(&"TOOL_RESULT_END first success (call-1)".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"TOOL_RESULT_END second interrupted (call-2)".to_owned()), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_error_after_a_cancel_is_an_interruption() {
    let cancel = |cx: &ToolContext, _: &str| {
        cx.cancellation().cancel();
        Err(ToolError::new("I had to stop"))
    };
    let (_, lines) = play(scripted([call("f")]).with_tool(act("f", cancel)), CancellationToken::new()).await;
    assert!(lines.contains(&"TOOL_RESULT_END f interrupted (call-1)".to_owned()), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_before_its_first_await_is_an_error_for_the_model() {
    let panics = |_: &ToolContext, name: &str| panic!("{name} is broken");
    let agent = scripted([call("f"), Turn::new().text("I see.")]).with_tool(act("f", panics));
    let (outcome, lines) = play(agent, CancellationToken::new()).await;
    assert_eq!(outcome.outcome, Outcome::Success);
    assert!(lines.contains(&"TOOL_RESULT_TEXT_DELTA \"tool f panicked: f is broken\" (call-1)".to_owned()));
}

/// A model that panics before it returns a stream.
struct Broken;

impl Model for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn stream(&self, _: ModelRequest) -> ModelStream {
        panic!("no stream today")
    }
}

/// A middleware that panics before the first model call.
struct Forgetful;

#[async_trait]
impl crate::Middleware for Forgetful {
    fn system_prompt(&self, _: &RunContext) -> Option<String> {
        panic!("what was I to say")
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_anywhere_ends_the_agent_with_an_error() {
    for (agent, why) in [
        (Agent::builder("main", Broken), "no stream today"),
        (scripted([Turn::new().text("Hi")]).with_middleware(Forgetful), "what was I to say"),
    ] {
        let (outcome, lines) = play(agent, CancellationToken::new()).await;
        assert_eq!(outcome.outcome, Outcome::Error);
        assert_eq!(outcome.error.unwrap().to_string(), format!("a panic in the agent: {why}"));
        assert!(lines[lines.len() - 1].starts_with("AGENT_END error"), "{lines:#?}");
    }
}
