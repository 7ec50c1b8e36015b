//! Sessions that go on after their process: what was said is known, what was cut has its end, and one writes at a time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use mainstem::{
    journal::{Journal, MemoryJournal, SqliteJournal},
    message::Usage,
    model::scripted::Turn,
    prelude::*,
};
use mainstem_testing::{laws, render};

use crate::support::{Spawns, harness};

/// A journal that several harnesses have, one after the other: processes, as it were.
#[derive(Clone, Debug)]
pub(crate) struct Shared(pub(crate) Arc<dyn Journal>);

#[mainstem::tool::async_trait]
impl Journal for Shared {
    async fn open(
        &self,
        session: &mainstem::message::SessionId,
    ) -> Result<Arc<dyn mainstem::event::Record>, mainstem::journal::JournalError> {
        self.0.open(session).await
    }

    async fn sessions(
        &self,
    ) -> Result<Vec<mainstem::journal::SessionSummary>, mainstem::journal::JournalError> {
        self.0.sessions().await
    }

    async fn session(
        &self,
        id: &mainstem::message::SessionId,
    ) -> Result<Option<mainstem::journal::SessionSummary>, mainstem::journal::JournalError> {
        self.0.session(id).await
    }

    async fn read(
        &self,
        session: &mainstem::message::SessionId,
        from: u64,
        max: usize,
    ) -> Result<Vec<AgentEvent>, mainstem::journal::JournalError> {
        self.0.read(session, from, max).await
    }

    async fn run(
        &self,
        id: &mainstem::message::RunId,
    ) -> Result<Option<mainstem::journal::RunPlace>, mainstem::journal::JournalError> {
        self.0.run(id).await
    }

    async fn claim(
        &self,
        claim: mainstem::journal::Claim,
    ) -> Result<mainstem::journal::Claimed, mainstem::journal::JournalError> {
        self.0.claim(claim).await
    }

    async fn delete(
        &self,
        session: &mainstem::message::SessionId,
    ) -> Result<bool, mainstem::journal::JournalError> {
        self.0.delete(session).await
    }

    async fn retain(
        &self,
        retention: &mainstem::journal::Retention,
        now: mainstem::event::Timestamp,
    ) -> Result<u64, mainstem::journal::JournalError> {
        self.0.retain(retention, now).await
    }

    async fn flush(&self) -> Result<(), mainstem::journal::JournalError> {
        self.0.flush().await
    }

    async fn close(&self) -> Result<(), mainstem::journal::JournalError> {
        self.0.close().await
    }
}

pub(crate) fn script() -> ScriptedModel {
    let used = |turn: Turn| turn.usage(Usage::new(5, 2));
    ScriptedModel::new()
        .agent(
            "main",
            [
                used(Turn::new().text("Hm. ").spawn("kid", "one").spawn("kid", "two")),
                used(Turn::new().text("Both did it.")),
                used(Turn::new().text("As I said, both.")),
            ],
        )
        .agent(
            "kid",
            [
                used(Turn::new().thinking("So.").call("lookup", serde_json::json!({"word": "w"}))),
                used(Turn::new().text("I did.")),
            ],
        )
}

/// A child in the background, which is slower than its parent.
pub(crate) fn background() -> ScriptedModel {
    let spawn = serde_json::json!({"agent_id": "kid", "task": "one", "timeout_seconds": 0});
    ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().text("Hm. ").call("agent_spawn", spawn),
                Turn::new().text("It works on it.").wait(Duration::from_millis(5)),
                Turn::new().text("As I said."),
            ],
        )
        .agent(
            "kid",
            [
                Turn::new().thinking("So.").call("lookup", serde_json::json!({"word": "w"})),
                Turn::new().repeat("I do. ", 8).pace(Duration::from_micros(500)),
            ],
        )
}

pub(crate) fn process(journal: &Shared, script: ScriptedModel) -> Harness {
    // Each process draws its own ids.
    harness(script)
        .ids(mainstem::event::RandomIds)
        .subagent(AgentSpec::new("kid", "K"))
        .journal(journal.clone())
        .build()
        .unwrap()
}

pub(crate) async fn all(journal: &Shared) -> Vec<AgentEvent> {
    let (mut all, mut next) = (Vec::new(), 1);
    loop {
        let page = journal.read(&"s".into(), next, 1000).await.unwrap();
        let Some(last) = page.last() else { return all };
        next = last.seq + 1;
        all.extend(page);
    }
}

pub(crate) async fn say(harness: &Harness, input: &str) -> String {
    let session = harness.open_session("s").await.unwrap();
    session.run(input, RunOptions::new()).reply().await.unwrap().text()
}

async fn check_goes_on(journal: Shared) {
    assert_eq!(say(&process(&journal, script()), "go").await, "Both did it.");
    // Another process: the agent knows what was said, or its script would begin anew.
    let second = process(&journal, script());
    assert_eq!(say(&second, "And?").await, "As I said, both.");
    let session = second.session("s");
    assert_eq!(session.history().iter().filter(|message| message.role == Role::User).count(), 2);
    assert_eq!(session.fleet().agents.len(), 3, "children of the first are known");
    drop((session, second));
    let events = all(&journal).await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    assert_eq!(events.iter().filter(|event| event.ends_run()).count(), 2);
}

#[tokio::test]
async fn a_conversation_goes_on_in_another_process() {
    check_goes_on(Shared(Arc::new(MemoryJournal::new()))).await;
    let dir = tempfile::TempDir::new().unwrap();
    check_goes_on(Shared(Arc::new(SqliteJournal::open(dir.path().join("journal.db")).unwrap()))).await;
}

#[tokio::test]
async fn whatever_was_cut_has_one_ending() {
    let whole = Shared(Arc::new(MemoryJournal::new()));
    say(&process(&whole, script()), "go").await;
    check_cuts(&all(&whole).await, script).await;
}

#[tokio::test]
async fn what_was_cut_in_the_background_has_one_ending() {
    let whole = Shared(Arc::new(MemoryJournal::new()));
    say(&process(&whole, background()), "go").await;
    let events = all(&whole).await;
    assert!(
        events.iter().any(|event| matches!(event.kind, EventKind::TaskUpdated { .. })),
        "{}",
        render(&events)
    );
    check_cuts(&events, background).await;
}

/// Whatever a process had recorded when it was killed, the next finds a session that is whole, and goes on with it.
async fn check_cuts(events: &[AgentEvent], script: fn() -> ScriptedModel) {
    assert!(events.len() > 40, "{}", events.len());
    for cut in 1..events.len() {
        let journal = Shared(Arc::new(MemoryJournal::new()));
        let record = journal.open(&"s".into()).await.unwrap();
        events[..cut].iter().for_each(|event| record.append(event));
        drop(record);
        let next = process(&journal, script());
        let session = next.open_session("s").await.unwrap();
        let closed = all(&journal).await;
        let place = |error| format!("cut after {cut}: {error}\n{}", render(&closed));
        laws(&closed).unwrap_or_else(|error| panic!("{}", place(error.to_string())));
        let mut ends = BTreeMap::new();
        for event in &closed {
            if let EventKind::AgentEnd { .. } = event.kind {
                *ends.entry(event.reply_id().cloned()).or_insert(0) += 1;
            }
        }
        let starts = closed.iter().filter(|event| matches!(event.kind, EventKind::AgentStart { .. })).count();
        assert!(
            ends.len() == starts && ends.values().all(|times| *times == 1),
            "{}",
            place(format!("{ends:?}"))
        );
        let unfinished = |status: &mainstem::event::TaskStatus| !status.is_terminal();
        assert!(!session.fleet().tasks.values().any(unfinished), "cut after {cut}: {}", render(&closed));
        // And it goes on: whatever the agent says, it knows what it had said before.
        session.run("again", RunOptions::new()).reply().await.unwrap();
        drop((session, next));
        let after = all(&journal).await;
        laws(&after).unwrap_or_else(|error| panic!("cut after {cut}: {error}\n{}", render(&after)));
    }
}

#[tokio::test]
async fn one_writes_at_a_time_and_the_other_is_told() {
    let journal = Shared(Arc::new(MemoryJournal::new()));
    let (first, second) = (process(&journal, script()), process(&journal, script()));
    let held = first.open_session("s").await.unwrap();
    let busy = second.open_session("s").await.unwrap_err().to_string();
    assert!(busy.contains("open"), "{busy}");
    // Whoever does not ask beforehand hears it from the run.
    let run = second.session("s").run("go", RunOptions::new()).reply().await;
    let error = run.unwrap_err().to_string();
    assert!(error.contains(&busy), "{error}");
    drop(held);
}
