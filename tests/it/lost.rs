//! Children whose process has ended: those whose specs say so go on with their parents.

use std::sync::Arc;

use mainstem::{event::Ids, journal::MemoryJournal, model::scripted::Turn, prelude::*, spec::OnLost};
use mainstem_testing::{CountedIds, FaultyJournal, laws, render};
use serde_json::json;

use crate::{
    journal::{all, all_is_done, say},
    resume::{killed_after, starts_of},
    support::{Spawns, harness, ms},
};

/// Two processes draw from the same ids.
#[derive(Clone, Default)]
struct SharedIds(Arc<CountedIds>);

impl Ids for SharedIds {
    fn next(&self, prefix: &str) -> String {
        self.0.next(prefix)
    }
}

/// A child that has a child.
fn nested() -> ScriptedModel {
    ScriptedModel::new()
        .agent(
            "main",
            [
                Turn::new().spawn("kid", "one"),
                Turn::new().text("It goes on."),
                Turn::new().text("It did it."),
                Turn::new().text("As I said."),
            ],
        )
        .agent(
            "kid",
            [Turn::new().spawn("deep", "two"), Turn::new().text("I did."), Turn::new().text("Both.")],
        )
        .agent(
            "deep",
            [
                Turn::new().call("lookup", json!({"word": "w"})),
                Turn::new().text("Deep."),
                Turn::new().text("As I said."),
            ],
        )
}

fn process(journal: &FaultyJournal, ids: &SharedIds, on_lost: [OnLost; 2]) -> Harness {
    builder(journal, ids, on_lost).build().unwrap()
}

fn builder(journal: &FaultyJournal, ids: &SharedIds, [kid, deep]: [OnLost; 2]) -> HarnessBuilder {
    harness(nested())
        .with_ids(ids.clone())
        .with_subagent(AgentSpec::new("kid", "K").with_tools(["*", "agent_spawn"]).with_on_lost(kid))
        .with_subagent(AgentSpec::new("deep", "D").with_on_lost(deep))
        .with_journal(journal.clone())
}

/// Returns the events of a whole turn in one process.
async fn undisturbed(ids: &SharedIds, on_lost: [OnLost; 2]) -> Vec<AgentEvent> {
    let journal = FaultyJournal::new(MemoryJournal::new());
    say(&process(&journal, ids, on_lost), "go").await;
    all(&journal).await
}

/// Ends the process after these events. Returns all events once another has done something.
async fn after(
    before: &[AgentEvent],
    harness: impl FnOnce(&FaultyJournal) -> Harness,
    what: impl AsyncFnOnce(&Session),
) -> Vec<AgentEvent> {
    let journal = killed_after(before).await;
    let next = harness(&journal);
    let session = next.open_session("s").await.unwrap();
    what(&session).await;
    all_is_done(&next).await;
    drop((session, next));
    let after = all(&journal).await;
    laws(&after).unwrap_or_else(|error| panic!("{error}\n{}", render(&after)));
    after
}

/// Ends the process after these events. Returns all events once another has resumed the turn.
async fn resumed(
    before: &[AgentEvent],
    ids: &SharedIds,
    on_lost: [OnLost; 2],
    options: RunOptions,
) -> Vec<AgentEvent> {
    let resume = async |session: &Session| {
        session.resume(options).unwrap().reply().await.unwrap();
    };
    after(before, |journal| process(journal, ids, on_lost), resume).await
}

/// Returns all events once another process has said something more.
async fn told(before: &[AgentEvent], ids: &SharedIds, options: RunOptions) -> Vec<AgentEvent> {
    let tell = async |session: &Session| {
        let request = RunRequest::new("and?").with_options(options);
        session.run(request).unwrap().reply().await.unwrap();
    };
    after(before, |journal| process(journal, ids, [OnLost::Resume; 2]), tell).await
}

/// Returns the number of events before the deepest agent's tool has its result.
fn in_the_tool(events: &[AgentEvent]) -> usize {
    let is_call = |event: &AgentEvent| {
        event.agent_label() == "deep" && matches!(event.kind, EventKind::ToolResultStart { .. })
    };
    events.iter().position(is_call).unwrap() + 1
}

fn hints(events: &[AgentEvent]) -> Vec<String> {
    let hint = |event: &AgentEvent| match &event.kind {
        EventKind::HintBlock { hint_source, hint, .. } if &**hint_source == "resumed" => Some(hint.clone()),
        _ => None,
    };
    events.iter().filter_map(hint).collect()
}

#[tokio::test(start_paused = true)]
async fn a_child_that_was_cut_off_goes_on_with_all_below_it() {
    let (ids, on_lost) = (SharedIds::default(), [OnLost::Resume; 2]);
    let events = undisturbed(&ids, on_lost).await;
    let cut = in_the_tool(&events);
    let options = RunOptions::new().with_background(Background::Wait);
    let after = resumed(&events[..cut], &ids, on_lost, options).await;
    insta::assert_snapshot!(render(&after[cut..]));
    let hints = hints(&after);
    insta::assert_snapshot!(hints[0]);
    assert_eq!(hints.len(), 2);
}

/// The root's turn is over when its process ends, and nothing resumes it.
#[tokio::test(start_paused = true)]
async fn a_background_task_that_was_cut_off_goes_on_with_the_next_turn() {
    let journal = FaultyJournal::new(MemoryJournal::new());
    let script = || {
        let spawn = json!({"agent_id": "kid", "task": "one", "timeout_seconds": 0});
        let main =
            [Turn::new().call("agent_spawn", spawn), Turn::new().text("It works."), Turn::new().text("So?")];
        let kid = [Turn::new().text("I do").wait(ms(5000)), Turn::new().text("I did.")];
        ScriptedModel::new().agent("main", main).agent("kid", kid)
    };
    let process = |journal: &FaultyJournal| {
        let harness = harness(script()).with_ids(mainstem::event::RandomIds);
        let kid = AgentSpec::new("kid", "K").with_on_lost(OnLost::Resume);
        harness.with_subagent(kid).with_journal(journal.clone()).build().unwrap()
    };
    let first = process(&journal);
    say(&first, "go").await;
    all_is_done(&first).await;
    let events = all(&journal).await;
    let turn = events.iter().position(AgentEvent::is_run_end).unwrap() + 1;
    assert!(turn < events.len(), "the child goes on after the turn:\n{}", render(&events));
    let journal = killed_after(&events[..turn]).await;
    let next = process(&journal);
    assert_eq!(say(&next, "and?").await, "So?");
    all_is_done(&next).await;
    let after = all(&journal).await;
    laws(&after).unwrap_or_else(|error| panic!("{error}\n{}", render(&after)));
    assert_eq!(starts_of(&after, "kid"), 2, "{}", render(&after));
    assert_eq!(hints(&after).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_spec_and_a_run_decide_which_children_go_on() {
    use OnLost::{Close, Resume};
    // Turns that `kid` and `deep` have after the cut.
    for (on_lost, force_sync, expected) in [
        ([Close, Close], false, [0, 0]),
        // Its parent does not go on.
        ([Close, Resume], false, [0, 0]),
        ([Resume, Close], false, [1, 0]),
        ([Resume, Resume], false, [1, 1]),
        ([Resume, Resume], true, [0, 0]),
    ] {
        let ids = SharedIds::default();
        let events = undisturbed(&ids, on_lost).await;
        let cut = in_the_tool(&events);
        let after =
            resumed(&events[..cut], &ids, on_lost, RunOptions::new().with_force_sync(force_sync)).await;
        let turns = ["kid", "deep"].map(|agent| starts_of(&after, agent) - 1);
        assert_eq!(turns, expected, "{on_lost:?}, {force_sync}:\n{}", render(&after));
    }
}

#[tokio::test(start_paused = true)]
async fn a_parent_is_told_of_a_child_that_cannot_go_on() {
    let (ids, on_lost) = (SharedIds::default(), [OnLost::Resume; 2]);
    let events = undisturbed(&ids, on_lost).await;
    let full = |journal: &FaultyJournal| builder(journal, &ids, on_lost).with_max_tasks(0).build().unwrap();
    let resume = async |session: &Session| {
        session.resume(RunOptions::new()).unwrap().reply().await.unwrap();
    };
    let refused = after(&events[..in_the_tool(&events)], full, resume).await;
    assert_eq!(hints(&refused).len(), 1);
    insta::assert_snapshot!(hints(&refused)[0]);
    assert_eq!(starts_of(&refused, "kid"), 1);
    // It is the model's now, whichever process goes on.
    let later = told(&refused, &ids, RunOptions::new()).await;
    assert_eq!((hints(&later).len(), starts_of(&later, "kid")), (1, 1), "{}", render(&later));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_a_turn_has_left_out_does_not_begin_again_later() {
    let (ids, on_lost) = (SharedIds::default(), [OnLost::Resume; 2]);
    let events = undisturbed(&ids, on_lost).await;
    let cut = &events[..in_the_tool(&events)];
    for options in [RunOptions::new().with_force_sync(true), RunOptions::new().with_user("ann")] {
        let resume = async |session: &Session| {
            session.resume(options.clone()).unwrap().reply().await.unwrap();
            session.run("and?").unwrap().reply().await.unwrap();
        };
        let left = after(cut, |journal| process(journal, &ids, on_lost), resume).await;
        assert_eq!(starts_of(&left, "kid"), 1, "{}", render(&left));
        let later = told(&left, &ids, RunOptions::new()).await;
        assert_eq!(starts_of(&later, "kid"), 1, "{}", render(&later));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_first_lets_no_child_go_on() {
    let (ids, on_lost) = (SharedIds::default(), [OnLost::Resume; 2]);
    let events = undisturbed(&ids, on_lost).await;
    let cancel = async |session: &Session| {
        let run = session.resume(RunOptions::new()).unwrap();
        run.handle().cancel();
        assert!(run.reply().await.is_err());
        session.run("and?").unwrap().reply().await.unwrap();
    };
    let cut = &events[..in_the_tool(&events)];
    let left = after(cut, |journal| process(journal, &ids, on_lost), cancel).await;
    assert_eq!(starts_of(&left, "kid"), 1, "{}", render(&left));
    // A model call has begun, if only to be cancelled: the model decides from then on.
    assert_eq!(starts_of(&told(&left, &ids, RunOptions::new()).await, "kid"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_ends_processes_is_given_up() {
    let (ids, on_lost) = (SharedIds::default(), [OnLost::Resume; 2]);
    let mut events = undisturbed(&ids, on_lost).await;
    events.truncate(in_the_tool(&events));
    for turns in 2..=3 {
        events = resumed(&events, &ids, on_lost, RunOptions::new()).await;
        let last = |event: &AgentEvent| {
            event.agent_id() == "kid" && matches!(event.kind, EventKind::AgentStart { .. })
        };
        events.truncate(events.iter().rposition(last).unwrap() + 1);
        assert_eq!(starts_of(&events, "kid"), turns);
    }
    let given_up = resumed(&events, &ids, on_lost, RunOptions::new()).await;
    assert_eq!(starts_of(&given_up, "kid"), 3, "{}", render(&given_up));
    let said = "3 processes in a row have ended in its turns, so it is given up";
    assert!(hints(&given_up).last().unwrap().contains(said), "{}", render(&given_up));
    assert_eq!(starts_of(&told(&given_up, &ids, RunOptions::new()).await, "kid"), 3);
}

/// The second process ends after each of its events, too.
#[tokio::test(start_paused = true)]
async fn a_child_goes_on_wherever_the_next_process_ends() {
    let (ids, on_lost) = (SharedIds::default(), [OnLost::Resume; 2]);
    let events = undisturbed(&ids, on_lost).await;
    let first = in_the_tool(&events);
    let second = resumed(&events[..first], &ids, on_lost, RunOptions::new()).await;
    let answered =
        second.iter().rposition(|event| matches!(event.kind, EventKind::AgentResult { .. })).unwrap();
    for cut in first + 1..answered {
        // Its laws are checked.
        let third = resumed(&second[..cut], &ids, on_lost, RunOptions::new()).await;
        let answers = third
            .iter()
            .filter(|event| event.agent_id() == "kid" && matches!(event.kind, EventKind::AgentResult { .. }));
        assert_eq!(answers.count(), 1, "cut after {cut}:\n{}", render(&third));
    }
}

/// Cuts a turn after each of its events.
#[tokio::test(start_paused = true)]
async fn a_child_goes_on_once_wherever_its_process_ended() {
    let (ids, on_lost) = (SharedIds::default(), [OnLost::Resume; 2]);
    let events = undisturbed(&ids, on_lost).await;
    let count = |events: &[AgentEvent], agent: &str, wanted: fn(&EventKind) -> bool| {
        let of_agent = events.iter().filter(|event| event.agent_label() == agent);
        of_agent.filter(|event| wanted(&event.kind)).count()
    };
    let starts = |kind: &EventKind| matches!(kind, EventKind::AgentStart { .. });
    let answers = |kind: &EventKind| matches!(kind, EventKind::AgentResult { .. });
    let answered = events.iter().position(|event| event.is_root() && answers(&event.kind)).unwrap();
    let mut gone_on = 0;
    for cut in 1..=answered {
        let before = &events[..cut];
        let after = resumed(before, &ids, on_lost, RunOptions::new()).await;
        let place = || format!("cut after {cut}:\n{}", render(&after));
        for agent in ["kid", "deep"] {
            let was_cut = count(before, agent, starts) - count(before, agent, answers);
            gone_on += was_cut;
            if count(before, agent, starts) > 0 {
                assert_eq!(starts_of(&after, agent), 1 + was_cut, "{agent}, {}", place());
            }
            assert_eq!(
                count(&after, agent, answers),
                starts_of(&after, agent) - was_cut,
                "{agent}, {}",
                place()
            );
        }
        // A third process has nothing to go on with.
        let third = process(&killed_after(&after).await, &ids, on_lost);
        let session = third.open_session("s").await.unwrap();
        session.run("and?").unwrap().reply().await.unwrap();
        all_is_done(&third).await;
        let turns: u32 = session.children().into_iter().map(|child| child.turns).sum();
        assert_eq!(turns as usize, starts_of(&after, "kid") + starts_of(&after, "deep"), "{}", place());
    }
    assert!(gone_on > 20, "{gone_on}");
}
