//! The children that a session's events leave, and what cut calls get of them.

use mainstem_event::{EventSource, Origin, Rollup, SessionLog, Timestamp};
use mainstem_message::{Role, StopReason, ToolState};
use mainstem_model::{ScriptedModel, scripted};
use mainstem_policy::Budget;
use mainstem_react::RunContext;
use mainstem_spec::{AgentSpec, SpecSet};
use mainstem_task::TaskSet;
use serde_json::json;

use super::*;
use crate::{
    assembly::Assembly,
    catalog::factory::AgentFactory,
    fleet::{Fleet, Limits},
    options::SpawnOptions,
    spawn::report::RESTARTED,
};

/// The events of a session, folded one by one.
#[derive(Default)]
struct Session {
    last: u64,
    roster: RecordedRoster,
}

/// A turn of a child of the root, which the root's call `call-1` caused.
fn child(name: &str, turn: u32) -> EventSource {
    EventSource {
        agent_key: format!("agent:kid:{name}").parse().unwrap(),
        agent_id: "kid".into(),
        agent_name: None,
        label: Some(name.into()),
        title: None,
        session_id: format!("sub-{name}").parse().unwrap(),
        parent_session_id: "s".parse().unwrap(),
        depth: 1,
        path: "s/kid".into(),
        task_id: None,
        turn,
        parent_tool_call_id: Some("call-1".into()),
        stream_id: u64::from(turn),
    }
}

impl Session {
    /// An event of a child; `None` is the root.
    fn emit(&mut self, child: Option<&EventSource>, kind: EventKind) {
        self.last += 1;
        let reply = child.map_or_else(|| "reply".to_owned(), |one| format!("{}-{}", one.agent_key, one.turn));
        let origin = Origin {
            session_id: "s".parse().unwrap(),
            run_id: Some("run-1".parse().unwrap()),
            reply_id: Some(reply.parse().unwrap()),
            source: child.cloned().map(Arc::new),
            root_id: None,
        };
        let at = Timestamp::from_micros(self.last);
        self.roster.apply(&AgentEvent::new(self.last, at, Arc::new(origin), kind));
    }

    /// A child starts a turn; `version` is that of its declaration, in its first one.
    fn start(&mut self, child: &EventSource, version: Option<&str>, settings: Option<RunSettings>) {
        let kind = EventKind::agent_start("kid", Role::Assistant, vec![Arc::new(Message::user("task"))])
            .with_settings(settings.map(Arc::new))
            .with_spec_version(version.map(Arc::from))
            .with_spec(version.map(|version| Arc::new(json!({ "id": version }))));
        self.emit(Some(child), kind);
    }

    fn answer(&mut self, child: &EventSource, text: &str) {
        let id = || "b".parse().unwrap();
        let (usage, stop_reason, duration_ms) = (None, StopReason::Stop, 0);
        for kind in [
            EventKind::model_call_start("m", 1),
            EventKind::TextBlockStart { block_id: id() },
            EventKind::TextBlockDelta { block_id: id(), delta: text.into() },
            EventKind::TextBlockEnd { block_id: id(), opaque: Default::default(), discarded: false },
            EventKind::model_call_end(stop_reason, duration_ms).with_usage(usage),
        ] {
            self.emit(Some(child), kind);
        }
    }

    fn end(&mut self, child: &EventSource, outcome: Outcome, error: Option<Failure>) {
        let usage = Rollup::default();
        self.emit(Some(child), EventKind::agent_end(outcome, usage, 0).with_error(error));
    }

    /// A whole turn.
    fn turn(&mut self, child: &EventSource, version: Option<&str>, answer: &str) {
        self.start(child, version, None);
        self.answer(child, answer);
        self.end(child, Outcome::Success, None);
    }

    fn call(&mut self, input: Value) {
        self.emit(None, EventKind::tool_result_start("call-1", "agent_fanout", input));
    }

    /// The children, as text: the name, the turn, the version, what was said.
    fn children(self) -> Vec<String> {
        let line = |child: RecordedChild| {
            let said = child.record.history.iter().map(|message| message.text());
            let said = said.collect::<Vec<_>>().join(" ");
            let label = child.record.label().unwrap_or_default().to_owned();
            format!("{label} {} {}: {said}", child.record.source.turn, child.version)
        };
        self.roster.into_parts().0.map(line).collect()
    }

    /// The text and state with which the open call is closed.
    fn closed(&self) -> (String, ToolState) {
        let (delta, state) = ("cut".to_owned(), ToolState::Interrupted);
        let mut text = EventKind::ToolResultTextDelta { tool_call_id: "call-1".into(), delta };
        let mut end = EventKind::tool_result_end("call-1", "agent_fanout", state, 0);
        self.roster.amend(&"s".parse().unwrap(), &mut text);
        self.roster.amend(&"s".parse().unwrap(), &mut end);
        match (text, end) {
            (EventKind::ToolResultTextDelta { delta, .. }, EventKind::ToolResultEnd { state, .. }) => {
                (delta, state)
            }
            other => panic!("{other:?}"),
        }
    }
}

fn restarted() -> Failure {
    Failure::new(RESTARTED, "the process has ended")
}

#[test]
fn a_child_is_remembered_with_all_its_turns() {
    let mut session = Session::default();
    session.turn(&child("ann", 1), Some("v1"), "one");
    session.turn(&child("bob", 1), Some("v1"), "other");
    session.turn(&child("ann", 2), None, "two");
    assert_eq!(session.children(), ["ann 2 v1: task one task two", "bob 1 v1: task other"]);
}

#[test]
fn a_child_without_a_version_and_a_closed_one_are_not_there() {
    let mut session = Session::default();
    session.turn(&child("tool", 1), None, "one");
    session.turn(&child("ann", 1), Some("v1"), "one");
    session.emit(None, EventKind::AgentClosed { agent_key: child("ann", 1).agent_key });
    assert!(session.children().is_empty());
}

#[test]
fn a_child_has_the_settings_of_the_run_that_spawned_it_and_is_of_no_task() {
    let mut session = Session::default();
    let mut settings = RunSettings::default();
    settings.user = Some("ann".into());
    let root = EventKind::agent_start("main", Role::Assistant, Vec::new()).with_settings(Arc::new(settings));
    session.emit(None, root);
    let source = EventSource { task_id: Some("task-1".parse().unwrap()), ..child("kid", 1) };
    session.turn(&source, Some("v1"), "one");
    let kid = session.roster.into_parts().0.next().unwrap();
    assert_eq!(kid.settings.unwrap().user.as_deref(), Some("ann"));
    assert_eq!((kid.record.source.task_id, kid.record.last_activity), (None, Timestamp::from_micros(8)));
}

#[test]
fn a_checkpoint_replaces_what_was_said_before_it() {
    let mut session = Session::default();
    let first = child("ann", 1);
    session.turn(&first, Some("v1"), "one");
    session.start(&child("ann", 2), None, None);
    let messages = vec![Arc::new(Message::user("summary"))];
    session.emit(None, EventKind::state_checkpoint(first.agent_key, messages));
    session.answer(&child("ann", 2), "two");
    session.end(&child("ann", 2), Outcome::Success, None);
    assert_eq!(session.children(), ["ann 2 v1: summary two"]);
}

#[test]
fn a_serialized_roster_goes_on_as_it_was() {
    let mut session = Session::default();
    session.turn(&child("ann", 1), Some("v1"), "one");
    session.turn(&child("bob", 1), Some("v2"), "one");
    session.emit(None, EventKind::AgentClosed { agent_key: child("bob", 1).agent_key });
    let text = serde_json::to_string(&session.roster).unwrap();
    assert!(!text.contains("v2"), "the declaration of a closed child is left out: {text}");
    let mut session = Session { last: session.last, roster: serde_json::from_str(&text).unwrap() };
    session.turn(&child("ann", 2), None, "two");
    assert_eq!(session.roster.specs.keys().map(|version| &**version).collect::<Vec<_>>(), ["v1"]);
    assert_eq!(session.children(), ["ann 2 v1: task one task two"]);
}

#[test]
fn a_cut_call_gets_the_reports_of_its_children() {
    let two = json!({ "spawns": [{}, {}] });
    let mut session = Session::default();
    session.call(two);
    assert_eq!(session.closed(), ("cut".to_owned(), ToolState::Interrupted), "no child has ended");
    session.turn(&child("ann", 1), Some("v1"), "one");
    let (text, state) = session.closed();
    assert!(
        text.contains("reply:\none") && state == ToolState::Interrupted,
        "the other never started: {text}"
    );
    session.turn(&child("bob", 1), None, "no version");
    assert_eq!(session.closed().1, ToolState::Interrupted, "an agent that is a tool reports to its own call");
    session.turn(&child("cid", 1), Some("v1"), "two");
    let (text, state) = session.closed();
    assert!(text.contains("reply:\none") && text.contains("reply:\ntwo"), "{text}");
    assert_eq!(state, ToolState::Success);
}

#[test]
fn a_child_that_was_cut_or_has_failed_makes_its_call_so() {
    #[track_caller]
    fn check(outcome: Outcome, error: Failure, expected: ToolState, words: &str) {
        let mut session = Session::default();
        session.call(json!({ "agent_id": "kid" }));
        session.start(&child("ann", 1), Some("v1"), None);
        session.end(&child("ann", 1), outcome, Some(error));
        let (text, state) = session.closed();
        assert_eq!(state, expected);
        assert!(text.contains(words), "{text}");
    }
    check(Outcome::Error, restarted(), ToolState::Interrupted, "status: interrupted");
    check(Outcome::Error, Failure::new("model", "refused"), ToolState::Error, "status: error");
}

#[test]
fn a_call_with_a_result_is_closed() {
    let mut session = Session::default();
    session.call(json!({ "agent_id": "kid" }));
    session.emit(None, EventKind::tool_result_end("call-1", "agent_spawn", ToolState::Running, 0));
    session.turn(&child("ann", 1), Some("v1"), "later");
    assert_eq!(session.closed().0, "cut");
}

/// Spawns a child, sends to it, and ends.
fn script() -> ScriptedModel {
    let send = json!({ "label": "ann", "message": "and?" });
    let spawn = json!({ "agent_id": "kid", "task": "dig", "label": "ann" });
    ScriptedModel::new()
        .agent(
            "main",
            [
                scripted::Turn::new().call("agent_spawn", spawn),
                scripted::Turn::new().call("agent_send", send),
                scripted::Turn::new().text("Done."),
            ],
        )
        .agent("kid", [scripted::Turn::new().text("First."), scripted::Turn::new().text("Second.")])
}

#[tokio::test]
async fn the_fold_of_the_events_is_the_roster_of_the_session() {
    let factory = AgentFactory::new(Arc::new(script()));
    let mut specs = SpecSet::new();
    specs.insert(AgentSpec::new("kid", "Digs"));
    let (catalog, _) = factory.catalog(&specs);
    let root = factory.root(&AgentSpec::new("main", ""), Limits::default()).unwrap().build().unwrap();
    let fleet = Arc::new(Fleet::new(Limits::default(), TaskSet::in_memory()));
    let log = SessionLog::new("s".parse().unwrap());
    let mut reader = log.subscribe_from(1);
    let sink = mainstem_event::EventSink::root(
        log.clone(),
        Origin::session("s".parse().unwrap(), Some("run-1".parse().unwrap())),
    );
    let assembly = Arc::new(Assembly::new(root.clone()).with_catalog(catalog));
    let cx = RunContext::root("main", sink);
    let cx = fleet.enter(cx, assembly, SpawnOptions::new(), Budget::default()).build();
    let outcome = root.run(cx, Vec::new(), vec![Arc::new(Message::user("go"))]).await;
    assert_eq!(outcome.outcome, Outcome::Success);

    let mut roster = RecordedRoster::default();
    while let Some(event) = reader.try_next() {
        roster.apply(&event);
    }
    let recorded: Vec<_> = roster.into_parts().0.collect();
    assert_eq!(recorded.len(), 1);
    let live =
        fleet.roster.resume(&recorded[0].record.source.agent_key, Timestamp::from_micros(0), None).unwrap();
    let record = &recorded[0].record;
    let said: Vec<_> = live.history.iter().map(|message| message.text()).collect();
    assert_eq!(said, ["dig", "First.", "and?", "Second."]);
    assert_eq!(live.history, record.history);
    let expected = EventSource { turn: 3, parent_tool_call_id: None, stream_id: 0, ..record.source.clone() };
    assert_eq!(live.source, expected);
}
