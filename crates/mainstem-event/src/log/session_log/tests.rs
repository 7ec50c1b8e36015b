//! Order, gaps, the caller, wakers, threads.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicUsize, atomic::Ordering::SeqCst},
    task::{Context, Wake, Waker},
};

use futures_util::{FutureExt, StreamExt, future::poll_immediate};
use proptest::prelude::*;
use tokio_test::{assert_pending, assert_ready, task};

use super::*;
use crate::{Cursor, EventSink, fixture};

fn kind() -> EventKind {
    fixture::text("b", "x")
}

#[test]
fn events_are_numbered_and_stamped() {
    let log = fixture::log(8, 8);
    let mut reader = log.subscribe();
    let root = fixture::root(&log);
    let a = fixture::child(&root, "a");
    assert_eq!(log.last_seq(), 0);
    assert_eq!(root.emit(fixture::start("go")), 1);
    assert_eq!(a.emit(kind()), 2);
    assert_eq!(fixture::child(&a, "a/b").emit(kind()), 3);
    assert_eq!(log.emit(kind()), 4);
    root.emit(fixture::end(crate::Outcome::Success));
    assert_eq!(log.emit(kind()), 6);
    assert_eq!(log.last_seq(), 6);
    let read: Vec<_> = std::iter::from_fn(|| reader.try_next()).collect();
    let seqs: Vec<_> = read.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6]);
    assert!(read.iter().all(|event| event.at == fixture::NOW && *event.session_id() == "s"));
    let origins: Vec<_> = read.iter().map(|event| (*event.origin).clone()).collect();
    let streams: Vec<_> = read.iter().filter_map(|event| Some(event.source()?.stream_id)).collect();
    assert_eq!(streams, [1, 2], "in the order of their first events");
    assert_eq!(origins[..2], [fixture::origin(""), fixture::origin("a")]);
    // Session-level events belong to the active run, if there is one.
    assert_eq!(origins[3], Origin::session("s".parse().unwrap(), fixture::origin("").run_id));
    assert_eq!(origins[5], Origin::session("s".parse().unwrap(), None));
}

#[test]
fn a_copy_has_the_events_under_their_numbers() {
    let (log, copy) = (fixture::log(8, 8), fixture::log(2, 8));
    let root = fixture::root(&log);
    root.emit(fixture::start("go"));
    let mut reader = copy.subscribe();
    (0..3).for_each(|_| _ = root.emit(kind()));
    let events: Vec<_> = log.subscribe_from(1).take(4).collect::<Vec<_>>().now_or_never().unwrap();
    assert!(!copy.copy(events[1].clone()), "the first is missing");
    assert_eq!(copy.last_seq(), 0);
    for event in &events {
        assert!(copy.copy(event.clone()));
        assert!(!copy.copy(event.clone()), "once");
        assert_eq!(reader.try_next().as_ref(), Some(event));
    }
    assert_eq!((copy.last_seq(), reader.try_next()), (4, None));
}

/// Runs a script against a log with a ring of this size and returns what is read.
///
/// `r`, `a`, `b` emit as the root and two children, `t` as a child in a background task; `S`
/// subscribes from the beginning, `N` from now on, `C` attaches as the caller; `.` reads once, `*`
/// everything. One reader at a time; a new one replaces the last.
fn play(ring: usize, script: &str) -> String {
    let log = fixture::log(ring, 1000);
    let root = fixture::root(&log);
    let sinks = ["a", "b", "t"].map(|path| fixture::child(&root, path));
    sinks[2].move_to_background("task".parse().unwrap());
    let mut reader = None;
    let mut shown = Vec::new();
    for step in script.chars() {
        match step {
            'r' => _ = root.emit(kind()),
            'a' => _ = sinks[0].emit(kind()),
            'b' => _ = sinks[1].emit(kind()),
            't' => _ = sinks[2].emit(kind()),
            'S' => reader = Some(log.subscribe_from(0)),
            'N' => reader = Some(log.subscribe()),
            'C' => reader = Some(log.attach()),
            '.' => shown.push(show(reader.as_mut().unwrap().try_next())),
            '*' => shown
                .extend(std::iter::from_fn(|| reader.as_mut().unwrap().try_next()).map(|e| show(Some(e)))),
            _ => {}
        }
    }
    shown.join(" ")
}

fn show(event: Option<AgentEvent>) -> String {
    let Some(event) = event else { return "-".into() };
    let EventKind::Gap { from_seq, to_seq, missed, per_agent, .. } = &event.kind else {
        return event.seq.to_string();
    };
    assert_eq!((event.seq, *missed), (*to_seq, to_seq - from_seq + 1));
    let agents =
        per_agent.iter().map(|(agent, n)| format!("{}{n}", agent.as_str().trim_start_matches("agent:")));
    format!("[{from_seq}-{to_seq} {}]", agents.collect::<Vec<_>>().join(","))
}

#[test]
fn an_observer_that_falls_behind_gets_one_exact_gap() {
    let check = |ring: usize, script: &str, expected: &str| {
        assert_eq!(play(ring, script), expected, "{script} with a ring of {ring}");
    };
    check(3, "S . rab ....", "- 1 2 3 -");
    check(3, "rr N . ab *.", "- 3 4 -");
    check(3, "rr S *", "1 2");
    // Dropped by the ring: at the beginning, in the middle, after everything was read.
    check(3, "S raba *", "[1-1 root1] 2 3 4");
    check(3, "S rabarabb *", "[1-5 a2,b1,root2] 6 7 8");
    check(3, "S raa . baab *", "1 [2-4 a2,b1] 5 6 7");
    check(3, "S ra * raabb *", "1 2 [3-4 a1,root1] 5 6 7");
    // Twice in a row, with and without an event between.
    check(2, "S raab . raab *", "[1-2 a1,root1] [3-6 a2,b1,root1] 7 8");
    check(2, "S raab .. raab *", "[1-2 a1,root1] 3 [4-6 a1,b1,root1] 7 8");
    check(1, "S ra . ra . ra *", "[1-1 root1] [2-3 a1,root1] [4-5 a1,root1] 6");
    // Events that were dropped before the reader came are not counted by agent.
    check(2, "rarab S *", "[1-3 ] 4 5");
    check(2, "rarab S ra *", "[1-5 ] 6 7");
    check(2, "rarab S . abba *", "[1-3 ] [4-7 a2,b2] 8 9");
    // A background task is an agent like any other, to an observer.
    check(1, "S tta *", "[1-2 t2] 3");
    // A ring of nothing is a ring of one.
    check(0, "S ra *", "[1-1 root1] 2");
}

#[test]
fn the_caller_loses_no_foreground_event_and_is_told_of_background_ones() {
    let check = |ring: usize, script: &str, expected: &str| {
        assert_eq!(play(ring, script), expected, "{script} with a ring of {ring}");
    };
    check(1, "C rabrab *.", "1 2 3 4 5 6 -");
    check(1, "C tta *", "[1-2 t2] 3");
    check(1, "C ttat *", "[1-2 t2] 3 4");
    check(1, "C attbtra *", "1 [2-3 t2] 4 [5-5 t1] 6 7");
    check(2, "C tat . tat *", "[1-1 t1] 2 [3-4 t2] 5 6");
    check(3, "ra C tttt * tttt *", "[3-3 t1] 4 5 6 [7-7 t1] 8 9 10");
    // It begins with the next event.
    check(1, "rat C *.", "-");
}

#[test]
fn a_reader_begins_where_it_asks_to() {
    let log = fixture::log(4, 8);
    let root = fixture::root(&log);
    (0..6).for_each(|_| _ = root.emit(kind()));
    let first = |seq: u64| show(log.subscribe_from(seq).try_next());
    assert_eq!([first(0), first(1), first(2), first(3)], ["[1-2 ]", "[1-2 ]", "[2-2 ]", "3"]);
    assert_eq!([first(6), first(7), first(9), first(u64::MAX)], ["6", "-", "-", "-"]);
    let mut later = log.subscribe_from(8);
    assert_eq!((later.next_seq(), later.try_next()), (8, None));
    root.emit(kind());
    assert_eq!(later.try_next(), None);
    root.emit(kind());
    assert_eq!(show(later.try_next()), "8");
    assert_eq!(later.next_seq(), 9);
}

#[test]
fn a_parked_reader_is_woken_by_the_next_event() {
    let log = fixture::log(8, 8);
    let root = fixture::root(&log);
    let mut reader = task::spawn(log.subscribe());
    assert_pending!(reader.poll_next());
    assert!(!reader.is_woken());
    root.emit(kind());
    assert!(reader.is_woken());
    assert_eq!(assert_ready!(reader.poll_next()).unwrap().seq, 1);
    root.emit(kind());
    root.emit(kind());
    assert!(!reader.is_woken(), "it did not wait");
    assert_eq!(assert_ready!(reader.poll_next()).unwrap().seq, 2);
    assert_eq!(assert_ready!(reader.poll_next()).unwrap().seq, 3);
    assert_pending!(reader.poll_next());
    assert_eq!(reader.enter(|_, mut cursor| cursor.try_next()), None);
    root.emit(kind());
    assert!(!reader.is_woken(), "try_next undoes the wait");
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_waker_is_woken_once_and_the_last_one_counts() {
    let log = fixture::log(8, 8);
    let counts = [Arc::new(Count::default()), Arc::new(Count::default())];
    let wakers = counts.clone().map(Waker::from);
    let mut reader = log.subscribe();
    for waker in [&wakers[0], &wakers[0], &wakers[1]] {
        assert!(reader.poll_next_unpin(&mut Context::from_waker(waker)).is_pending());
    }
    (0..3).for_each(|_| _ = log.emit(kind()));
    assert_eq!(counts.each_ref().map(|count| count.0.load(SeqCst)), [0, 1]);
    assert!(reader.poll_next_unpin(&mut Context::from_waker(&wakers[0])).is_ready());
    drop(reader);
    log.emit(kind());
    assert_eq!(counts.each_ref().map(|count| count.0.load(SeqCst)), [0, 1]);
}

#[test]
fn a_reader_that_leaves_while_parked_takes_its_waker_along() {
    let log = fixture::log(8, 8);
    let mut gone = task::spawn(log.subscribe());
    let mut stays = task::spawn(log.subscribe());
    assert_pending!(gone.poll_next());
    assert_pending!(stays.poll_next());
    drop(gone);
    log.emit(kind());
    assert!(stays.is_woken());
    assert!(assert_ready!(stays.poll_next()).is_some());
    assert_pending!(stays.poll_next());
}

#[test]
fn a_cursor_is_a_stream_that_never_ends() {
    let log = fixture::log(8, 8);
    let mut reader = log.subscribe();
    log.emit(kind());
    tokio_test::block_on(async {
        assert_eq!(reader.next().await.unwrap().seq, 1);
        assert_eq!(poll_immediate(reader.next()).await, None);
    });
}

#[test]
fn a_second_caller_takes_over() {
    let log = fixture::log(1, 1);
    let root = fixture::root(&log);
    let background = fixture::child(&root, "t");
    let mut first = log.attach();
    root.emit(kind());
    root.emit(kind());
    let mut second = log.attach();
    (0..3).for_each(|_| _ = root.emit(kind()));
    // Events that were retained for the first while it was the caller stay; from then on it is an
    // observer.
    assert_eq!(show(first.try_next()), "1");
    assert_eq!(show(first.try_next()), "[2-4 root3]");
    assert!(!log.has_room(0), "reading as the first makes no room");
    drop(first);
    assert!(!log.has_room(0), "nor does dropping it");
    let read: Vec<_> = std::iter::from_fn(|| second.try_next()).map(|event| event.seq).collect();
    assert_eq!(read, [3, 4, 5]);
    assert!(log.has_room(0));
    background.emit(kind());
    assert!(!log.has_room(0));
    drop(second);
    assert!(log.has_room(0));
}

/// What a reader must have seen, given all events.
fn assert_no_silent_loss(all: &[AgentEvent], from: u64, seen: &[AgentEvent], is_caller: bool) {
    let mut next = from;
    for event in seen {
        let EventKind::Gap { from_seq, to_seq, missed, per_agent, .. } = &event.kind else {
            assert_eq!(event, &all[next as usize - 1]);
            next += 1;
            continue;
        };
        assert_eq!((*from_seq, *missed), (next, to_seq + 1 - next));
        let lost = &all[next as usize - 1..*to_seq as usize];
        let mut counts = BTreeMap::new();
        for event in lost {
            let agent = event.agent_key().cloned().unwrap_or_else(|| crate::fold::ROOT.parse().unwrap());
            *counts.entry(agent).or_insert(0) += 1;
        }
        assert_eq!(*per_agent, counts);
        let is_background =
            |event: &AgentEvent| event.source().is_some_and(|source| source.task_id.is_some());
        assert!(!is_caller || lost.iter().all(is_background), "the caller lost {event}");
        next = to_seq + 1;
    }
    assert_eq!(next, all.len() as u64 + 1);
}

proptest! {
    /// Any mixture of emitting and reading, with any ring.
    #[test]
    fn nothing_is_lost_in_silence(ring in 1..6usize, script in prop::collection::vec(0..7u8, 0..80)) {
        let log = fixture::log(ring, 1000);
        let mut witness = log.subscribe();
        let mut readers = [log.attach(), log.subscribe(), log.subscribe()].map(|cursor| (cursor, Vec::new()));
        let root = fixture::root(&log);
        let sinks = [root.clone(), fixture::child(&root, "a"), fixture::child(&root, "t"), root.clone()];
        sinks[2].move_to_background("task".parse().unwrap());
        let mut all = Vec::new();
        for step in script {
            match usize::from(step) {
                sink @ 0..4 => {
                    sinks[sink].emit(kind());
                    all.extend(witness.try_next());
                }
                other => {
                    let (cursor, seen) = &mut readers[other - 4];
                    seen.extend(cursor.try_next());
                }
            }
        }
        for (index, (mut cursor, mut seen)) in readers.into_iter().enumerate() {
            seen.extend(std::iter::from_fn(|| cursor.try_next()));
            assert_no_silent_loss(&all, 1, &seen, index == 0);
        }
    }
}

const PRODUCERS: usize = 4;
const EACH: usize = 2_000;

fn produce(sink: &EventSink) {
    for _ in 0..EACH {
        sink.emit(kind());
        tokio_test::block_on(sink.settle());
    }
}

/// Producers, the caller and observers on threads of their own: one order for all, every event is
/// read, and every producer is woken.
#[test]
fn threads_agree_on_the_order() {
    let log = fixture::log(PRODUCERS * EACH, 8);
    let root = fixture::root(&log);
    let cursors = [log.attach(), log.subscribe(), log.subscribe()];
    let read = |cursor: Cursor| tokio_test::block_on(cursor.take(PRODUCERS * EACH).collect::<Vec<_>>());
    let seen = std::thread::scope(|threads| {
        let readers = cursors.map(|cursor| threads.spawn(move || read(cursor)));
        for path in ["a", "b", "c", "d"] {
            let sink = fixture::child(&root, path);
            threads.spawn(move || produce(&sink));
        }
        readers.map(|reader| reader.join().unwrap())
    });
    assert!(seen[0].iter().map(|event| event.seq).eq(1..=(PRODUCERS * EACH) as u64));
    assert!(seen[1] == seen[0] && seen[2] == seen[0]);
    for path in ["a", "b", "c", "d"] {
        let key = fixture::source(path).agent_key;
        assert_eq!(seen[0].iter().filter(|event| event.agent_key() == Some(&key)).count(), EACH);
    }
}

/// A ring so small that observers fall out of it, and producers that wait all the time.
#[test]
fn threads_lose_nothing_in_silence() {
    let log = fixture::log(2, 1);
    let mut witness = log.subscribe_from(1);
    let root = fixture::root(&log);
    let readers = [log.attach(), log.subscribe()];
    let last = (PRODUCERS * EACH) as u64;
    let read = |mut cursor: Cursor| {
        let mut seen = Vec::new();
        while seen.last().is_none_or(|event: &AgentEvent| event.seq < last) {
            seen.extend(tokio_test::block_on(cursor.next()));
        }
        seen
    };
    let seen = std::thread::scope(|threads| {
        let readers = readers.map(|cursor| threads.spawn(move || read(cursor)));
        for path in ["a", "b", "c", "d"] {
            let sink = fixture::child(&root, path);
            threads.spawn(move || produce(&sink));
        }
        readers.map(|reader| reader.join().unwrap())
    });
    assert!(seen[0].iter().map(|event| event.seq).eq(1..=last), "the caller has all of it");
    assert_no_silent_loss(&seen[0], 1, &seen[1], false);
    assert!(matches!(witness.try_next().unwrap().kind, EventKind::Gap { missed, .. } if missed == last - 2));
}
