//! Remote agents in other protocols than ours, well-behaved and not: what they send is scripted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream};
use mainstem::{
    event::{EventSource, Rollup},
    message::{BlockId, ConfirmId, StopReason, ToolCallId},
    model::scripted::Turn,
    prelude::*,
    remote::{BegunTurn, RemoteAgent, RemoteControl, RemoteError, RemoteEvent, RemoteTurn},
};
use mainstem_testing::{laws, render};

use crate::support::Spawns;

/// What the remote does after its last event.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    /// It ends the stream.
    Stop,
    /// It sends nothing more, and keeps the stream open until it is cancelled.
    Hang,
    /// As `Hang`, and a cancel changes nothing.
    Ignore,
    Panic,
    Fail,
}

/// A remote that sends these events.
#[derive(Clone, Debug)]
struct Scripted {
    events: Vec<RemoteEvent>,
    then: Then,
    cancels: Arc<AtomicUsize>,
}

impl Scripted {
    fn new(events: impl IntoIterator<Item = RemoteEvent>, then: Then) -> Self {
        Self { events: events.into_iter().collect(), then, cancels: Arc::default() }
    }
}

#[async_trait]
impl RemoteAgent for Scripted {
    async fn begin(&self, _: RemoteTurn) -> Result<BegunTurn, RemoteError> {
        let (then, cancelled) = (self.then, Arc::new(tokio::sync::Notify::new()));
        let control = Arc::new(Control { cancels: self.cancels.clone(), cancelled: cancelled.clone() });
        let last = stream::once(async move {
            match then {
                Then::Stop => None,
                Then::Hang => {
                    cancelled.notified().await;
                    Some(Ok(RemoteEvent::new(end(Outcome::Cancelled))))
                }
                Then::Ignore => std::future::pending().await,
                Then::Panic => panic!("a protocol panics"),
                Then::Fail => Some(Err(RemoteError::unreachable("the wire is cut"))),
            }
        });
        let events = stream::iter(self.events.clone()).map(Ok).chain(last.filter_map(|last| async { last }));
        Ok(BegunTurn::new(events.boxed(), control))
    }
}

struct Control {
    cancels: Arc<AtomicUsize>,
    cancelled: Arc<tokio::sync::Notify>,
}

#[async_trait]
impl RemoteControl for Control {
    async fn cancel(&self, _: &CancelReason) -> Result<(), RemoteError> {
        self.cancels.fetch_add(1, Ordering::SeqCst);
        self.cancelled.notify_one();
        Ok(())
    }

    async fn confirm(&self, _: &ConfirmId, _: Decision) -> Result<(), RemoteError> {
        Ok(())
    }

    async fn submit(&self, _: &ToolCallId, _: ToolOutput) -> Result<(), RemoteError> {
        Ok(())
    }
}

/// The control of a remote that hears nothing.
pub(super) struct Deaf;

#[async_trait]
impl RemoteControl for Deaf {
    async fn cancel(&self, _: &CancelReason) -> Result<(), RemoteError> {
        Ok(())
    }

    async fn confirm(&self, _: &ConfirmId, _: Decision) -> Result<(), RemoteError> {
        Ok(())
    }

    async fn submit(&self, _: &ToolCallId, _: ToolOutput) -> Result<(), RemoteError> {
        Ok(())
    }
}

fn start() -> EventKind {
    EventKind::agent_start("far", Role::Assistant, Vec::new())
}

fn end(outcome: Outcome) -> EventKind {
    EventKind::agent_end(outcome, Rollup::default(), 0)
}

fn block() -> BlockId {
    "b".parse().unwrap()
}

fn says(text: &str) -> [EventKind; 5] {
    [
        EventKind::model_call_start("m", 1),
        EventKind::TextBlockStart { block_id: block() },
        EventKind::TextBlockDelta { block_id: block(), delta: text.to_owned() },
        EventKind::TextBlockEnd { block_id: block(), opaque: Default::default(), discarded: false },
        EventKind::model_call_end(StopReason::Stop, 0),
    ]
}

fn own(kinds: impl IntoIterator<Item = EventKind>) -> Vec<RemoteEvent> {
    kinds.into_iter().map(RemoteEvent::new).collect()
}

/// Events of an agent below the remote one, which claims to be at this place.
fn below(parent: &str, kinds: impl IntoIterator<Item = EventKind>) -> Vec<RemoteEvent> {
    let source = Arc::new(EventSource {
        agent_key: "agent:kid:1".parse().unwrap(),
        agent_id: "kid".into(),
        agent_name: None,
        label: None,
        title: None,
        session_id: "sub-kid".parse().unwrap(),
        parent_session_id: parent.parse().unwrap(),
        depth: 7,
        path: "any/where".into(),
        task_id: Some("task-1".parse().unwrap()),
        turn: 1,
        parent_tool_call_id: None,
        stream_id: 99,
    });
    own(kinds).into_iter().map(|event| event.with_source(Some(source.clone()))).collect()
}

fn harness(remote: Scripted) -> Harness {
    let main =
        ScriptedModel::new().agent("main", [Turn::new().spawn("far", "look"), Turn::new().text("All done.")]);
    let builder = Harness::builder("main", main).with_remote_agent(AgentSpec::new("far", "Far away"), remote);
    builder.with_idle_timeout(Duration::from_secs(60)).build().unwrap()
}

/// Runs to the end; returns the events and how the child ended.
async fn run(remote: Scripted) -> (Vec<AgentEvent>, String) {
    let events: Vec<_> = harness(remote).stream_events("go").collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    let ends: Vec<_> = events
        .iter()
        .filter(|event| event.agent_id() == "far" && matches!(event.kind, EventKind::AgentEnd { .. }))
        .collect();
    assert_eq!(ends.len(), 1, "{}", render(&events));
    let end = ends[0].kind.to_string();
    assert!(events.last().unwrap().kind.to_string().contains("success"), "the root goes on");
    (events, end)
}

#[tokio::test(start_paused = true)]
async fn a_remote_that_keeps_the_laws_is_a_child() {
    let events = [own([start()]), own(says("Hello.")), own([end(Outcome::Success)])].concat();
    let (events, end) = run(Scripted::new(events, Then::Stop)).await;
    assert!(end.starts_with("AGENT_END success"), "{end}");
    assert!(render(&events).contains("AGENT_RESULT \"Hello.\""), "{}", render(&events));
}

#[tokio::test(start_paused = true)]
async fn whatever_a_remote_does_its_child_ends_once() {
    #[track_caller]
    fn starts(end: &str, expected: &str) {
        assert!(end.contains(expected), "{end:?} has no {expected:?}");
    }
    let unlawful = "AGENT_END error 0/0 tok (remote_unlawful";
    let lost = "AGENT_END error 0/0 tok (remote_unreachable";
    let begun = || own([start()]);
    let open = || own(says("Half of it").into_iter().take(3));
    for (events, then, expected) in [
        (vec![], Then::Stop, lost),
        (vec![], Then::Fail, lost),
        (vec![], Then::Panic, "AGENT_END error 0/0 tok (panic"),
        (begun(), Then::Stop, lost),
        ([begun(), open()].concat(), Then::Stop, lost),
        ([begun(), open()].concat(), Then::Fail, lost),
        ([begun(), open()].concat(), Then::Panic, "AGENT_END error 0/0 tok (panic"),
        ([begun(), open(), own([end(Outcome::Success)])].concat(), Then::Stop, unlawful),
        ([begun(), own([end(Outcome::Success)])].concat(), Then::Stop, unlawful),
        ([begun(), own([end(Outcome::Error)])].concat(), Then::Stop, "AGENT_END error 0/0 tok (error"),
        ([begun(), own([end(Outcome::Cancelled)])].concat(), Then::Stop, "AGENT_END cancelled"),
        ([begun(), begun()].concat(), Then::Hang, unlawful),
        ([begun(), below("sub-elsewhere", [start()])].concat(), Then::Hang, unlawful),
        ([begun(), below("main", [start()])].concat(), Then::Hang, unlawful),
        (own(says("Early.")), Then::Hang, unlawful),
    ] {
        let remote = Scripted::new(events.clone(), then);
        let (_, end) = run(remote.clone()).await;
        starts(&end, expected);
        // A remote that has not ended its turn is asked to stop.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let is_over = ["AGENT_END cancelled", "AGENT_END error 0/0 tok (error"];
        let cancels = usize::from(!is_over.contains(&expected));
        assert_eq!(remote.cancels.load(Ordering::SeqCst), cancels, "{end}: {events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_remote_that_does_not_stop_is_left() {
    for (then, is_graceful) in [(Then::Hang, true), (Then::Ignore, false)] {
        let remote = Scripted::new([own([start()]), own(says("Half").into_iter().take(3))].concat(), then);
        let mut run = harness(remote.clone()).stream_events("go");
        let (handle, mut events) = (run.handle(), Vec::new());
        let mut began = tokio::time::Instant::now();
        while let Some(event) = run.next().await {
            if matches!(event.kind, EventKind::TextBlockDelta { .. }) {
                began = tokio::time::Instant::now();
                handle.cancel_because(CancelReason::user("a test"));
            }
            events.push(event);
        }
        laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
        let waited = began.elapsed();
        assert!(if is_graceful { waited.is_zero() } else { waited <= Duration::from_secs(2) }, "{waited:?}");
        assert!(remote.cancels.load(Ordering::SeqCst) >= 1);
        assert!(render(&events).contains("far"), "{}", render(&events));
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_remote_is_ended_by_the_idle_timeout() {
    let remote = Scripted::new(own([start()]), Then::Ignore);
    let main = ScriptedModel::new().agent(
        "main",
        [
            Turn::new().call(
                "agent_spawn",
                serde_json::json!({ "agent_id": "far", "task": "look", "timeout_seconds": 600 }),
            ),
            Turn::new().text("All done."),
        ],
    );
    let builder =
        Harness::builder("main", main).with_remote_agent(AgentSpec::new("far", "Far away"), remote.clone());
    let harness = builder.with_idle_timeout(Duration::from_secs(60)).build().unwrap();
    let events: Vec<_> = harness.stream_events("go").collect().await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    assert!(render(&events).contains("AGENT_END timeout"), "{}", render(&events));
    assert!(remote.cancels.load(Ordering::SeqCst) >= 1);
}
