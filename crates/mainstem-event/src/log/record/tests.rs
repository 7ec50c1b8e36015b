//! A log with a record, commit by commit.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    task::Waker,
};

use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, ready},
};
use proptest::prelude::*;
use tokio_test::{assert_pending, assert_ready, task};

use super::*;
use crate::{Cursor, EventKind, LogOptions, Outcome, SessionLog, fixture};

/// A record in memory that commits and fails when the test says so, and has pages of three events.
#[derive(Default)]
struct ByHand {
    begin: Position,
    events: Mutex<Vec<AgentEvent>>,
    committed: AtomicU64,
    failure: Mutex<Option<Arc<str>>>,
    waker: Mutex<Option<Waker>>,
}

impl ByHand {
    fn log(self: &Arc<Self>, ring: usize, lag: usize) -> Arc<SessionLog> {
        let options = LogOptions { ring, buffer: 4, lag, ..LogOptions::default() };
        SessionLog::with_record("s".parse().unwrap(), Arc::new(crate::SystemClock), options, self.clone())
    }

    fn wake(&self) {
        self.waker.lock().unwrap().as_ref().unwrap().wake_by_ref();
    }

    fn commit(&self, seq: u64) {
        let last = self.events.lock().unwrap().last().map_or(self.begin.last, |event| event.seq);
        self.committed.fetch_max(seq.min(last), SeqCst);
        self.wake();
    }

    fn fail(&self, why: &str) {
        *self.failure.lock().unwrap() = Some(why.into());
        self.wake();
    }

    /// Returns the first event that readers must not see.
    fn first_held(&self) -> u64 {
        let events = self.events.lock().unwrap();
        let is_held = |event: &&AgentEvent| event.kind.is_durable() && event.seq > self.committed();
        events.iter().find(is_held).map_or(u64::MAX, |event| event.seq)
    }

    /// Drops events, as retention does.
    fn forget(&self, seqs: impl Fn(u64) -> bool) {
        self.events.lock().unwrap().retain(|event| !seqs(event.seq));
    }
}

impl Record for ByHand {
    fn position(&self) -> Position {
        self.begin.clone()
    }

    fn append(&self, event: &AgentEvent) {
        self.events.lock().unwrap().push(event.clone());
    }

    fn committed(&self) -> u64 {
        self.committed.load(SeqCst)
    }

    fn failure(&self) -> Option<Arc<str>> {
        self.failure.lock().unwrap().clone()
    }

    fn watch(&self, waker: Waker) {
        *self.waker.lock().unwrap() = Some(waker);
    }

    fn read(&self, from: u64, through: u64) -> BoxFuture<'static, Page> {
        assert!(from <= through && through <= self.committed(), "{from} to {through}");
        let events = self.events.lock().unwrap();
        let range = |event: &&AgentEvent| event.seq >= from && event.seq <= through;
        let events: Vec<_> = events.iter().filter(range).take(3).cloned().collect();
        let through = if events.len() < 3 { through } else { events[2].seq };
        ready(Page { events, through }).boxed()
    }
}

fn read(cursor: &mut Cursor) -> Vec<String> {
    let show = |event: AgentEvent| match &event.kind {
        EventKind::Gap { from_seq, to_seq, missed, .. } => {
            assert_eq!((*missed, event.seq), (to_seq + 1 - from_seq, *to_seq));
            format!("[{from_seq}-{to_seq}]")
        }
        _ => event.seq.to_string(),
    };
    std::iter::from_fn(|| cursor.try_next()).map(show).collect()
}

#[test]
fn a_patient_reader_sees_what_is_committed_and_is_woken_by_that_alone() {
    let record = Arc::new(ByHand::default());
    let log = record.log(2, 8);
    let root = fixture::root(&log);
    root.emit(fixture::start("go"));
    let mut eager = task::spawn(log.subscribe_from(1));
    let mut patient = task::spawn(log.committed_from(1));
    assert_ready!(eager.poll_next());
    assert_pending!(eager.poll_next());
    assert_pending!(patient.poll_next());
    for text in ["one", "two", "three"] {
        root.emit(fixture::text("b", text));
    }
    assert!(eager.is_woken() && !patient.is_woken());
    // Also for a reader that the ring has passed.
    record.commit(2);
    assert!(patient.is_woken());
    assert_eq!(read(&mut patient), ["1", "2"]);
    record.commit(4);
    assert_eq!(read(&mut patient), ["3", "4"]);
    // A restart loses an uncommitted event; only readers that can't reconnect have seen it.
    root.emit(fixture::text("b", "four"));
    assert_pending!(patient.poll_next());
    record.fail("the disk is full");
    assert!(patient.is_woken());
    assert_eq!(assert_ready!(patient.poll_next()), None);
    assert_eq!(read(&mut eager), ["2", "3", "4", "5"]);
    assert_eq!(assert_ready!(task::spawn(log.committed_from(1)).poll_next()).unwrap().seq, 1);
    assert_eq!(assert_ready!(task::spawn(log.committed_from(5)).poll_next()), None);
}

#[test]
fn a_wait_for_a_commit_ends_with_the_commit_or_with_the_record() {
    let record = Arc::new(ByHand::default());
    let log = record.log(2, 8);
    let root = fixture::root(&log);
    root.emit(fixture::start("go"));
    root.emit(fixture::text("b", "one"));
    let mut first = task::spawn(log.until_committed(1));
    let mut second = task::spawn(log.until_committed(2));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    record.commit(1);
    assert!(assert_ready!(first.poll()));
    assert_pending!(second.poll());
    record.fail("the disk is full");
    assert!(!assert_ready!(second.poll()));
    assert!(log.until_committed(1).now_or_never().unwrap());
    assert!(fixture::log(8, 8).until_committed(9).now_or_never().unwrap(), "without a record");
}

#[test]
fn what_promises_durability_is_shown_to_nobody_before_it_is_committed() {
    let record = Arc::new(ByHand::default());
    let log = record.log(8, 8);
    let root = fixture::root(&log);
    let mut readers = [log.attach(), log.subscribe(), log.subscribe_from(1), log.recent_from(1)];
    root.emit(fixture::start("go"));
    root.emit(fixture::end(Outcome::Success));
    root.emit(fixture::start("on"));
    for reader in &mut readers {
        assert_eq!(read(reader), ["1"], "the rest waits, whatever it is");
        assert!(!reader.is_at_end());
    }
    record.commit(1);
    assert!(readers.iter_mut().all(|reader| read(reader).is_empty()));
    record.commit(2);
    for reader in &mut readers {
        assert_eq!(read(reader), ["2", "3"]);
        assert!(reader.is_at_end());
    }
}

#[test]
fn a_reader_that_waits_for_a_commit_is_woken_by_it() {
    let record = Arc::new(ByHand::default());
    let log = record.log(8, 8);
    let mut reader = task::spawn(log.subscribe());
    fixture::root(&log).emit(fixture::end(Outcome::Success));
    assert_pending!(reader.poll_next());
    record.commit(1);
    assert!(reader.is_woken());
    assert!(assert_ready!(reader.poll_next()).unwrap().is_run_end());
}

#[test]
fn what_the_ring_has_dropped_comes_from_the_record() {
    let record = Arc::new(ByHand::default());
    let log = record.log(2, 100);
    let mut early = log.subscribe();
    (0..9).for_each(|_| _ = log.emit(fixture::text("b", "x")));
    assert!(read(&mut early).is_empty(), "neither in the ring nor committed, which is no gap");
    record.commit(5);
    assert_eq!(read(&mut early), ["1", "2", "3", "4", "5"]);
    assert_eq!(early.next_seq(), 6);
    record.commit(9);
    let all: Vec<_> = (1..10).map(|seq| seq.to_string()).collect();
    assert_eq!(read(&mut early), all[5..]);
    for from in 0..11 {
        let expected = &all[(from.max(1) - 1).min(9)..];
        assert_eq!(read(&mut log.subscribe_from(from as u64)), expected, "from {from}");
    }
    assert_eq!(read(&mut log.recent_from(1)), ["[1-7]", "8", "9"]);
    record.forget(|seq| seq <= 4 || seq == 6);
    assert_eq!(read(&mut log.subscribe_from(1)), ["[1-4]", "5", "[6-6]", "7", "8", "9"]);
    record.forget(|seq| seq <= 8);
    assert_eq!(read(&mut log.subscribe_from(1)), ["[1-7]", "8", "9"], "the ring has them still");
}

#[test]
fn a_log_goes_on_after_its_record() {
    let mut begin = Position::default();
    let past =
        fixture::events([("", fixture::start("go")), ("a", fixture::start("do")), ("a", fixture::ask())]);
    past.iter().for_each(|event| begin.apply(event));
    assert_eq!((begin.last, begin.streams, begin.run.is_some()), (3, 1, true));
    let record = Arc::new(ByHand { begin, committed: 3.into(), events: past.into(), ..ByHand::default() });
    let log = record.log(2, 8);
    assert_eq!((log.last_seq(), log.committed()), (3, Some(3)));
    assert_eq!(read(&mut log.subscribe_from(1)), ["1", "2", "3"]);
    assert_eq!(read(&mut log.subscribe()), [""; 0]);
    let child = fixture::child(&fixture::root(&log), "b");
    assert_eq!(child.emit(fixture::start("more")), 4);
    assert_eq!(child.origin().source.as_ref().unwrap().stream_id, 2);
    log.emit(fixture::text("b", "x"));
    let mut reader = log.subscribe_from(5);
    assert!(reader.try_next().unwrap().run_id().is_some(), "the run that was cut is still the active one");
    let ended = fixture::root(&log).emit(fixture::end(Outcome::Cancelled));
    record.commit(ended);
    log.emit(fixture::text("b", "x"));
    assert!(
        reader.by_ref().take(2).map(|event| event.run_id().is_some()).collect::<Vec<_>>().now_or_never()
            == Some(vec![true, false])
    );
}

#[test]
fn a_slow_record_holds_all_producers_back() {
    let record = Arc::new(ByHand::default());
    let log = record.log(100, 6);
    let mut caller = log.attach();
    let root = fixture::root(&log);
    let task = fixture::child(&root, "t");
    task.move_to_background("task".parse().unwrap());
    (0..6).for_each(|_| _ = root.emit(fixture::ask()));
    assert_eq!(read(&mut caller).len(), 6);
    let mut waiting = [&root, &task, &root].map(|sink| task::spawn(sink.settle()));
    waiting.iter_mut().for_each(|settle| assert_pending!(settle.poll()));
    log.emit(fixture::ask());
    read(&mut caller);
    assert!(waiting.iter().all(|settle| !settle.is_woken()), "reading makes no room on the disk");
    record.commit(1);
    assert!(waiting.iter().all(|settle| !settle.is_woken()), "six still wait");
    record.commit(2);
    waiting.iter_mut().for_each(|settle| assert_ready!(settle.poll()));
}

#[test]
fn a_failed_record_releases_everyone_and_the_run_does_not_look_well() {
    let record = Arc::new(ByHand::default());
    let log = record.log(1, 1);
    let mut reader = log.attach();
    let root = fixture::root(&log);
    root.emit(fixture::end(Outcome::Success));
    root.emit(fixture::ask());
    let mut waiting = task::spawn(root.settle());
    assert_pending!(waiting.poll());
    assert_eq!((reader.try_next(), log.failure()), (None, None));
    record.fail("j.db: disk full");
    assert_ready!(waiting.poll());
    assert_eq!(log.failure().map(|why| &**why), Some("j.db: disk full"));
    let ended = reader.try_next().unwrap();
    let EventKind::AgentEnd { outcome: Outcome::Error, error: Some(error), .. } = &ended.kind else {
        panic!("{ended}")
    };
    assert_eq!((error.code.as_str(), error.message.as_str()), ("record", "j.db: disk full"));
    root.emit(fixture::end(Outcome::Success));
    assert_eq!(read(&mut reader), ["2", "3"]);
    assert_eq!(read(&mut log.subscribe_from(1)), ["[1-2]", "3"], "which the record does not have");
    assert_eq!(log.committed(), Some(0));
}

proptest! {
    /// Any mixture of emitting, committing and reading, reconnecting at any point: every reader
    /// gets the same events, without a gap.
    #[test]
    fn every_reader_has_the_same_concatenation(ring in 1..5usize, script in prop::collection::vec(0..8u8, 0..80)) {
        let record = Arc::new(ByHand::default());
        let log = record.log(ring, 3);
        let sink = fixture::root(&log);
        let mut readers = [log.attach(), log.subscribe(), log.subscribe()].map(|cursor| (cursor, Vec::new()));
        for step in script {
            match step {
                0 | 1 => _ = sink.emit(fixture::ask()),
                2 => _ = sink.emit(fixture::end(Outcome::Success)),
                3 => record.commit(record.committed() + 1),
                4 => record.commit(record.committed() + 3),
                5 | 6 => {
                    let (cursor, seen) = &mut readers[usize::from(step) - 4];
                    seen.extend(cursor.try_next());
                }
                _ => {
                    let (cursor, seen) = &mut readers[2];
                    seen.extend(cursor.try_next());
                    *cursor = log.subscribe_from(seen.last().map_or(1, |event: &AgentEvent| event.seq + 1));
                }
            }
            let first_held = record.first_held();
            for (_, seen) in &readers {
                prop_assert!(seen.last().is_none_or(|event| event.seq < first_held));
            }
        }
        record.commit(u64::MAX);
        for (mut cursor, mut seen) in readers {
            seen.extend(std::iter::from_fn(|| cursor.try_next()));
            prop_assert_eq!(&seen, &*record.events.lock().unwrap());
        }
    }
}
