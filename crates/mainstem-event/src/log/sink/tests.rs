//! Which producers wait, and for what.

use std::collections::VecDeque;

use proptest::prelude::*;
use tokio_test::{assert_pending, assert_ready, task};

use super::*;
use crate::{AgentEvent, Cursor, LogOptions, fixture};

type Waiting<'a> = task::Spawn<Settle<'a>>;

fn kind() -> EventKind {
    fixture::text("b", "x")
}

fn children<const N: usize>(log: &Arc<SessionLog>) -> [EventSink; N] {
    let root = fixture::root(log);
    std::array::from_fn(|index| fixture::child(&root, &format!("a{index}")))
}

/// Emits, and has to wait.
fn park(sink: &EventSink) -> Waiting<'_> {
    sink.emit(kind());
    let mut waiting = task::spawn(sink.settle());
    assert_pending!(waiting.poll());
    waiting
}

/// Emits, and does not wait.
fn pass(sink: &EventSink) {
    sink.emit(kind());
    assert_ready!(task::spawn(sink.settle()).poll());
}

fn woken(waiting: &[Waiting<'_>]) -> Vec<bool> {
    waiting.iter().map(task::Spawn::is_woken).collect()
}

fn task_of(event: Option<AgentEvent>) -> Option<TaskId> {
    event.unwrap().source().unwrap().task_id.clone()
}

#[test]
fn a_producer_waits_when_the_caller_is_a_buffer_behind() {
    let log = fixture::log(64, 3);
    let [sink] = children(&log);
    let mut caller = log.attach();
    pass(&sink);
    pass(&sink);
    let mut waiting = park(&sink);
    assert_pending!(waiting.poll());
    caller.try_next();
    assert!(waiting.is_woken());
    assert_ready!(waiting.poll());
    assert_ready!(waiting.poll(), "and from then on");
}

#[test]
fn nobody_waits_for_nobody() {
    let log = fixture::log(2, 1);
    let [sink] = children(&log);
    let _observer = log.subscribe();
    (0..10).for_each(|_| pass(&sink));
    let caller = log.attach();
    let waiting = park(&sink);
    drop(caller);
    assert!(waiting.is_woken());
    pass(&sink);
}

#[test]
fn a_buffer_of_nothing_is_a_buffer_of_one() {
    let log = fixture::log(2, 0);
    let [sink] = children(&log);
    pass(&sink);
    let mut caller = log.attach();
    assert_ready!(task::spawn(sink.settle()).poll());
    let mut waiting = park(&sink);
    caller.try_next();
    assert_ready!(waiting.poll());
}

/// Settles, and has to wait, without an event of its own ahead of the caller.
fn queue(sink: &EventSink) -> Waiting<'_> {
    let mut waiting = task::spawn(sink.settle());
    assert_pending!(waiting.poll());
    waiting
}

#[test]
fn producers_continue_in_the_order_of_arrival_when_there_is_room_for_a_batch() {
    let log = fixture::log(64, 64);
    let sinks: [_; 6] = children(&log);
    let mut caller = log.attach();
    (0..64).for_each(|_| _ = sinks[0].emit(kind()));
    let mut waiting: Vec<_> = sinks.iter().map(queue).collect();
    for (read, expected) in [(15, 0), (16, 1), (31, 1), (32, 2), (48, 3), (64, 4)] {
        while caller.next_seq() <= read {
            caller.try_next();
        }
        let all = woken(&waiting);
        assert!(all.is_sorted_by_key(|is_woken| !is_woken), "after {read}: {all:?}");
        assert_eq!(all.iter().filter(|is_woken| **is_woken).count(), expected, "after {read}");
    }
    // Its batch needs no further room, and leads to the next turn.
    assert_ready!(waiting[0].poll());
    assert!(waiting[4].is_woken() && !waiting[5].is_woken());
}

#[test]
fn a_batch_ends_after_sixteen_events_of_all() {
    let log = fixture::log(64, 64);
    let [first, second] = children(&log);
    let mut caller = log.attach();
    (0..64).for_each(|_| _ = first.emit(kind()));
    let [mut one, mut other] = [&first, &second].map(queue);
    (0..32).for_each(|_| _ = caller.try_next());
    (0..32).for_each(|_| _ = EventSink::root(log.clone(), fixture::origin("")).emit(kind()));
    assert_ready!(one.poll());
    // The caller is a buffer behind.
    (0..15).for_each(|_| pass(&first));
    drop(park(&first));
    assert_ready!(other.poll());
    drop(park(&second));
}

#[test]
fn a_turn_leads_to_the_next() {
    let log = fixture::log(64, 1);
    let sinks: [_; 3] = children(&log);
    let mut caller = log.attach();
    sinks[0].emit(kind());
    let mut waiting = sinks.each_ref().map(queue);
    caller.try_next();
    assert_eq!(woken(&waiting), [true, false, false]);
    assert_ready!(waiting[0].poll());
    assert_eq!(woken(&waiting[1..]), [true, false], "nothing is left to read that would wake it");
    assert_ready!(waiting[1].poll());
    assert!(waiting[2].is_woken());
}

#[test]
fn a_caller_that_waits_lets_producers_go_on_behind_those_that_are_not_polled() {
    for buffer in [1, 64] {
        let log = fixture::log(64, buffer);
        let sinks: [_; 6] = children(&log);
        let mut caller = log.attach();
        (0..buffer).for_each(|_| _ = sinks[0].emit(kind()));
        let waiting = sinks.each_ref().map(queue);
        while caller.try_next().is_some() {}
        assert!(!waiting[5].is_woken(), "{buffer}: the room is that of the others");
        let mut next = task::spawn(caller);
        (0..6).for_each(|_| assert_pending!(next.poll_next()));
        assert_eq!(woken(&waiting), [true; 6], "{buffer}");
    }
}

/// Emits until it has to wait; returns how often.
fn emit_on<'s>(sink: &'s EventSink, waiting: &mut Option<Waiting<'s>>) -> u32 {
    if waiting.as_mut().is_some_and(|waiting| !waiting.is_woken() || waiting.poll().is_pending()) {
        return 0;
    }
    for emitted in 1.. {
        sink.emit(kind());
        let mut settle = task::spawn(sink.settle());
        if settle.poll().is_pending() {
            *waiting = Some(settle);
            return emitted;
        }
    }
    unreachable!("a producer yields")
}

#[test]
fn producers_that_always_have_events_take_turns() {
    for buffer in [1, 20, 64] {
        let log = fixture::log(64, buffer);
        let sinks: [_; 20] = children(&log);
        let mut caller = log.attach();
        let (mut waiting, mut emitted): ([Option<Waiting<'_>>; 20], _) = (Default::default(), [0; 20]);
        for _round in 0..2000 {
            for one in 0..20 {
                emitted[one] += emit_on(&sinks[one], &mut waiting[one]);
            }
            while caller.try_next().is_some() {}
            if emitted.iter().sum::<u32>() >= 20 * 100 {
                break;
            }
        }
        assert!(emitted.iter().all(|emitted| (80..=120).contains(emitted)), "{buffer}: {emitted:?}");
    }
}

#[test]
fn a_producer_waits_when_the_caller_is_too_many_bytes_behind() {
    let options = LogOptions { buffer_bytes: 100, ..LogOptions::default() };
    let log = SessionLog::with("s".parse().unwrap(), fixture::log(1, 1).clock().clone(), options);
    let [sink, background] = children(&log);
    background.move_to_background("task".parse().unwrap());
    let mut caller = log.attach();
    background.emit(fixture::text("b", &"x".repeat(1000)));
    sink.emit(fixture::text("b", &"x".repeat(99)));
    assert_ready!(task::spawn(sink.settle()).poll());
    let mut waiting = park(&sink);
    caller.try_next();
    assert!(!waiting.is_woken(), "work in the background does not count");
    caller.try_next();
    assert_ready!(waiting.poll());
    // What an earlier caller did not read does not count for the next one.
    sink.emit(fixture::text("b", &"x".repeat(100)));
    let _next = log.attach();
    pass(&sink);
}

#[test]
fn a_gap_counts_for_all_that_it_stands_for() {
    let log = fixture::log(1, 1);
    let [foreground, background] = children(&log);
    background.move_to_background("task".parse().unwrap());
    let mut caller = log.attach();
    (0..5).for_each(|_| pass(&background));
    let mut waiting = task::spawn(foreground.settle());
    assert_pending!(waiting.poll());
    assert_eq!(caller.try_next().unwrap().seq, 4, "a gap of four");
    assert_eq!(caller.try_next().unwrap().seq, 5);
    assert_ready!(waiting.poll());
}

#[test]
fn who_gives_up_hands_its_place_on() {
    let log = fixture::log(64, 1);
    let sinks: [_; 4] = children(&log);
    let mut caller = log.attach();
    let mut waiting: VecDeque<_> = sinks.iter().map(park).collect();
    // It was woken, and is dropped instead of polled.
    while caller.try_next().is_some() {}
    assert!(waiting.pop_front().unwrap().is_woken());
    assert_eq!(woken(waiting.make_contiguous()), [true, false, false]);
    // It was not woken.
    drop(waiting.pop_back());
    assert_eq!(woken(waiting.make_contiguous()), [true, false]);
    // It had continued before it was dropped: no other is woken for that.
    let mut gone = waiting.pop_front().unwrap();
    sinks[0].emit(kind());
    assert_ready!(gone.poll());
    drop(gone);
    assert_eq!(woken(waiting.make_contiguous()), [false]);
}

#[test]
fn a_waiting_producer_may_move_to_another_task() {
    let log = fixture::log(64, 1);
    let [sink] = children(&log);
    let mut caller = log.attach();
    let mut first = park(&sink);
    let mut second = task::spawn(());
    second.enter(|cx, _| assert!(Pin::new(&mut *first).poll(cx).is_pending()));
    caller.try_next();
    assert!(second.is_woken() && !first.is_woken());
}

#[test]
fn a_caller_that_is_replaced_or_dropped_keeps_nobody_waiting() {
    let log = fixture::log(64, 1);
    let sinks: [_; 3] = children(&log);
    let first = log.attach();
    let mut waiting: Vec<_> = sinks.iter().map(park).collect();
    let second = log.attach();
    assert_eq!(woken(&waiting), [true; 3]);
    waiting.iter_mut().for_each(|one| assert_ready!(one.poll()));
    let waiting: Vec<_> = sinks.iter().map(park).collect();
    drop(first);
    assert_eq!(woken(&waiting), [false; 3]);
    drop(second);
    assert_eq!(woken(&waiting), [true; 3]);
}

#[test]
fn moving_to_the_background_frees_the_subtree_and_no_one_else() {
    let log = fixture::log(64, 1);
    let root = fixture::root(&log);
    let (a, b) = (fixture::child(&root, "a"), fixture::child(&root, "b"));
    let below = fixture::child(&a, "a/x");
    let deep = fixture::child(&below, "a/x/y");
    let _caller = log.attach();
    let sinks = [&b, &a, &below, &deep];
    let mut waiting = sinks.map(park);
    assert!(a.move_to_background("task".parse().unwrap()));
    assert_eq!(woken(&waiting), [false, true, true, true]);
    waiting[1..].iter_mut().for_each(|one| assert_ready!(one.poll()));
    assert_pending!(waiting[0].poll());
    pass(&a);
    pass(&deep);
    assert_pending!(waiting[0].poll());
}

#[test]
fn events_have_the_task_from_the_moment_of_the_move() {
    let log = fixture::log(64, 64);
    let mut reader = log.subscribe();
    let root = fixture::root(&log);
    let a = fixture::child(&root, "a");
    let below = fixture::child(&a, "a/x");
    let sinks = [&root, &a, &below];
    let mut tasks = || {
        sinks.map(|sink| {
            sink.emit(kind());
            reader.try_next().unwrap().source().and_then(|source| source.task_id.clone())
        })
    };
    assert_eq!(tasks(), [None, None, None]);
    assert!(a.move_to_background("task-1".parse().unwrap()));
    let task = Some(TaskId::try_from("task-1").unwrap());
    assert_eq!(tasks(), [None, task.clone(), task.clone()]);
    assert!(!a.move_to_background("task-2".parse().unwrap()), "it was there already");
    assert_eq!(tasks(), [None, task.clone(), task.clone()]);
    fixture::child(&below, "a/x/y").emit(kind());
    assert_eq!(task_of(reader.try_next()), task, "a child that comes later, too");
}

#[test]
fn a_task_within_a_task_keeps_its_own() {
    let log = fixture::log(64, 64);
    let mut reader = log.subscribe();
    let a = fixture::child(&fixture::root(&log), "a");
    let below = fixture::child(&a, "a/x");
    let late = fixture::child(&a, "a/y");
    assert!(below.move_to_background("inner".parse().unwrap()));
    assert!(a.move_to_background("outer".parse().unwrap()));
    late.emit(kind());
    assert_eq!(task_of(reader.try_next()), Some("outer".parse().unwrap()));
    assert!(late.move_to_background("late".parse().unwrap()), "also one that began in the outer");
    [&a, &below, &late].into_iter().for_each(|sink| _ = sink.emit(kind()));
    assert_eq!(task_of(reader.try_next()), Some("outer".parse().unwrap()));
    assert_eq!(task_of(reader.try_next()), Some("inner".parse().unwrap()));
    assert_eq!(task_of(reader.try_next()), Some("late".parse().unwrap()));
}

#[test]
fn what_is_in_the_background_belongs_to_the_run_during_which_it_happens() {
    let log = fixture::log(64, 64);
    let mut reader = log.subscribe();
    let root = fixture::root(&log);
    let a = fixture::child(&root, "a");
    let next =
        EventSink::root(log, Origin { run_id: Some("run-2".parse().unwrap()), ..(**root.origin()).clone() });
    let mut run_of = |emit: &dyn Fn()| {
        emit();
        std::iter::from_fn(|| reader.try_next()).last().unwrap().run_id().map(ToString::to_string)
    };
    run_of(&|| _ = root.emit(fixture::start("go")));
    a.move_to_background("task".parse().unwrap());
    assert_eq!(run_of(&|| _ = a.emit(kind())).as_deref(), Some("run-1"));
    run_of(&|| _ = root.emit(fixture::end(crate::Outcome::Success)));
    assert_eq!(run_of(&|| _ = a.emit(kind())), None, "between runs");
    run_of(&|| _ = next.emit(fixture::start("go on")));
    assert_eq!(run_of(&|| _ = a.emit(kind())).as_deref(), Some("run-2"));
}

#[test]
fn events_of_one_invocation_share_their_origin() {
    let log = fixture::log(64, 64);
    let mut reader = log.subscribe();
    let [sink] = children(&log);
    let mut pair = || {
        let [one, two] = [&sink, &sink.clone()].map(|sink| {
            sink.emit(kind());
            reader.try_next().unwrap()
        });
        assert!(Arc::ptr_eq(&one.origin, &two.origin));
    };
    pair();
    sink.move_to_background("task".parse().unwrap());
    pair();
}

#[test]
fn after_sixteen_in_a_row_a_producer_yields() {
    let log = fixture::log(64, 1000);
    let [foreground, background] = children(&log);
    background.move_to_background("task".parse().unwrap());
    let _caller = log.attach();
    for sink in [foreground, background] {
        for round in 0..40 {
            let mut settle = task::spawn(sink.settle());
            if round % 16 == 15 {
                assert_pending!(settle.poll(), "round {round}");
                assert!(settle.is_woken(), "it yields, and asks to be polled again at once");
            }
            assert_ready!(settle.poll(), "round {round}");
        }
    }
}

#[test]
fn a_producer_that_yielded_waits_like_any_other() {
    let log = fixture::log(64, 1);
    let [sink] = children(&log);
    (0..15).for_each(|_| pass(&sink));
    let mut caller = log.attach();
    sink.emit(kind());
    let mut settle = task::spawn(sink.settle());
    assert_pending!(settle.poll());
    assert_pending!(settle.poll());
    caller.try_next();
    assert_ready!(settle.poll());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Run(usize),
    Read,
    GiveUp(usize),
    Promote(usize),
    Attach,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => (0..6usize).prop_map(Step::Run),
        10 => Just(Step::Read),
        1 => (0..6usize).prop_map(Step::GiveUp),
        1 => (0..6usize).prop_map(Step::Promote),
        1 => Just(Step::Attach),
    ]
}

fn ahead(log: &SessionLog, caller: &Cursor) -> usize {
    (log.last_seq() + 1 - caller.next_seq()) as usize
}

proptest! {
    /// Six producers that settle after each event, in any order, with any buffer.
    #[test]
    fn the_log_is_at_most_a_buffer_a_batch_and_the_producers_ahead(
        buffer in 1..80usize,
        steps in prop::collection::vec(step(), 0..400),
    ) {
        let log = fixture::log(4, buffer);
        let sinks: [EventSink; 6] = children(&log);
        let mut caller = log.attach();
        let mut waiting: [Option<Waiting<'_>>; 6] = Default::default();
        let mut done = [false; 6];
        for step in steps {
            match step {
                Step::Run(one) if !done[one] => {
                    let mut settle = waiting[one].take().unwrap_or_else(|| {
                        sinks[one].emit(kind());
                        task::spawn(sinks[one].settle())
                    });
                    if settle.poll().is_pending() {
                        waiting[one] = Some(settle);
                    }
                }
                Step::Run(_) => {}
                Step::Read => _ = caller.try_next(),
                Step::GiveUp(one) => (waiting[one], done[one]) = (None, true),
                Step::Promote(one) => done[one] |= sinks[one].move_to_background("task".parse().unwrap()),
                Step::Attach => caller = log.attach(),
            }
            prop_assert!(ahead(&log, &caller) <= buffer + (buffer / 4).clamp(1, 16) + sinks.len());
        }
        // Each that waits is woken in the end, if those that are woken continue.
        while caller.try_next().is_some() {}
        while waiting.iter().any(Option::is_some) {
            let next = waiting.iter().position(|one| one.as_ref().is_some_and(task::Spawn::is_woken));
            prop_assert!(next.is_some(), "none is woken");
            waiting[next.unwrap()].take_if(|one| one.poll().is_ready());
        }
    }
}

#[test]
fn what_is_left_to_another_process_emits_nothing_more() {
    let log = fixture::log(64, 64);
    let [left, other] = children(&log);
    let below = fixture::child(&left, "a0/b");
    for sink in [&left, &other] {
        sink.move_to_background("task".parse().unwrap());
        pass(sink);
    }
    left.leave();
    let last = log.last_seq();
    assert_eq!((left.emit(kind()), below.emit(kind()), log.last_seq()), (last, last, last));
    assert_eq!(other.emit(kind()), last + 1);
}

#[test]
fn a_resumed_child_is_stamped_as_it_was_and_moves_to_the_background_again() {
    let log = fixture::log(64, 64);
    let mut reader = log.subscribe_from(1);
    let root = fixture::root(&log);
    let before = fixture::child(&root, "a");
    before.move_to_background("task-1".parse().unwrap());
    before.emit(kind());
    let origin = reader.try_next().unwrap().origin.clone();
    let resumed = root.resumed_child(&origin);
    resumed.move_to_background("task-1".parse().unwrap());
    resumed.emit(kind());
    assert_eq!(reader.try_next().unwrap().origin, origin);
}
