//! A child that runs elsewhere, as its fleet sees it. The stand-in emits what a server sent.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use mainstem_event::{
    AgentEvent, CancelReason, ChildStatus, EventKind, EventSink, Origin, Outcome, Rollup, SessionLog,
};
use mainstem_message::{AgentKey, Role, StopReason};
use mainstem_model::ScriptedModel;
use mainstem_policy::{Budget, Rules};
use mainstem_spec::AgentSpec;
use mainstem_task::TaskSet;
use tokio::sync::Notify;

use super::*;
use crate::{
    assembly::Assembly,
    catalog::CatalogEntry,
    fleet::{Fleet, Limits},
    member::Member,
    options::SpawnOptions,
    spawn::{
        launch::{Child, new_source},
        lineage::Lineage,
        report::{Handover, Report},
        roster::{Carried, Seat},
    },
};

/// An agent on a server: each turn's answer, sent after a part of it when the server goes on.
#[derive(Debug, Default)]
struct Remote {
    answers: Mutex<VecDeque<&'static str>>,
    goes_on: Arc<Notify>,
}

impl Runner for Remote {
    fn run_turn(&self, input: TurnInput) -> RunningTurn {
        let answer = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Box::pin(remote_turn(input, answer.unwrap_or_default(), self.goes_on.clone()))
    }
}

async fn remote_turn(input: TurnInput, answer: &'static str, goes_on: Arc<Notify>) -> RunOutcome {
    let TurnInput { cx, task, mut watchdog, .. } = input;
    let id = || "b".parse().unwrap();
    cx.emit(
        EventKind::agent_start("far", Role::Assistant, vec![Arc::new(Message::user(task))])
            .with_parent_tool_call_id(cx.call_id().cloned()),
    );
    cx.emit(EventKind::model_call_start("m", 1));
    cx.emit(EventKind::TextBlockStart { block_id: id() });
    tokio::select! {
        () = goes_on.notified() => {}
        () = cx.cancelled() => return end(&cx, Outcome::Cancelled, None),
        () = watchdog.as_mut() => {}
    }
    cx.emit(EventKind::TextBlockDelta { block_id: id(), delta: answer.to_owned() });
    cx.emit(EventKind::TextBlockEnd { block_id: id(), opaque: Default::default(), discarded: false });
    let (usage, stop_reason, duration_ms) = (None, StopReason::Stop, 0);
    cx.emit(EventKind::model_call_end(stop_reason, duration_ms).with_usage(usage));
    end(&cx, Outcome::Success, cx.messages().last().cloned())
}

fn end(cx: &RunContext, outcome: Outcome, answer: Option<Arc<Message>>) -> RunOutcome {
    cx.close(&StopReason::Cancelled);
    let (error, usage) = (None, Rollup::default());
    cx.emit(EventKind::agent_end(outcome, usage, 0).with_error(error));
    let mut ended = RunOutcome::cancelled(CancelReason::RunEnded);
    (ended.outcome, ended.answer) = (outcome, answer);
    if outcome == Outcome::Success {
        ended.error = None;
    }
    ended
}

/// A session whose fleet has one child, which runs on a server.
struct Session {
    log: Arc<SessionLog>,
    cx: RunContext,
    remote: Remote,
    lineage: Arc<Lineage>,
}

impl Session {
    fn new(answers: impl IntoIterator<Item = &'static str>) -> Self {
        let root = Agent::builder("main", ScriptedModel::new()).build().unwrap();
        // What a remote agent is here: its declaration.
        let agent = Agent::builder("far", ScriptedModel::new()).build().unwrap();
        let spec = Arc::new(AgentSpec::new("far", "Far away"));
        let lineage = Lineage::new(CatalogEntry { spec, agent: agent.into(), rules: Rules::new() }, None);
        let log = SessionLog::new("s".parse().unwrap());
        let sink = EventSink::root(
            log.clone(),
            Origin::session("s".parse().unwrap(), Some("run-1".parse().unwrap())),
        );
        let fleet = Arc::new(Fleet::new(Limits::default(), TaskSet::in_memory()));
        let assembly = Arc::new(Assembly::new(root));
        let cx = RunContext::root("main", sink);
        let cx = fleet.enter(cx, assembly, SpawnOptions::new(), Budget::default()).build();
        let remote = Remote { answers: Mutex::new(answers.into_iter().collect()), ..Remote::default() };
        Self { log, cx, remote, lineage }
    }

    fn member(&self) -> &Member {
        Member::of(&self.cx).unwrap()
    }

    /// Starts the first turn of the child, or a further one.
    fn start(&self, task: &str, key: Option<&AgentKey>) -> Child {
        let (cx, roster) = (&self.cx, &self.member().fleet.roster);
        let seat = match key {
            Some(key) => roster.resume(key, cx.now(), None).unwrap(),
            None => {
                let source = new_source(cx, "far", None, Some("ann"), "go");
                roster.enter(self.lineage.clone(), source.clone(), Carried::default(), cx.now());
                Seat { lineage: self.lineage.clone(), source, history: Vec::new() }
            }
        };
        self.member().start_on(&self.remote, cx, seat, task.to_owned(), None)
    }

    fn status(&self) -> ChildStatus {
        self.member().fleet.children()[0].status
    }

    fn events(&self) -> Vec<AgentEvent> {
        let mut reader = self.log.subscribe_from(1);
        std::iter::from_fn(|| reader.try_next()).collect()
    }
}

#[tokio::test]
async fn its_turns_are_in_the_stream_and_its_conversation_in_the_roster() {
    let session = Session::new(["One.", "Two."]);
    session.remote.goes_on.notify_one();
    let child = session.start("dig", None);
    let key = child.source.agent_key.clone();
    assert_eq!(session.status(), ChildStatus::Running);
    let outcome = child.turn.await;
    assert_eq!(
        Report::new(&child.source, &outcome, &child.cx.messages()).text().lines().last(),
        Some("One.")
    );
    assert_eq!(session.status(), ChildStatus::Idle);

    session.remote.goes_on.notify_one();
    session.start("and?", Some(&key)).turn.await;
    let seat = session.member().fleet.roster.resume(&key, session.cx.now(), None).unwrap();
    let said: Vec<_> = seat.history.iter().map(|message| message.text()).collect();
    assert_eq!(said, ["dig", "One.", "and?", "Two."]);
    let events = session.events();
    assert!(events.iter().all(|event| event.agent_key() == Some(&key)), "{events:#?}");
}

#[tokio::test]
async fn it_becomes_a_background_task_where_it_is() {
    let session = Session::new(["Done."]);
    let mut child = session.start("dig", None);
    assert!(futures_util::future::poll_immediate(child.turn.as_mut()).await.is_none(), "it waits");
    let tasks = session.member().fleet.tasks.clone();
    let mut ends = tasks.ends();
    session.member().hand_over(&session.cx, child, Handover::Promoted).await.unwrap();
    assert_eq!(session.status(), ChildStatus::Background);
    session.remote.goes_on.notify_one();
    ends.wait_for(|ends| *ends == 1).await.unwrap();
    let updated = |event: &AgentEvent| match &event.kind {
        EventKind::TaskUpdated { task_id, .. } => Some(task_id.clone()),
        _ => None,
    };
    let id = session.events().iter().find_map(updated).unwrap();
    assert_eq!(tasks.get(&id).await.unwrap().result.as_deref(), Some("Done."));
}

#[tokio::test]
async fn a_cancel_reaches_it_and_a_drop_makes_it_idle() {
    let session = Session::new(["", ""]);
    let child = session.start("dig", None);
    let key = child.source.agent_key.clone();
    assert!(session.member().fleet.cancel(&key, &"the user".into()));
    assert_eq!(child.turn.await.outcome, Outcome::Cancelled);

    let child = session.start("and?", Some(&key));
    assert_eq!(session.status(), ChildStatus::Running);
    drop(child);
    assert_eq!(session.status(), ChildStatus::Idle);
}
