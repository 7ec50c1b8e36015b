//! The results of each view.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use futures_util::{
    FutureExt,
    stream::{self, iter},
};
use mainstem_message::Failure;
use tokio_test::{assert_pending, assert_ready, assert_ready_eq, block_on, task};

use super::*;
use crate::{EventSource, Origin, fixture::*};

/// root, a, a/x, b, a twin of `a` in a task, the session itself.
fn fleet() -> Vec<AgentEvent> {
    let mut events =
        events([("", text("1", "root")), ("a", text("1", "a")), ("a/x", ask()), ("b", text("1", "b"))]);
    let twin = EventSource {
        agent_key: "agent:a:2".parse().unwrap(),
        task_id: Some("task-1".parse().unwrap()),
        ..source("a")
    };
    let origin = Origin { source: Some(Arc::new(twin)), ..origin("a") };
    events.push(AgentEvent::new(5, NOW, Arc::new(origin), text("1", "a2")));
    let session = Arc::new(Origin::session("s".parse().unwrap(), None));
    events.push(AgentEvent::new(6, NOW, session, EventKind::StreamFallback { reason: "r".into() }));
    events
}

fn seqs(events: impl Stream<Item = AgentEvent>) -> Vec<u64> {
    block_on(events.map(|event| event.seq).collect())
}

#[test]
fn filters_let_through_what_they_say() {
    let check = |filter: EventFilter, expected: &[u64]| {
        assert_eq!(seqs(iter(fleet()).filtered(filter.clone())), expected, "{filter:?}");
        let matching = fleet().into_iter().filter(|event| filter.matches(event));
        assert_eq!(matching.map(|event| event.seq).collect::<Vec<_>>(), expected, "{filter:?}");
    };
    let new = EventFilter::new;
    check(new(), &[1, 2, 3, 4, 5, 6]);
    check(new().with_agent("a"), &[2, 5]);
    check(new().with_agent("main"), &[1, 6]);
    check(new().with_agent("unknown"), &[]);
    check(new().with_key("agent:a".parse().unwrap()), &[2]);
    check(new().with_key("agent:a:2".parse().unwrap()), &[5]);
    check(new().with_depth(0), &[1, 6]);
    check(new().with_depth(1), &[2, 4, 5]);
    check(new().with_depth(2), &[3]);
    check(new().with_max_depth(0), &[1, 6]);
    check(new().with_max_depth(1), &[1, 2, 4, 5, 6]);
    check(new().with_children_only(true), &[2, 3, 4, 5]);
    check(new().with_path("s"), &[1, 2, 3, 4, 5, 6]);
    check(new().with_path("s/a"), &[2, 3, 5]);
    check(new().with_path("s/a/x"), &[3]);
    check(new().with_path("s/"), &[]);
    check(new().with_task("task-1".parse().unwrap()), &[5]);
    check(new().with_kinds(["MODEL_CALL_START", "STREAM_FALLBACK"]), &[3, 6]);
    check(new().with_kinds([""; 0]), &[]);
    check(new().with_agent("a").with_task("task-1".parse().unwrap()), &[5]);
    check(
        new()
            .with_children_only(true)
            .with_max_depth(1)
            .with_kinds(["TEXT_BLOCK_DELTA"])
            .with_key("agent:b".parse().unwrap()),
        &[4],
    );
    check(new().with_depth(0).with_children_only(true), &[]);
}

#[test]
fn the_short_forms_are_the_filters() {
    let all = || iter(fleet());
    assert_eq!(seqs(all().from_agent("a")), [2, 5]);
    assert_eq!(seqs(all().from_key("agent:b".parse().unwrap())), [4]);
    assert_eq!(seqs(all().at_depth(2)), [3]);
    assert_eq!(seqs(all().max_depth(0)), [1, 6]);
    assert_eq!(seqs(all().root_only()), [1, 6]);
    assert_eq!(seqs(all().children()), [2, 3, 4, 5]);
    assert_eq!(seqs(all().under_path("s/a")), [2, 3, 5]);
    assert_eq!(seqs(all().in_task("task-1".parse().unwrap())), [5]);
    assert_eq!(seqs(all().kinds(["MODEL_CALL_START"])), [3]);
    assert_eq!(seqs(all().children().at_depth(1).from_agent("a")), [2, 5], "one after the other");
}

#[test]
fn every_filter_lets_gaps_through() {
    let events = [event(1, "a", text("1", "x")), gap(2, 5), event(6, "", text("1", "x"))];
    assert_eq!(seqs(iter(events.clone()).from_agent("a")), [1, 5]);
    assert_eq!(seqs(iter(events).from_agent("b").kinds(["AGENT_END"])), [5]);
}

#[test]
fn a_filter_passes_over_many_without_recursion() {
    let many = iter(1..=200_000).map(|seq| event(seq, "a", ask()));
    assert_eq!(seqs(many.from_agent("b")), [0u64; 0]);
}

#[test]
fn text_is_the_prose_of_whoever_is_left() {
    let text: Vec<_> = block_on(iter(fleet()).text().collect());
    assert_eq!(text, ["root", "a", "b", "a2"]);
    let text: String = block_on(iter(fleet()).from_agent("a").text().collect());
    assert_eq!(text, "aa2");
}

#[test]
fn ndjson_is_a_line_for_each_event() {
    let lines: Vec<_> = block_on(iter(fleet()).into_ndjson().collect());
    assert!(lines.iter().all(|line| line.ends_with("}\n") && line.matches('\n').count() == 1));
    let read: Vec<AgentEvent> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, fleet());
}

/// Returns the resulting events as text; held ones come at the end of the stream.
fn gated(list: Vec<(&str, EventKind)>) -> Vec<String> {
    let shown = |event: AgentEvent| event.to_string().trim_start().to_owned();
    block_on(iter(events(list)).gate_root_text().map(shown).collect())
}

fn block(id: &str, piece: &str) -> [(&'static str, EventKind); 3] {
    [("", text_start(id)), ("", text(id, piece)), ("", text_end(id))]
}

fn said(list: &[&[(&'static str, EventKind)]]) -> Vec<(&'static str, EventKind)> {
    list.concat()
}

#[test]
fn prose_of_a_turn_that_delegates_is_a_status_line() {
    let turn = said(&[
        &[("", ask())],
        &block("1", "Let me"),
        &[("", thinking_start("2")), ("", text("1", " ask"))],
        &[("a", text("9", "child")), ("", call("c")), ("", called("c")), ("", answered())],
    ]);
    assert_eq!(
        gated(turn),
        [
            "1 main MODEL_CALL_START m #1",
            r#"2 main CUSTOM delegating {"text":"Let me ask"}"#,
            "5 main THINKING_BLOCK_START",
            r#"7 a TEXT_BLOCK_DELTA "child""#,
            "8 main TOOL_CALL_START search (c)",
            "9 main TOOL_CALL_END search (c)",
            "10 main MODEL_CALL_END stop",
        ]
    );
}

#[test]
fn prose_between_two_calls_is_a_status_line_too() {
    let turn = said(&[
        &[("", ask()), ("", call("c")), ("", called("c"))],
        &block("1", "and"),
        &[("", call("d")), ("", called("d"))],
        &block("2", "done"),
        &[("", answered()), ("", ask())],
        &block("3", "So:"),
        &[("", answered())],
    ]);
    let gated = gated(turn);
    let is_said = |line: &&String| line.contains("CUSTOM") || line.contains("DELTA");
    let lines: Vec<_> = gated.iter().filter(is_said).collect();
    assert_eq!(
        lines,
        [
            r#"4 main CUSTOM delegating {"text":"and"}"#,
            r#"9 main CUSTOM delegating {"text":"done"}"#,
            r#"15 main TEXT_BLOCK_DELTA "So:""#,
        ]
    );
}

#[test]
fn prose_of_other_turns_comes_as_it_was_in_its_order() {
    let check = |list: Vec<(&'static str, EventKind)>| {
        let plain: Vec<_> =
            events(list.clone()).iter().map(|e| e.to_string().trim_start().to_owned()).collect();
        assert_eq!(gated(list), plain);
    };
    let between = [("a", text("9", "child")), ("", thinking_start("2")), ("a", call("c")), ("a", answered())];
    check(said(&[&[("", ask())], &block("1", "Hello"), &between, &[("", answered())]]));
    // The turn stays undecided: the end of the stream, of the run, or the next turn.
    check(said(&[&[("", ask())], &block("1", "Hello"), &between]));
    check(said(&[&block("1", "Hello"), &[("", end(Outcome::Cancelled))]]));
    check(said(&[&block("1", "Hello"), &[("", ask()), ("", call("c"))]]));
    // A child's prose is not the root's.
    check(vec![("a", text_start("1")), ("a", text("1", "x")), ("a", call("c")), ("a", answered())]);
}

#[test]
fn prose_is_held_no_longer_than_until_it_is_decided() {
    let (sender, receiver) = futures_channel();
    let mut gate = task::spawn(receiver.gate_root_text());
    let mut next = |event: AgentEvent| {
        sender.borrow_mut().push(event);
        let mut ready = Vec::new();
        while let Poll::Ready(Some(event)) = gate.poll_next() {
            ready.push(event.seq);
        }
        ready
    };
    assert_eq!(next(event(1, "a", text("9", "x"))), [1]);
    assert_eq!(next(event(2, "", text_start("1"))), [0u64; 0]);
    assert_eq!(next(event(3, "", text("1", "x"))), [0u64; 0]);
    assert_eq!(next(event(4, "a", text("9", "x"))), [0u64; 0], "or it would be out of order");
    assert_eq!(next(event(5, "", answered())), [2, 3, 4, 5]);
    assert_eq!(next(event(6, "a", text("9", "x"))), [6]);
    assert_eq!(next(event(7, "", text_start("2"))), [0u64; 0]);
    assert_eq!(next(gap(8, 11)), [7, 11], "the end of the turn may be among what was missed");
}

/// Returns a stream that the test feeds, and that is pending while it is empty.
fn futures_channel() -> (Rc<RefCell<Vec<AgentEvent>>>, impl Stream<Item = AgentEvent>) {
    let queue = Rc::new(RefCell::new(Vec::new()));
    let fed = queue.clone();
    let pop = move |_: &mut Context<'_>| match fed.borrow_mut() {
        queue if queue.is_empty() => Poll::Pending,
        mut queue => Poll::Ready(Some(queue.remove(0))),
    };
    (queue, stream::poll_fn(pop))
}

#[test]
fn a_view_does_not_poll_a_stream_that_has_ended() {
    fn once(events: Vec<AgentEvent>) -> impl Stream<Item = AgentEvent> {
        let mut events = events.into_iter();
        let mut over = false;
        stream::poll_fn(move |_| {
            assert!(!over, "polled after its end");
            let next = events.next();
            over = next.is_none();
            Poll::Ready(next)
        })
    }
    let held = || events(said(&[&[("", ask())], &block("1", "Hello")]));
    assert_eq!(seqs(once(held()).gate_root_text()), [1, 2, 3, 4]);
    assert_eq!(block_on(once(held()).into_events(StreamOptions::default()).count()), 1);
    block_on(once(held()).for_each_lane(|lane| lane.for_each(async |_| ())));
}

#[test]
fn each_lane_has_the_events_of_one_instance() {
    let lanes = RefCell::new(Vec::new());
    block_on(iter(fleet()).for_each_lane(|lane| {
        let lanes = &lanes;
        async move {
            let key = lane.key().map_or("root", AgentKey::as_str).to_owned();
            let seqs: Vec<_> = lane.map(|event| event.seq).collect().await;
            lanes.borrow_mut().push((key, seqs));
        }
    }));
    let mut lanes = lanes.into_inner();
    lanes.sort();
    let lane = |key: &str, seqs: &[u64]| (key.to_owned(), seqs.to_vec());
    let expected = [
        lane("agent:a", &[2]),
        lane("agent:a.x", &[3]),
        lane("agent:a:2", &[5]),
        lane("agent:b", &[4]),
        lane("root", &[1, 6]),
    ];
    assert_eq!(lanes, expected);
}

#[test]
fn lanes_are_read_side_by_side_as_events_come() {
    let (sender, receiver) = futures_channel();
    let seen = RefCell::new(Vec::new());
    let mut all = Box::pin(receiver.for_each_lane(|mut lane| {
        let seen = &seen;
        async move {
            while let Some(event) = lane.next().await {
                seen.borrow_mut().push(event.seq);
            }
        }
    }));
    let mut context = Context::from_waker(Waker::noop());
    for (seq, path) in [(1, "a"), (2, "b"), (3, "a"), (4, "b"), (5, "b")] {
        sender.borrow_mut().push(event(seq, path, ask()));
        assert!(all.poll_unpin(&mut context).is_pending());
        assert_eq!(seen.borrow().last(), Some(&seq), "at once");
    }
}

/// Emits more events than a lane retains, all ready at once.
fn flood() -> impl Stream<Item = AgentEvent> {
    iter(1..=10_000).map(|seq| event(seq, if seq % 2 == 0 { "a" } else { "b" }, ask()))
}

#[test]
fn a_lane_that_is_read_misses_nothing() {
    let counts = RefCell::new(Vec::new());
    block_on(flood().for_each_lane(|lane| {
        lane.map(|event| event.seq).collect::<Vec<_>>().map(|seqs| counts.borrow_mut().push(seqs.len()))
    }));
    assert_eq!(counts.into_inner(), [5_000, 5_000]);
}

#[test]
fn a_lane_that_is_not_read_blocks_nobody_and_says_what_it_lost() {
    let late = RefCell::new(None);
    let dropped = RefCell::new(0);
    block_on(flood().for_each_lane(|mut lane| {
        let (late, dropped) = (&late, &dropped);
        async move {
            let event = lane.next().await.unwrap();
            if event.agent_label() == "a" {
                *late.borrow_mut() = Some(lane);
            } else {
                *dropped.borrow_mut() += 1;
            }
        }
    }));
    assert_eq!(dropped.into_inner(), 1, "a lane that was dropped does not come again");
    let left: Vec<_> = block_on(late.into_inner().unwrap().collect());
    let per_agent = [("agent:a".parse().unwrap(), 903)].into();
    assert_eq!(
        left[0].kind,
        EventKind::Gap { from_seq: 4, to_seq: 1808, missed: 903, per_agent, reason: None }
    );
    assert_eq!(left[0].seq, 1808);
    assert!(left[1..].iter().map(|event| event.seq).eq((1810..=10_000).step_by(2)));
}

#[test]
fn every_lane_is_told_of_a_gap() {
    let events = [event(1, "a", ask()), event(2, "b", ask()), gap(3, 7), event(8, "a", ask())];
    let lanes = RefCell::new(BTreeMap::new());
    block_on(iter(events).for_each_lane(|lane| {
        let key = lane.key().unwrap().clone();
        lane.map(|event| event.seq).collect::<Vec<_>>().map(|seqs| _ = lanes.borrow_mut().insert(key, seqs))
    }));
    let expected = BTreeMap::from([
        ("agent:a".parse().unwrap(), vec![1, 7, 8]),
        ("agent:b".parse().unwrap(), vec![2, 7]),
    ]);
    assert_eq!(lanes.into_inner(), expected);
}

#[test]
fn for_each_lane_ends_with_the_last_reader() {
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let mut receiver = Some(receiver);
    let mut all = task::spawn(iter(fleet()).root_only().for_each_lane(move |_| {
        let receiver = receiver.take().unwrap();
        async move { receiver.await.unwrap() }
    }));
    assert_pending!(all.poll());
    sender.send(()).unwrap();
    assert!(all.is_woken());
    assert_ready!(all.poll());
    block_on(iter([]).for_each_lane(|_| async { unreachable!() }));
}

#[test]
fn events_are_collected_by_instance() {
    let all = block_on(iter(fleet()).collect_by_agent());
    let seqs: Vec<(Option<&str>, Vec<u64>)> = all
        .iter()
        .map(|(key, events)| {
            (key.as_ref().map(AgentKey::as_str), events.iter().map(|event| event.seq).collect())
        })
        .collect();
    let expected = [
        (None, vec![1, 6]),
        (Some("agent:a"), vec![2]),
        (Some("agent:a.x"), vec![3]),
        (Some("agent:a:2"), vec![5]),
        (Some("agent:b"), vec![4]),
    ];
    assert_eq!(seqs, expected);
}

fn failed(outcome: Outcome, why: &str) -> EventKind {
    let error = Some(Failure::new("code", why));
    EventKind::AgentEnd { outcome, error, usage: Box::default(), duration_ms: 0 }
}

#[test]
fn the_final_reply_or_why_there_is_none() {
    let check = |agent: &str, list: &[(&'static str, EventKind)], expected: Result<&str, ReplyError>| {
        let found = block_on(iter(events(list.to_vec())).final_reply_of(agent));
        assert_eq!(found.map(|message| message.text()), expected.map(str::to_owned), "{agent}");
    };
    let paris = [("a", start("go")), ("a", result("Paris")), ("a", end(Outcome::Success))];
    check("a", &paris, Ok("Paris"));
    check("agent:a", &paris, Ok("Paris"));
    check("b", &paris, Err(ReplyError::NeverSpawned("b".into())));
    check("main", &paris, Err(ReplyError::NeverSpawned("main".into())));
    check("a", &paris[..2], Err(ReplyError::Unfinished));
    check("a", &paris[1..2], Err(ReplyError::Unfinished));
    check("main", &[("", result("Hi")), ("", end(Outcome::Success))], Ok("Hi"));
    let ended = |outcome: Outcome| [("a", result("partial")), ("a", failed(outcome, "boom"))];
    check("a", &ended(Outcome::MaxIterations), Ok("partial"));
    check("a", &ended(Outcome::Suspended), Ok("partial"));
    check("a", &ended(Outcome::Cancelled), Err(ReplyError::Cancelled));
    check("a", &ended(Outcome::Error), Err(ReplyError::Failed("code: boom".into())));
    check("a", &ended(Outcome::Timeout), Err(ReplyError::Failed("code: boom".into())));
    check(
        "a",
        &[("a", end(Outcome::Timeout))],
        Err(ReplyError::Failed("it ended with timeout and no reply".into())),
    );
    check(
        "a",
        &[("a", end(Outcome::Success))],
        Err(ReplyError::Failed("it ended with success and no reply".into())),
    );
    // The twin that ends first, with its own reply; later events stay unread.
    let twins = [("b/x", result("fast")), ("a/x", result("slow")), ("b/x", end(Outcome::Success))];
    check("x", &twins, Ok("fast"));
    check("x", &[&twins[..], &[("a/x", end(Outcome::Error))]].concat(), Ok("fast"));
}

#[test]
fn the_final_reply_is_there_as_soon_as_its_agent_ends() {
    let (sender, receiver) = futures_channel();
    let mut reply = task::spawn(Box::pin(receiver.final_reply_of("a")));
    assert_pending!(reply.poll());
    sender.borrow_mut().extend(events([("a", result("done")), ("a", end(Outcome::Success))]));
    assert_ready_eq!(reply.poll().map(|reply| reply.map(|message| message.text())), Ok("done".into()));
}

#[test]
fn why_there_is_no_reply_is_said() {
    let check = |error: ReplyError, expected: &str| assert_eq!(error.to_string(), expected);
    check(ReplyError::NeverSpawned("a".into()), r#"no agent "a" was spawned"#);
    check(ReplyError::Unfinished, "the stream ended before the agent did");
    check(ReplyError::Failed("code: boom".into()), "the agent failed: code: boom");
    check(ReplyError::Cancelled, "the agent was cancelled");
}

#[test]
fn calls_that_are_taken_back_delegate_nothing() {
    let retry = EventKind::model_retry(1, 0, Failure::new("transport", "cut"));
    let taken_back = crate::Discarded::new(vec!["1".parse().unwrap()], vec!["c".into()]);
    let turn = said(&[
        &[("", ask())],
        &block("1", "Let me"),
        &[("", call("c")), ("", called("c")), ("", retry.with_taken_back(taken_back))],
        &block("2", "There."),
        &[("", answered())],
    ]);
    let shown = gated(turn);
    assert!(shown.iter().any(|line| line.contains(r#"TEXT_BLOCK_DELTA "There.""#)), "{shown:#?}");
}
