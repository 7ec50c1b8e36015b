//! Streams of a real fleet, of which events are lost, doubled, moved and changed on their way: what
//! comes out keeps the laws, and the child ends once.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use mainstem::{
    event::EventSource,
    message::SessionId,
    model::scripted::Turn,
    prelude::*,
    remote::{BegunTurn, RemoteAgent, RemoteError, RemoteEvent, RemoteTurn},
};
use mainstem_testing::{laws, render};
use proptest::{prelude::*, test_runner::Config};
use serde_json::json;

use crate::{
    chain::{builder, events, local, scripts},
    protocols::Deaf,
};

/// The events of a fleet, as its server would send them.
#[derive(Clone, Debug)]
struct Recorded {
    events: Vec<(Option<Arc<EventSource>>, EventKind)>,
    /// The session of the agent that was asked.
    asked: SessionId,
}

#[async_trait]
impl RemoteAgent for Recorded {
    async fn begin(&self, turn: RemoteTurn) -> Result<BegunTurn, RemoteError> {
        let here = |id: &SessionId| if *id == self.asked { turn.session.clone() } else { id.clone() };
        let placed = |source: &Arc<EventSource>| {
            let parent_session_id = here(&source.parent_session_id);
            Arc::new(EventSource { parent_session_id, ..(**source).clone() })
        };
        let events: Vec<_> = self
            .events
            .iter()
            .map(|(source, kind)| Ok(RemoteEvent::new(kind.clone()).with_source(source.as_ref().map(placed))))
            .collect();
        Ok(BegunTurn::new(stream::iter(events).boxed(), Arc::new(Deaf)))
    }
}

/// A change of a stream, at places that are taken modulo its length.
#[derive(Clone, Debug)]
enum Change {
    Lose(usize),
    Double(usize),
    Swap(usize, usize),
    /// An event becomes one of another agent.
    Move(usize, usize),
    Cut(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<usize>().prop_map(Change::Lose),
        any::<usize>().prop_map(Change::Double),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Change::Swap(a, b)),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Change::Move(a, b)),
        any::<usize>().prop_map(Change::Cut),
    ]
}

impl Recorded {
    /// Records a fleet in this process: parallel children, some in the background, whose reports
    /// are hints.
    async fn take() -> Self {
        let spawn = |label: &str, wait: u64| json!({ "agent_id": "third", "task": label, "label": label, "timeout_seconds": wait });
        let fanout = json!({ "spawns": [
            { "agent_id": "third", "task": "e" }, { "agent_id": "third", "task": "f" }
        ] });
        let second = [
            Turn::new().text("Go.").call("agent_spawn", spawn("a", 0)).call("agent_spawn", spawn("b", 30)),
            Turn::new().call("agent_fanout", fanout).call("echo", json!({})),
            Turn::new().call("agent_send", json!({ "label": "b", "message": "more" })),
            Turn::new().text("It is so."),
        ];
        let all = scripts("main", ScriptedModel::new()).agent("second", second);
        let all = (0..6).fold(all, |model, _| scripts("third", model));
        let one = builder("main", all).with_subagent(local("second")).with_subagent(local("third"));
        let recorded = events(&one.build().unwrap()).await;
        let asked = recorded.iter().find_map(AgentEvent::source).unwrap().session_id.clone();
        let below = recorded.into_iter().filter(|event| event.depth() > 0);
        let events = below.map(|event| {
            let source = event.origin.source.clone().filter(|source| source.session_id != asked);
            (source, event.kind.clone())
        });
        Self { events: events.collect(), asked }
    }

    fn changed(mut self, changes: &[Change]) -> Self {
        for change in changes {
            let len = self.events.len();
            if len < 2 {
                break;
            }
            match *change {
                Change::Lose(at) => drop(self.events.remove(at % len)),
                Change::Double(at) => self.events.insert(at % len, self.events[at % len].clone()),
                Change::Swap(a, b) => self.events.swap(a % len, b % len),
                Change::Move(to, from) => self.events[to % len].0 = self.events[from % len].0.clone(),
                Change::Cut(at) => self.events.truncate(1 + at % len),
            }
        }
        self
    }
}

#[test]
fn whatever_is_lost_or_changed_on_the_way_the_laws_hold() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let recorded = runtime.block_on(Recorded::take());
    let is_slow = std::env::var_os("RUN_SLOW_TESTS").is_some();
    let config =
        Config { cases: if is_slow { 20_000 } else { 400 }, failure_persistence: None, ..Config::default() };
    let changes = prop::collection::vec(change(), 0..4);
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let outcome = runner.run(&changes, |changes| {
        let remote = recorded.clone().changed(&changes);
        let main = scripts("main", ScriptedModel::new());
        let builder =
            Harness::builder("main", main).with_remote_agent(AgentSpec::new("second", "Far"), remote);
        let harness = builder.build().unwrap();
        let events: Vec<_> = runtime.block_on(harness.stream_events("go").collect());
        if let Err(error) = laws(&events) {
            return Err(TestCaseError::fail(format!("{error}\n{}", render(&events))));
        }
        let ends =
            |event: &&AgentEvent| event.depth() == 1 && matches!(event.kind, EventKind::AgentEnd { .. });
        prop_assert_eq!(events.iter().filter(ends).count(), 1);
        let whole = changes.is_empty();
        prop_assert!(!whole || events.iter().any(|event| event.depth() == 2), "the fleet is whole");
        Ok(())
    });
    outcome.unwrap();
}
