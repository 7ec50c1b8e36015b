//! The log under every schedule that shuttle tries: every waiter is woken, every event is
//! delivered, and only committed events are shown. Shuttle reports a deadlock with the schedule
//! that led to it.

mod record;

use std::sync::Arc;

use futures_util::StreamExt;
use shuttle::{
    Config, Runner,
    future::block_on,
    scheduler::{PctScheduler, RandomScheduler},
    thread,
};

use self::record::Disk;
use super::{LogOptions, SessionLog};
use crate::{AgentEvent, Cursor, EventKind, EventSink, Outcome, fixture};

/// Schedules of each model.
const SCHEDULES: usize = 200;

/// Tries a model with `schedules` random schedules, and as many with few context switches at
/// unlikely places; a hundred times as many if `RUN_SLOW_TESTS` is set.
fn check(schedules: usize, model: impl Fn() + Send + Sync + 'static) {
    let schedules = if std::env::var_os("RUN_SLOW_TESTS").is_some() { schedules * 100 } else { schedules };
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    let model = Arc::new(model);
    let again = model.clone();
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(move || again());
    Runner::new(PctScheduler::new(3, schedules), config).run(move || model());
}

/// Emits so many events, and settles after each.
fn produce(sink: &EventSink, count: usize) {
    block_on(async {
        for _ in 0..count {
            sink.emit(fixture::text("b", "x"));
            sink.settle().await;
        }
    });
}

fn children<const N: usize>(log: &Arc<SessionLog>) -> [EventSink; N] {
    let root = fixture::root(log);
    std::array::from_fn(|index| fixture::child(&root, ["a", "b", "c"][index]))
}

/// Reads up to this number; each number comes once, by itself or in a gap.
fn read(cursor: &mut Cursor, through: u64) -> Vec<AgentEvent> {
    let mut seen: Vec<AgentEvent> = Vec::new();
    while seen.last().map_or(0, |event| event.seq) < through {
        let event = block_on(cursor.next()).expect("the log goes on");
        let first = match &event.kind {
            EventKind::Gap { from_seq, .. } => *from_seq,
            _ => event.seq,
        };
        assert_eq!(first, seen.last().map_or(1, |event| event.seq + 1));
        seen.push(event);
    }
    seen
}

#[test]
fn every_parked_waiter_is_woken() {
    check(SCHEDULES, || {
        let log = fixture::log(2, 1);
        let (mut caller, mut observer) = (log.attach(), log.subscribe());
        let producers = children::<2>(&log).map(|sink| thread::spawn(move || produce(&sink, 3)));
        let observer = thread::spawn(move || read(&mut observer, 6));
        let seen = read(&mut caller, 6);
        assert!(
            seen.iter().all(|event| !matches!(event.kind, EventKind::Gap { .. })),
            "the caller's has none"
        );
        observer.join().unwrap();
        producers.into_iter().for_each(|producer| producer.join().unwrap());
    });
}

#[test]
fn a_caller_that_leaves_or_is_replaced_blocks_no_producer() {
    check(SCHEDULES, || {
        let log = fixture::log(8, 1);
        let mut caller = log.attach();
        let producers = children::<2>(&log).map(|sink| thread::spawn(move || produce(&sink, 3)));
        read(&mut caller, 1);
        let second = log.attach();
        drop(caller);
        drop(second);
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        assert_eq!(log.last_seq(), 6);
    });
}

#[test]
fn a_producer_moved_to_the_background_does_not_wait() {
    check(SCHEDULES, || {
        let log = fixture::log(16, 1);
        let mut caller = log.attach();
        let [a, b] = children(&log);
        let below = fixture::child(&a, "a/x");
        let moved: Vec<_> =
            [a.clone(), below].map(|sink| thread::spawn(move || produce(&sink, 3))).into_iter().collect();
        let stays = thread::spawn(move || produce(&b, 3));
        let mover = thread::spawn(move || assert!(a.move_to_background("task".parse().unwrap())));
        // They end without a reader.
        moved.into_iter().for_each(|producer| producer.join().unwrap());
        mover.join().unwrap();
        let seen = read(&mut caller, 9);
        stays.join().unwrap();
        for path in ["a", "a/x"] {
            let key = fixture::source(path).agent_key;
            let of = seen.iter().filter_map(AgentEvent::source).filter(|source| source.agent_key == key);
            let tasks: Vec<_> = of.map(|source| source.task_id.is_some()).collect();
            assert!(tasks.is_sorted(), "once a task, always a task: {tasks:?}");
        }
    });
}

/// A log with a disk behind it, on which a run of one agent takes place; it fails at `fails_at`.
fn on_disk(fails_at: Option<u64>) {
    let disk = Disk::new(fails_at);
    let options = LogOptions { ring: 4, buffer: 2, lag: 1, ..LogOptions::default() };
    let clock = fixture::log(1, 1).clock().clone();
    let log = SessionLog::with_record("s".parse().unwrap(), clock, options, disk.clone());
    let (mut caller, mut remote) = (log.attach(), log.committed_from(1));
    let root = fixture::root(&log);
    let child = fixture::child(&root, "a");
    let writer = thread::spawn({
        let disk = disk.clone();
        move || disk.write(6)
    });
    let run = thread::spawn(move || {
        root.emit(fixture::start("go"));
        produce(&child, 2);
        child.emit(fixture::end(Outcome::Success));
        block_on(child.settle());
        produce(&root, 1);
        root.emit(fixture::end(Outcome::Success));
    });
    let remote = thread::spawn({
        let disk = disk.clone();
        move || {
            let mut last = 0;
            while last < 6
                && let Some(event) = block_on(remote.next())
            {
                assert_eq!(event.seq, last + 1);
                assert!(event.seq <= disk.committed_now(), "what a remote reader sees is committed");
                last = event.seq;
            }
            last
        }
    });
    for seq in 1..=6 {
        let event = block_on(caller.next()).unwrap();
        assert_eq!(event.seq, seq);
        let is_kept = event.seq <= disk.committed_now() || disk.has_failed();
        assert!(is_kept || !event.kind.is_durable(), "{event} is shown before it is committed");
        if let EventKind::AgentEnd { outcome, .. } = &event.kind
            && event.is_root()
        {
            assert_eq!(
                *outcome == Outcome::Error,
                fails_at.is_some(),
                "a run that is not recorded has failed"
            );
        }
    }
    run.join().unwrap();
    writer.join().unwrap();
    assert_eq!(remote.join().unwrap(), fails_at.map_or(6, |at| at - 1));
}

#[test]
fn nothing_is_shown_before_it_is_committed_and_all_of_it_then() {
    check(SCHEDULES, || on_disk(None));
}

/// Without durable events, only commits wake the reader.
#[test]
fn a_remote_reader_is_woken_by_each_commit() {
    check(SCHEDULES, || {
        let disk = Disk::new(None);
        let clock = fixture::log(1, 1).clock().clone();
        let log = SessionLog::with_record("s".parse().unwrap(), clock, LogOptions::default(), disk.clone());
        let mut remote = log.committed_from(1);
        let [sink] = children(&log);
        let writer = thread::spawn(move || disk.write(3));
        let producer = thread::spawn(move || produce(&sink, 3));
        assert_eq!(read(&mut remote, 3).len(), 3);
        producer.join().unwrap();
        writer.join().unwrap();
    });
}

#[test]
fn a_record_that_fails_at_any_event_wakes_all_who_wait_for_it() {
    for at in 1..=6 {
        check(SCHEDULES / 4, move || on_disk(Some(at)));
    }
}
