//! What a child's context shares with its parent's, and what it has of its own.

use std::sync::atomic::{AtomicU64, Ordering};

use mainstem_event::{AgentEvent, EventKind, LogOptions, Origin, Rollup, SessionLog, SystemClock};
use mainstem_message::{Role, Usage};
use serde_json::json;
use tokio_test::{assert_pending, assert_ready, task::spawn};

use super::*;

/// `a-1`, `b-2` …: one count for all prefixes.
#[derive(Default)]
struct Counted(AtomicU64);

impl Ids for Counted {
    fn next(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

fn log(buffer: usize) -> Arc<SessionLog> {
    let mut options = LogOptions::default();
    options.buffer = buffer;
    SessionLog::with("s".parse().unwrap(), Arc::new(SystemClock), options)
}

fn builder(log: &Arc<SessionLog>) -> RunContextBuilder {
    let origin = Origin {
        reply_id: Some("r".parse().unwrap()),
        ..Origin::session("s".parse().unwrap(), Some("run".parse().unwrap()))
    };
    RunContext::root("main", EventSink::root(log.clone(), origin)).with_ids(Arc::new(Counted::default()))
}

fn source() -> EventSource {
    EventSource {
        agent_key: "agent:kid:1".parse().unwrap(),
        agent_id: "kid".into(),
        agent_name: None,
        label: None,
        title: None,
        session_id: "sub-1".parse().unwrap(),
        parent_session_id: "s".parse().unwrap(),
        depth: 1,
        path: "s/kid".into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: Some("call-1".into()),
        stream_id: 1,
    }
}

fn child(cx: &RunContext) -> RunContext {
    cx.child(source(), "r-kid".parse().unwrap())
}

fn recorded(log: &Arc<SessionLog>) -> Vec<AgentEvent> {
    let mut cursor = log.subscribe_from(1);
    std::iter::from_fn(|| cursor.try_next()).collect()
}

fn hint(text: &str) -> EventKind {
    EventKind::HintBlock { block_id: text.parse().unwrap(), hint_source: "test".into(), hint: text.into() }
}

fn said(cx: &RunContext) -> Vec<String> {
    cx.messages().iter().map(|message| message.text()).collect()
}

#[test]
fn a_root_says_where_it_is() {
    let attributes = Map::from_iter([("tenant".to_owned(), json!("t"))]);
    let cx = builder(&log(64)).with_user(Some("ann".into())).with_attributes(attributes).build();
    assert_eq!((&**cx.agent(), cx.depth(), cx.path()), ("main", 0, "s"));
    assert_eq!((cx.session_id().as_str(), cx.run_id().unwrap().as_str()), ("s", "run"));
    assert_eq!((cx.source(), cx.agent_key(), cx.call_id()), (None, None, None));
    assert_eq!((cx.user(), &cx.attributes()["tenant"]), (Some("ann"), &json!("t")));
    assert!(cx.meter_above().is_none());
}

#[test]
fn a_child_says_where_it_is() {
    let root = builder(&log(64)).with_user(Some("ann".into())).build();
    let cx = child(&root.for_call("call-1".into()));
    assert_eq!((&**cx.agent(), cx.depth(), cx.path()), ("kid", 1, "s/kid"));
    assert_eq!((cx.session_id().as_str(), cx.run_id().unwrap().as_str()), ("sub-1", "run"));
    assert_eq!(cx.source(), Some(&source()));
    assert_eq!(cx.agent_key().unwrap().as_str(), "agent:kid:1");
    assert_eq!(cx.call_id(), None, "the call is the parent's");
    assert_eq!(cx.user(), Some("ann"));
}

#[test]
fn ids_are_counted_for_the_whole_run() {
    let root = builder(&log(64)).build();
    let kid = child(&root);
    assert_eq!([root.new_id("a-"), kid.new_id("b-"), root.new_id("c-")], ["a-1", "b-2", "c-3"]);
}

#[test]
fn a_cancel_reaches_those_below_and_nobody_else() {
    let root = builder(&log(64)).build();
    let (one, other) = (child(&root), child(&root));
    let below = child(&one);
    one.cancellation().token().cancel();
    assert_eq!([&root, &one, &other, &below].map(RunContext::is_cancelled), [false, true, false, true]);
    assert_ready!(spawn(below.cancelled()).poll());
    let mut waits = spawn(other.cancelled());
    assert_pending!(waits.poll());
    root.cancellation().token().cancel();
    assert!(waits.is_woken());
    assert!(other.for_call("x".into()).is_cancelled());
}

#[test]
fn the_token_of_a_root_can_be_given() {
    let token = CancellationToken::new();
    let cx = builder(&log(64)).with_cancel(token.clone()).build();
    token.cancel();
    assert!(cx.is_cancelled());
}

#[test]
fn each_invocation_has_its_own_conversation_and_stamps_its_own_events() {
    let log = log(64);
    let root = builder(&log).build();
    let kid = child(&root);
    let seqs = [root.emit(hint("one")), kid.emit(hint("two")), root.for_call("x".into()).emit(hint("three"))];
    assert_eq!(seqs, [1, 2, 3]);
    assert_eq!((said(&root), said(&kid)), (vec!["one".into(), "three".into()], vec!["two".into()]));
    let events = recorded(&log);
    let replies: Vec<_> = events.iter().map(|event| event.reply_id().unwrap().as_str()).collect();
    assert_eq!(replies, ["r", "r-kid", "r"]);
    assert_eq!(events[1].source(), Some(&source()));
}

#[test]
fn a_reply_without_an_id_gets_one() {
    let log = log(64);
    let sink = EventSink::root(log, Origin::session("s".parse().unwrap(), None));
    let cx = RunContext::root("main", sink).with_ids(Arc::new(Counted::default())).build();
    cx.emit(EventKind::model_call_start("m", 1));
    cx.emit(EventKind::TextBlockStart { block_id: "b".parse().unwrap() });
    cx.emit(EventKind::model_call_start("m", 2));
    let message = &cx.messages()[0];
    assert_eq!((message.role, message.id.as_ref().unwrap().as_str()), (Role::Assistant, "reply-1.0"));
}

#[test]
fn a_childs_cost_is_its_own_until_it_is_added_above() {
    let root = builder(&log(64)).build();
    let kid = child(&root);
    root.meter().add_own(Usage::new(1, 0), Some(3));
    kid.for_call("x".into()).meter().add_own(Usage::new(0, 2), Some(4));
    assert_eq!(root.meter().read().inclusive, Usage::new(1, 0));
    kid.meter().end(kid.meter_above(), |_| {});
    let (own, inclusive) = (Usage::new(1, 0), Usage::new(1, 2));
    let sum = Rollup { own, inclusive, own_cost: Some(3), inclusive_cost: Some(7) };
    assert_eq!(root.meter().read(), sum);
}

#[test]
fn a_value_given_to_one_is_found_below_it_and_nowhere_else() {
    let root = builder(&log(64)).with_extension(Arc::new(1_u8)).build();
    let own = root.clone().with_extension(Arc::new(2_u8)).with_extension(Arc::new("x"));
    for cx in [&own, &child(&own), &own.for_call("x".into())] {
        assert_eq!((cx.get::<u8>().as_deref(), cx.get::<&str>().as_deref()), (Some(&2), Some(&"x")));
    }
    assert_eq!((root.get::<u8>().as_deref(), root.get::<&str>()), (Some(&1), None));
}

#[test]
fn a_price_that_is_not_known_is_not_nothing() {
    let root = builder(&log(64)).build();
    assert_eq!(root.cost("gpt-4o", &Usage::new(1_000, 500)), Some(7_500));
    assert_eq!(root.cost("unknown-model", &Usage::new(1_000, 500)), None);
    assert_eq!(child(&root).cost("gpt-4o", &Usage::new(1_000, 500)), Some(7_500));
}

#[test]
fn values_are_found_by_their_type_in_all_agents() {
    let root = builder(&log(64))
        .with_extension(Arc::new(1_u8))
        .with_extension(Arc::new("x"))
        .with_extension(Arc::new(2_u8));
    let root = root.build();
    for cx in [&root, &child(&root), &root.for_call("x".into())] {
        assert_eq!(cx.get::<u8>().as_deref(), Some(&2), "the later one of a type wins");
        assert_eq!(cx.get::<&str>().as_deref(), Some(&"x"));
        assert_eq!(cx.get::<u16>(), None);
    }
}

fn tool(cx: &RunContext) -> ToolContext {
    cx.tool_context(&"call-7".into())
}

#[test]
fn a_tool_sees_the_invocation_and_its_call() {
    let attributes = Map::from_iter([("tenant".to_owned(), json!("t"))]);
    let root = builder(&log(64))
        .with_user(Some("ann".into()))
        .with_attributes(attributes)
        .with_extension(Arc::new(1_u8));
    let kid = child(&root.build());
    let cx = tool(&kid);
    assert_eq!((cx.agent(), cx.call_id().as_str(), cx.session_id().as_str()), ("kid", "call-7", "sub-1"));
    assert_eq!((cx.source(), cx.run_id().unwrap().as_str()), (Some(&source()), "run"));
    assert_eq!((cx.user(), &cx.attributes()["tenant"]), (Some("ann"), &json!("t")));
    assert_eq!(cx.get::<u8>().as_deref(), Some(&1));
    kid.cancellation().cancel(CancelReason::RunEnded);
    assert!(cx.is_cancelled());
}

#[test]
fn an_engines_tool_finds_its_invocation() {
    let root = builder(&log(64)).build();
    let cx = tool(&root);
    let found = RunContext::of(&cx).unwrap();
    assert!(Arc::ptr_eq(&found.invocation, &root.invocation));
    assert_eq!(found.call_id().unwrap().as_str(), "call-7");
    let cx = tool(&root.for_call("call-8".into()));
    assert_eq!(cx.call_id().as_str(), "call-8", "the call that is worked on is the tool's");
}

#[test]
fn progress_is_a_part_of_the_running_calls_result() {
    let log = log(64);
    let cx = tool(&builder(&log).build());
    drop(cx.progress("half "));
    assert_ready!(spawn(cx.progress("done")).poll());
    let said: Vec<_> = recorded(&log).iter().map(|event| event.kind.to_string()).collect();
    let line = |text: &str| format!("TOOL_RESULT_TEXT_DELTA {text:?} (call-7)");
    assert_eq!(said, [line("half "), line("done")], "it is sent before the first wait");
}

#[test]
fn progress_waits_for_the_caller() {
    let log = log(1);
    let cx = tool(&builder(&log).build());
    let mut caller = log.attach();
    let mut first = spawn(cx.progress("one"));
    assert_pending!(first.poll());
    assert!(caller.try_next().is_some());
    assert!(first.is_woken());
    assert_ready!(first.poll());
}
