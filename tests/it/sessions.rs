//! Which sessions are open: each once, within a limit that tenants share, until it is not in use.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt, future::join_all};
use mainstem::{
    api::SessionView,
    journal::{Journal, Listing, MemoryJournal, Part, SqliteJournal},
    message::SessionId,
    model::scripted::Turn,
    policy::Shares,
    prelude::*,
    session::{DeleteError, InUse, OpenError, Sessions},
    task::TaskFilter,
};
use mainstem_testing::FaultyJournal;

use crate::support::{harness, ms, spawn_args};

/// A process whose sessions are in the journal, which other processes share.
fn process(journal: &FaultyJournal) -> Harness {
    let turns = (0..9).map(|_| Turn::new().text("yes"));
    harness(ScriptedModel::new().agent("main", turns)).with_journal(journal.clone()).build().unwrap()
}

/// Returns the sessions, on one page.
async fn listed(harness: &Harness) -> Vec<SessionView> {
    let page = harness.sessions().list(&Listing::new(Part::Of(None), 99)).await.unwrap();
    assert_eq!(page.next, None);
    page.items
}

fn journal() -> FaultyJournal {
    FaultyJournal::new(MemoryJournal::new())
}

/// Limits the sessions of a harness.
fn limited(harness: &Harness, most: usize, tenants: usize) -> Arc<Shares> {
    let shares = Shares::new(most, tenants);
    assert!(harness.sessions().store().set_limit(shares.clone()));
    shares
}

fn ids(sessions: &Sessions) -> Vec<String> {
    sessions.opened().iter().map(|session| session.id().to_string()).collect()
}

async fn say(session: &Session) {
    session.run("go").unwrap().reply().await.unwrap();
}

#[tokio::test]
async fn a_session_is_open_once() {
    let harness = process(&journal());
    let opened = join_all((0..20).map(|_| harness.open_session("s"))).await;
    let logs = opened.iter().map(|session| session.as_ref().unwrap().log());
    assert!(logs.clone().zip(logs.skip(1)).all(|(one, other)| Arc::ptr_eq(one, other)));
    assert_eq!((harness.sessions().store().len(), ids(harness.sessions())), (1, vec!["s".to_owned()]));
}

#[tokio::test]
async fn an_opening_that_fails_leaves_nothing() {
    let journal = journal();
    let first = process(&journal);
    let shares = limited(&first, 4, 1);
    let held = process(&journal).open_session("s").await.unwrap();
    let opened = join_all((0..5).map(|_| first.open_session("s"))).await;
    assert!(opened.into_iter().all(|opened| matches!(opened, Err(OpenError::Journal(_)))));
    assert_eq!((first.sessions().store().len(), shares.taken()), (0, 0));
    drop(held);
    first.open_session("s").await.unwrap();
    assert_eq!((first.sessions().store().len(), shares.taken()), (1, 1));
}

#[tokio::test]
async fn an_opening_that_is_dropped_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let sqlite = SqliteJournal::open(dir.path().join("j.db")).unwrap();
    let harness = harness(ScriptedModel::new()).with_journal(sqlite).build().unwrap();
    let (shares, store) = (limited(&harness, 4, 1), harness.sessions().store());
    // Another thread opens it, and may be faster than the first poll.
    for number in 0..100 {
        let id = format!("s-{number}");
        let (mut waits, mut second) =
            (Box::pin(harness.open_session(&*id)), Box::pin(harness.open_session(&*id)));
        let are_waiting = (&mut waits).now_or_never().is_none() && (&mut second).now_or_never().is_none();
        if !are_waiting {
            harness.close_session(&id.as_str().parse().unwrap());
            continue;
        }
        // The second one goes on where the first was dropped.
        drop(waits);
        assert_eq!((store.len(), shares.taken()), (1, 1));
        drop(second);
        assert_eq!((store.len(), shares.taken()), (0, 0));
        let opened = tokio::time::timeout(ms(5000), async {
            loop {
                if let Ok(session) = harness.open_session(&*id).await {
                    return session;
                }
            }
        });
        assert_eq!(opened.await.unwrap().id().as_str(), id);
        return;
    }
    panic!("no opening waited");
}

/// Opens sessions, some of them only until the first wait, and closes and deletes them. Returns how
/// many were opened.
async fn churn(harness: Harness, seed: u64) -> usize {
    let (mut random, mut opened) = (seed, 0);
    for _ in 0..400 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let id = format!("s-{}", (random >> 33) % 3);
        let opening = harness.open_session(&*id);
        match (random >> 40) % 8 {
            0 => opened += usize::from(opening.await.is_ok()),
            1 => drop(harness.delete_session(&id.as_str().parse().unwrap()).await),
            2 => drop(listed(&harness).await),
            3 => drop(harness.sessions().store().close_idle(Duration::ZERO)),
            _ => drop(opening.now_or_never()),
        }
    }
    opened
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_happens_at_once_no_place_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let sqlite = SqliteJournal::open(dir.path().join("j.db")).unwrap();
    let harness = harness(ScriptedModel::new()).with_journal(sqlite).build().unwrap();
    let (shares, store) = (limited(&harness, 2, 1), harness.sessions().store());
    #[expect(clippy::disallowed_methods, reason = "awaited by the test")]
    let workers = (0..20).map(|seed| tokio::spawn(churn(harness.clone(), seed)));
    let opened = join_all(workers).await.into_iter().map(Result::unwrap);
    assert!(opened.sum::<usize>() > 20);
    store.close_idle(Duration::ZERO);
    assert_eq!((store.len(), shares.taken()), (0, 0));
}

#[tokio::test]
async fn the_least_recently_used_session_makes_room_unless_it_is_held() {
    let journal = journal();
    let first = process(&journal);
    let shares = limited(&first, 2, 1);
    let (sessions, store) = (first.sessions(), first.sessions().store());
    let held = first.open_session("a").await.unwrap();
    for id in ["b", "c", "d"] {
        say(&first.open_session(id).await.unwrap()).await;
    }
    assert_eq!((ids(sessions), store.evicted()), (vec!["a".to_owned(), "d".to_owned()], 2));
    // The closed ones can be opened by another process at once, and have what was said.
    assert_eq!(process(&journal).open_session("b").await.unwrap().history().len(), 2);
    let also_held = first.open_session("d").await.unwrap();
    let refused = first.open_session("e").await.unwrap_err();
    assert!(matches!(refused, OpenError::TooMany { most: 2, .. }), "{refused}");
    // A run is a use, too.
    let run = held.queue("go");
    drop((held, also_held));
    first.open_session("e").await.unwrap();
    assert_eq!(ids(sessions), ["a", "e"]);
    drop(run);
    first.open_session("d").await.unwrap();
    assert_eq!((ids(sessions), shares.taken()), (vec!["d".to_owned(), "e".to_owned()], 2));
}

#[tokio::test]
async fn what_is_in_memory_alone_is_never_closed_to_make_room() {
    let harness = harness(ScriptedModel::new()).build().unwrap();
    limited(&harness, 1, 1);
    harness.open_session("a").await.unwrap();
    let refused = harness.open_session("b").await.unwrap_err();
    assert!(matches!(refused, OpenError::TooMany { .. }), "{refused}");
    assert_eq!(harness.sessions().store().close_idle(Duration::ZERO), 0);
    harness.delete_session(&"a".parse().unwrap()).await.unwrap();
    harness.open_session("b").await.unwrap();
}

#[tokio::test]
async fn tenants_share_the_limit_and_the_ids_are_their_own() {
    let all = process(&journal());
    let (one, other) = (all.tenant("one").unwrap(), all.tenant("other").unwrap());
    let shares = limited(&all, 4, 2);
    let mut held = Vec::new();
    for id in ["a", "b", "c"] {
        held.push(one.open_session(id).await.unwrap());
    }
    let refused = one.open_session("d").await.unwrap_err();
    assert!(matches!(refused, OpenError::TooMany { most: 4, .. }), "{refused}");
    // The other's guarantee; what is idle of those that exceed theirs makes room.
    let first = other.open_session("a").await.unwrap();
    held.remove(0);
    let second = other.open_session("b").await.unwrap();
    assert_eq!(
        (ids(one.sessions()), ids(other.sessions())),
        (vec!["b".into(), "c".into()], vec!["a".to_owned(), "b".to_owned()])
    );
    assert_eq!((shares.taken(), all.sessions().store().len()), (4, 4));
    let views = async |harness: &Harness| listed(harness).await.len();
    assert_eq!((views(&one).await, views(&other).await), (2, 2));
    drop((first, second, held));
    assert_eq!(all.sessions().store().close_idle(Duration::ZERO), 4);
    assert_eq!((shares.taken(), all.sessions().store().is_empty()), (0, true));
}

#[tokio::test]
async fn only_a_session_that_is_not_in_use_is_deleted() {
    let journal = journal();
    let first = process(&journal);
    let (id, session) = ("s".parse().unwrap(), first.open_session("s").await.unwrap());
    say(&session).await;
    let in_use = async || match first.delete_session(&id).await {
        Err(DeleteError::InUse(what)) => what,
        deleted => panic!("{deleted:?}"),
    };
    assert_eq!(in_use().await, InUse::Held);
    let run = session.run("again").unwrap();
    drop(session);
    assert_eq!(in_use().await, InUse::Run);
    drop(run);
    // Another process that has it open is not disturbed.
    let second = process(&journal);
    let busy = second.delete_session(&id).await.unwrap_err();
    assert!(matches!(busy, DeleteError::Journal(_)), "{busy}");
    assert_eq!(first.open_session("s").await.unwrap().history().len(), 2);
    first.delete_session(&id).await.unwrap();
    let unknown = first.delete_session(&id).await.unwrap_err();
    assert_eq!(unknown.to_string(), "unknown session s");
    assert!(first.sessions().find(&id).await.unwrap().is_none());
    assert!(first.open_session("s").await.unwrap().history().is_empty());
}

#[tokio::test]
async fn a_deletion_that_its_caller_leaves_deletes_the_tasks_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut spawn = spawn_args("kid", "dig");
    spawn["timeout_seconds"] = 0.into();
    let main = [Turn::new().call("agent_spawn", spawn), Turn::new().text("yes")];
    let model = ScriptedModel::new().agent("main", main).agent("kid", [Turn::new().text("gold")]);
    let harness = harness(model).with_subagent(AgentSpec::new("kid", "Digs"));
    let sqlite = SqliteJournal::open(dir.path().join("j.db")).unwrap();
    let harness = harness.with_journal(sqlite).build().unwrap();
    let (id, tasks) = ("s".parse().unwrap(), harness.tasks());
    say(&harness.open_session("s").await.unwrap()).await;
    while !tasks.live_below(&id).is_empty() {
        tokio::time::sleep(ms(5)).await;
    }
    let results = async || tasks.list(&TaskFilter::of_root(id.clone())).await.unwrap();
    assert_eq!(results().await.len(), 1);
    // Polled once: the journal's thread deletes the session nevertheless.
    assert!(harness.delete_session(&id).now_or_never().is_none());
    while !listed(&harness).await.is_empty() {
        tokio::time::sleep(ms(5)).await;
    }
    for _ in 0..400 {
        if results().await.is_empty() {
            break;
        }
        tokio::time::sleep(ms(5)).await;
    }
    assert_eq!(results().await, []);
}

#[tokio::test]
async fn a_session_that_is_deleted_while_it_is_looked_up_does_not_begin_anew() {
    let journal = journal();
    let (first, second, id) = (process(&journal), process(&journal), "s".parse().unwrap());
    say(&second.open_session("s").await.unwrap()).await;
    journal.hold_opens(true);
    let mut found = pin!(first.sessions().find(&id));
    assert!((&mut found).now_or_never().is_none());
    assert_eq!(journal.held_opens(), 1);
    second.delete_session(&id).await.unwrap();
    journal.hold_opens(false);
    assert!(found.await.unwrap().is_none());
    assert!(first.sessions().store().is_empty());
    assert!(listed(&first).await.is_empty());
}

#[tokio::test]
async fn a_run_is_found_wherever_it_is() {
    let journal = journal();
    let first = process(&journal);
    let session = first.open_session("s").await.unwrap();
    say(&session).await;
    let (past, live) = (session.runs()[0].id.clone(), session.queue("go"));
    let second = process(&journal);
    for (harness, run, of) in [
        (&first, &past, Some("s")),
        (&first, live.id(), Some("s")),
        (&second, &past, Some("s")),
        (&second, live.id(), None),
        (&first, &"none".parse().unwrap(), None),
    ] {
        let found = harness.sessions().session_of(run).await.unwrap();
        assert_eq!(found.as_ref().map(|session| session.as_str()), of, "{run}");
    }
    let found: Vec<_> = session.find_runs().iter().map(|run| (run.id().clone(), run.is_over())).collect();
    assert_eq!(found, [(past.clone(), true), (live.id().clone(), false)]);
    assert!(session.find_run(live.id()).unwrap().handle().is_some());
    assert!(session.find_run(&past).unwrap().handle().is_none());
}

#[tokio::test]
async fn a_detached_run_is_released_after_what_it_held() {
    let session = process(&journal()).open_session("s").await.unwrap();
    let held = Arc::new(());
    let run = session.queue("go").detach_with(held.clone());
    assert!(run.released().now_or_never().is_none());
    tokio::time::timeout(ms(5000), run.released()).await.unwrap();
    assert_eq!((Arc::strong_count(&held), session.in_use()), (1, Some(InUse::Held)));
}

#[tokio::test]
async fn a_session_that_another_process_writes_is_read_from_its_journal() {
    let journal = journal();
    let (writer, other) = (process(&journal), process(&journal));
    let id: SessionId = "s".parse().unwrap();
    assert!(other.sessions().copy(&id).await.unwrap().is_none());
    let session = writer.open_session("s").await.unwrap();
    say(&session).await;
    let copy = other.sessions().copy(&id).await.unwrap().unwrap();
    let again = other.sessions().copy(&id).await.unwrap().unwrap();
    assert!(Arc::ptr_eq(copy.log(), again.log()), "one copy for all readers");
    let first = copy.log().last_seq();
    assert_eq!(first, session.log().last_seq());
    // What was recorded before the copy, and what comes after.
    let readers = [1, first, first + 1].map(|from| copy.log().committed_from(from));
    say(&session).await;
    let last = session.log().last_seq();
    let recorded = journal.read(&id, 1, 999).await.unwrap();
    for (reader, from) in readers.into_iter().zip([1, first, first + 1]) {
        let read: Vec<_> = reader.take((last + 1 - from) as usize).collect().await;
        assert_eq!(read, recorded[from as usize - 1..], "from {from}");
    }
    let run = session.runs().pop().unwrap();
    assert_eq!(copy.run(&run.id).await.unwrap(), Some((run.first, true)));
    assert_eq!(copy.run(&"run-x".parse().unwrap()).await.unwrap(), None);
    // Readers of a session that is deleted are told, and do not go on with the next of its id.
    let mut tail = copy.log().committed_from(last + 1);
    drop(session);
    writer.delete_session(&id).await.unwrap();
    let session = writer.open_session("s").await.unwrap();
    for _ in 0..3 {
        say(&session).await;
    }
    let (from_start, begun_anew) = (copy.log().committed_from(1), other.sessions().copy(&id).await.unwrap());
    assert_eq!(tail.next().await, None);
    let why = copy.log().failure().unwrap().to_string();
    assert_eq!(why, "session s can't be followed: there is no session \"s\"");
    let begun_anew = begun_anew.unwrap();
    assert!(!Arc::ptr_eq(copy.log(), begun_anew.log()));
    let recorded = journal.read(&id, 1, 999).await.unwrap();
    let read: Vec<_> = begun_anew.log().committed_from(1).take(recorded.len()).collect().await;
    assert_eq!(read, recorded);
    let old: Vec<_> = from_start.collect().await;
    assert!(old.iter().all(|event| matches!(event.kind, EventKind::Gap { .. }) || !recorded.contains(event)));
}

#[tokio::test]
async fn all_processes_have_the_same_pages() {
    let journal = journal();
    let processes = [process(&journal), process(&journal)];
    let mut open = Vec::new();
    for number in 0..12 {
        let session = processes[number % 2].open_session(format!("s-{number}")).await.unwrap();
        say(&session).await;
        open.push(session);
    }
    // A page of one process, the next of the other.
    let mut listing = Listing::new(Part::Of(None), 1);
    let mut seen = Vec::new();
    for number in 0.. {
        let page = processes[number % 2].sessions().list(&listing).await.unwrap();
        seen.extend(page.items.iter().map(|session| session.id.to_string()));
        match page.next {
            Some(next) => listing.after = Some(next.parse().unwrap()),
            None => break,
        }
    }
    let whole = async |process: &Harness| {
        listed(process).await.iter().map(|session| session.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!((seen.len(), &seen), (12, &whole(&processes[0]).await));
    assert_eq!(seen, whole(&processes[1]).await);
}
