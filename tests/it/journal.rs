//! Sessions that continue after their process: the conversation is restored, cut invocations have
//! ends, and one process writes at a time.

use std::collections::BTreeMap;

use mainstem::{
    journal::{Checkpoint, Journal, MemoryJournal, SqliteJournal},
    message::Usage,
    model::scripted::Turn,
    prelude::*,
};
use mainstem_testing::{FaultyJournal, laws, render};

use crate::support::{OpenNow, Spawns, harness, ms};

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

/// Returns a child in the background, which is slower than its parent.
pub(crate) fn background() -> ScriptedModel {
    let spawn = serde_json::json!({"agent_id": "kid", "task": "one", "timeout_seconds": 0});
    ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().text("Hm. ").call("agent_spawn", spawn),
                Turn::new().text("It works on it.").wait(ms(5)),
                Turn::new().text("As I said."),
            ],
        )
        .agent(
            "kid",
            [
                Turn::new().thinking("So.").call("lookup", serde_json::json!({"word": "w"})),
                Turn::new().repeat("I do. ", 8).pace(ms(1)),
            ],
        )
}

pub(crate) fn process(journal: &FaultyJournal, script: ScriptedModel) -> Harness {
    // Each process draws its own ids.
    harness(script)
        .with_ids(mainstem::event::RandomIds)
        .with_subagent(AgentSpec::new("kid", "K"))
        .with_journal(journal.clone())
        .build()
        .unwrap()
}

/// Waits for the work behind a turn.
pub(crate) async fn all_is_done(harness: &Harness) {
    while harness.tasks().live() > 0 {
        tokio::time::sleep(ms(1)).await;
    }
}

/// Returns the events of one turn, to the end of the work that it began.
pub(crate) async fn whole(script: ScriptedModel) -> Vec<AgentEvent> {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let harness = process(&journal, script);
    say(&harness, "go").await;
    all_is_done(&harness).await;
    all(&journal).await
}

pub(crate) async fn all(journal: &FaultyJournal) -> Vec<AgentEvent> {
    let (mut all, mut next) = (Vec::new(), 1);
    loop {
        let page = journal.read(&"s".parse().unwrap(), next, 1000).await.unwrap();
        let Some(last) = page.last() else { return all };
        next = last.seq + 1;
        all.extend(page);
    }
}

pub(crate) async fn say(harness: &Harness, input: &str) -> String {
    let session = harness.open_session("s").await.unwrap();
    session.run(input).unwrap().reply().await.unwrap().text()
}

async fn check_goes_on(journal: FaultyJournal) {
    assert_eq!(say(&process(&journal, script()), "go").await, "Both did it.");
    // Another process: the agent has its conversation, or its script would begin again.
    let second = process(&journal, script());
    assert_eq!(say(&second, "And?").await, "As I said, both.");
    let session = second.session("s");
    assert_eq!(session.history().iter().filter(|message| message.role == Role::User).count(), 2);
    assert_eq!(session.fleet().agents.len(), 3, "children of the first are known");
    drop((session, second));
    let events = all(&journal).await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));
    assert_eq!(events.iter().filter(|event| event.is_run_end()).count(), 2);
}

#[tokio::test]
async fn a_conversation_goes_on_in_another_process() {
    check_goes_on(FaultyJournal::new(MemoryJournal::new())).await;
    let dir = tempfile::TempDir::new().unwrap();
    check_goes_on(FaultyJournal::new(SqliteJournal::open(dir.path().join("journal.db")).unwrap())).await;
}

#[tokio::test]
async fn a_long_session_opens_without_being_read_from_its_beginning() {
    let whole = FaultyJournal::new(MemoryJournal::new());
    let read = || whole.take_read();
    let script = || {
        ScriptedModel::new()
            .agent(
                "main",
                [
                    Turn::new().spawn("kid", "one"),
                    Turn::new().repeat("word ", 6000),
                    Turn::new().text("As I said."),
                    Turn::new().call("agent_send", serde_json::json!({ "label": "k", "message": "and?" })),
                    Turn::new().text("Once more."),
                ],
            )
            .agent("kid", [Turn::new().text("First."), Turn::new().text("Second.")])
    };
    let process = || {
        let builder =
            harness(script()).with_ids(mainstem::event::RandomIds).with_subagent(AgentSpec::new("kid", "K"));
        builder.with_journal(whole.clone()).build().unwrap()
    };
    say(&process(), "go").await;
    for _ in 0..200 {
        if whole.checkpoint(&"s".parse().unwrap()).await.unwrap().is_some() {
            break;
        }
        tokio::time::sleep(ms(5)).await;
    }
    let (kept, all_events) =
        (whole.checkpoint(&"s".parse().unwrap()).await.unwrap().unwrap(), all(&whole).await);
    assert_eq!(kept.seq, all_events.len() as u64, "it has the whole run");
    read();

    let second = process();
    let session = second.open_session("s").await.unwrap();
    assert_eq!(read(), 0, "all of it is in the checkpoint");
    // And it is the same session.
    let folded = process_of(&all_events, script()).await;
    let known = folded.open_session("s").await.unwrap();
    assert_eq!(session.history(), known.history());
    assert_eq!(session.fleet(), known.fleet());
    let shown = |session: &Session| format!("{:?} {:?}", session.runs(), session.children());
    assert_eq!(shown(&session), shown(&known));
    assert_eq!(session.run("and?").unwrap().reply().await.unwrap().text(), "As I said.");
    drop((session, second));
    // Later events are read from there on.
    let third = process();
    let session = third.open_session("s").await.unwrap();
    let later = read();
    assert_eq!(later, all(&whole).await.len() - all_events.len());
    assert_eq!(session.runs().len(), 2);
    drop((session, third));

    // One that can't be parsed is ignored.
    let strange = Checkpoint { seq: 1, state: "{\"form\":9}".to_owned() };
    whole.store_checkpoint(&"s".parse().unwrap(), strange).await.unwrap();
    read();
    let fourth = process();
    assert_eq!(fourth.open_session("s").await.unwrap().runs().len(), 2);
    let everything = read();
    assert_eq!(everything, all(&whole).await.len());
}

/// Returns a process that finds these events and no checkpoint.
async fn process_of(events: &[AgentEvent], script: ScriptedModel) -> Harness {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let record = journal.open(&"s".parse().unwrap()).await.unwrap();
    events.iter().for_each(|event| record.append(event));
    drop(record);
    process(&journal, script)
}

#[tokio::test]
async fn whatever_was_cut_has_one_ending() {
    check_cuts(&whole(script()).await, script).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_cut_in_the_background_has_one_ending() {
    let events = whole(background()).await;
    assert!(
        events.iter().any(|event| matches!(event.kind, EventKind::TaskUpdated { .. })),
        "{}",
        render(&events)
    );
    check_cuts(&events, background).await;
}

/// Whatever a process had recorded when it was killed, the next finds a session that is whole, and
/// continues it.
async fn check_cuts(events: &[AgentEvent], script: fn() -> ScriptedModel) {
    assert!(events.len() > 40, "{}", events.len());
    for cut in 1..events.len() {
        let journal = FaultyJournal::new(MemoryJournal::new());
        let record = journal.open(&"s".parse().unwrap()).await.unwrap();
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
        // A task whose child had answered is completed, even if only the answer was recorded.
        for event in &events[..cut] {
            if let (Some(source), EventKind::AgentEnd { outcome: Outcome::Success, .. }) =
                (event.source(), &event.kind)
                && let Some(task) = &source.task_id
            {
                let status = session.fleet().tasks.get(task).copied();
                assert_eq!(status, Some(mainstem::event::TaskStatus::Completed), "cut after {cut}");
            }
        }
        let unfinished = |status: &mainstem::event::TaskStatus| !status.is_terminal();
        assert!(!session.fleet().tasks.values().any(unfinished), "cut after {cut}: {}", render(&closed));
        // And it goes on: whatever the agent says, it knows what it had said before.
        session.run("again").unwrap().reply().await.unwrap();
        all_is_done(&next).await;
        let after = all(&journal).await;
        laws(&after).unwrap_or_else(|error| panic!("cut after {cut}: {error}\n{}", render(&after)));
    }
}

#[tokio::test]
async fn a_damaged_event_costs_that_event_and_not_the_session() {
    let all = whole(script()).await;
    for damaged in 1..=all.len() as u64 {
        let journal = FaultyJournal::new(MemoryJournal::new());
        say(&process(&journal, script()), "go").await;
        journal.damage(damaged);
        let next =
            process(&journal, ScriptedModel::new().agent("main", (0..9).map(|_| Turn::new().text("On."))));
        let session = next.open_session("s").await.unwrap_or_else(|error| panic!("{damaged}: {error}"));
        // What the other events say is known: what was asked, unless that is damaged, and how the
        // run ended.
        let (said, runs) = (session.history(), session.runs());
        if damaged > 1 {
            assert_eq!(said[0].text(), "go", "{damaged}");
            assert_eq!(runs.len(), 1, "{damaged}");
            let end = runs[0].end.as_ref().unwrap();
            let outcome = if damaged < all.len() as u64 { Outcome::Success } else { end.outcome };
            assert_eq!(end.outcome, outcome, "{damaged}");
        }
        let answers = said.iter().filter(|message| message.role == Role::Assistant).count();
        assert!(answers > 0 || damaged == 1, "{damaged}: {said:?}");
        session.run("again").unwrap().reply().await.unwrap();
        drop((session, next));
        assert!(journal.delete(&"s".parse().unwrap()).await.unwrap(), "{damaged}");
    }
}

#[tokio::test]
async fn one_writes_at_a_time_and_the_other_is_told() {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let (first, second) = (process(&journal, script()), process(&journal, script()));
    let held = first.open_session("s").await.unwrap();
    let busy = second.open_session("s").await.unwrap_err().to_string();
    assert!(busy.contains("open"), "{busy}");
    drop(held);
}
