//! A turn that was cut is resumed: no agent repeats its work, and children are still there.

use mainstem::{
    journal::{Journal, MemoryJournal},
    message::ContentBlock,
    model::scripted::Turn,
    prelude::*,
};
use mainstem_testing::{FaultyJournal, laws, render};
use serde_json::json;

use crate::{
    journal::{all, all_is_done, background, process, say, script, whole},
    restart::has_turns,
    support::{Spawns, harness},
};

/// Returns the journal of a process that is killed after so many events.
pub(crate) async fn killed_after(events: &[AgentEvent]) -> FaultyJournal {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let record = journal.open(&"s".parse().unwrap()).await.unwrap();
    events.iter().for_each(|event| record.append(event));
    journal
}

pub(crate) fn starts_of(events: &[AgentEvent], agent: &str) -> usize {
    let is_start = |event: &&AgentEvent| matches!(event.kind, EventKind::AgentStart { .. });
    events.iter().filter(is_start).filter(|event| event.agent_label() == agent).count()
}

/// Returns the results that the root has read.
fn results(session: &Session) -> Vec<String> {
    let history = session.history();
    let parts = history.iter().flat_map(|message| &message.content);
    let text = |part: &ContentBlock| match part {
        ContentBlock::ToolResult(result) => {
            Some(result.content.iter().filter_map(ContentBlock::as_text).collect())
        }
        _ => None,
    };
    parts.filter_map(text).collect()
}

/// Cuts a turn after each of its events, and resumes it.
async fn check_resumes(script: fn() -> ScriptedModel, replies: [&str; 2]) {
    let events = whole(script()).await;
    let answer = |event: &AgentEvent| match &event.kind {
        EventKind::AgentResult { result } if event.is_root() => Some(result.text()),
        _ => None,
    };
    let answered = events.iter().position(|event| answer(event).is_some()).unwrap();
    assert_eq!(answer(&events[answered]).unwrap(), replies[0]);
    for cut in 1..=answered {
        let before = &events[..cut];
        let journal = killed_after(before).await;
        let next = process(&journal, script());
        let session = next.open_session("s").await.unwrap();
        let place = |events: &[AgentEvent]| format!("cut after {cut}:\n{}", render(events));
        let is_mid_sentence = session.history().last().unwrap().role == Role::Assistant;
        let run = session.resume(RunOptions::new()).unwrap();
        let resumed = run.reply().await.unwrap().text();
        all_is_done(&next).await;
        let after = all(&journal).await;
        laws(&after).unwrap_or_else(|error| panic!("{error}\n{}", place(&after)));
        let has_called = before
            .iter()
            .any(|event| event.is_root() && matches!(event.kind, EventKind::ModelCallEnd { .. }));
        if has_called {
            // No agent begins again, and finished answers are delivered; unknown ones are reported.
            assert_eq!(resumed, replies[usize::from(is_mid_sentence)], "{}", place(&after));
            assert_eq!(starts_of(&after, "kid"), starts_of(before, "kid"), "{}", place(&after));
            let answers = before.iter().filter(|event| {
                !event.is_root()
                    && matches!(event.kind, EventKind::AgentResult { .. })
                    && event.origin.source.as_ref().is_some_and(|source| source.task_id.is_none())
            });
            let heard =
                results(&session).into_iter().filter(|result| result.contains("completed\nreply:\nI did."));
            assert_eq!(heard.count(), answers.count(), "{}", place(&after));
        }
        assert_eq!(session.resume(RunOptions::new()).unwrap_err(), NothingToResume::Answered);
    }
    // An agent that had said everything has succeeded.
    let journal = killed_after(&events[..=answered]).await;
    let session = process(&journal, script()).open_session("s").await.unwrap();
    assert_eq!(session.resume(RunOptions::new()).unwrap_err(), NothingToResume::Answered);
}

#[tokio::test]
async fn a_turn_that_was_cut_anywhere_is_taken_up() {
    check_resumes(script, ["Both did it.", "As I said, both."]).await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_with_a_child_in_the_background_is_taken_up() {
    check_resumes(background, ["It works on it.", "As I said."]).await;
}

#[tokio::test]
async fn there_is_nothing_to_resume_before_the_first_turn_and_during_one() {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let session = process(&journal, script()).open_session("s").await.unwrap();
    assert_eq!(session.resume(RunOptions::new()).unwrap_err(), NothingToResume::New);
    let mut run = session.run("go").unwrap();
    run.next().await.unwrap();
    assert_eq!(session.resume(RunOptions::new()).unwrap_err(), NothingToResume::Active);
    drop(run);
    // A stopped agent can be resumed, too, by one caller.
    let first = session.resume(RunOptions::new()).unwrap();
    assert_eq!(session.resume(RunOptions::new()).unwrap_err(), NothingToResume::Active);
    drop(first);
    assert_eq!(session.resume(RunOptions::new()).unwrap().reply().await.unwrap().text(), "Both did it.");
}

fn two_turns() -> ScriptedModel {
    let send = |label: &str| Turn::new().call("agent_send", json!({"label": label, "message": "and?"}));
    let spawn = json!({"spawns": [{"agent_id": "kid", "task": "t", "label": "Ann"}, {"agent_id": "kid", "task": "t", "label": "Bob"}]});
    ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().call("agent_fanout", spawn),
                Turn::new().call("agent_close", json!({"label": "ann"})),
                Turn::new().text("They know."),
                send("bob"),
                send("Ann"),
                Turn::new().text("Said."),
            ],
        )
        .agent(
            "kid",
            [Turn::new().text("First."), Turn::new().spawn("grandkid", "deep"), Turn::new().text("Second.")],
        )
        .agent("grandkid", [Turn::new().text("Deep.")])
}

fn declared(journal: &FaultyJournal, kids: &[&str]) -> Harness {
    let builder = harness(two_turns()).with_ids(mainstem::event::RandomIds).with_journal(journal.clone());
    kids.iter()
        .fold(builder, |builder, kid| builder.with_subagent(AgentSpec::new(*kid, "K")))
        .build()
        .unwrap()
}

#[tokio::test]
async fn children_of_an_earlier_process_can_be_sent_to() {
    let journal = FaultyJournal::new(MemoryJournal::new());
    say(&declared(&journal, &["kid", "grandkid"]), "go").await;
    let next = declared(&journal, &["kid", "grandkid"]);
    let session = next.open_session("s").await.unwrap();
    let children: Vec<_> = session.children().into_iter().map(|child| (child.label, child.turns)).collect();
    assert_eq!(children, [(Some("Bob".to_owned()), 1)], "Ann was closed");
    assert_eq!(session.run("again").unwrap().reply().await.unwrap().text(), "Said.");
    let read = results(&session);
    // It would say `First.` without its conversation.
    assert!(read[2].contains("reply:\nSecond."), "{read:?}");
    assert!(read[3].contains("there is no child \"Ann\"; known: Bob"), "{read:?}");
    drop((session, next));
    let events = all(&journal).await;
    laws(&events).unwrap_or_else(|error| panic!("{error}\n{}", render(&events)));

    // A third time, without its declaration: it has the one that it was spawned as.
    let third = declared(&journal, &["grandkid"]);
    let session = third.open_session("s").await.unwrap();
    let bob = events.iter().rev().filter_map(|event| event.origin.source.as_ref()).find(|one| one.depth == 1);
    session.send(&bob.unwrap().agent_key, "hello", SendMode::Queue).unwrap();
    has_turns(&session, 3).await;
}
