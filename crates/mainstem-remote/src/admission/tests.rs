//! What a remote may say, and in which order.

use mainstem_event::{CallPurpose, ConfirmResult, Discarded, Rollup, TaskStatus};
use mainstem_message::{BlockId, Message, Role, StopReason};
use serde_json::json;

use super::*;

/// The session of the agent that was asked.
const ASKED: &str = "sub-asked";

fn session(id: &str) -> SessionId {
    id.parse().unwrap()
}

/// The source of an agent of this session, below the agent of another.
fn below(parent: &str, id: &str, call: Option<&str>) -> Arc<EventSource> {
    Arc::new(EventSource {
        agent_key: format!("agent:a:{id}").parse().unwrap(),
        agent_id: "a".into(),
        agent_name: None,
        label: None,
        title: None,
        session_id: session(id),
        parent_session_id: session(parent),
        depth: 1,
        path: "x/a".into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: call.map(ToolCallId::from),
        stream_id: 1,
    })
}

fn block() -> BlockId {
    "b".parse().unwrap()
}

fn start() -> EventKind {
    EventKind::agent_start("a", Role::Assistant, vec![Arc::new(Message::user("go"))])
}

fn end() -> EventKind {
    EventKind::agent_end(Outcome::Success, Rollup::default(), 0)
}

fn text() -> EventKind {
    EventKind::TextBlockStart { block_id: block() }
}

fn delta(text: &str) -> EventKind {
    EventKind::TextBlockDelta { block_id: block(), delta: text.to_owned() }
}

fn text_end() -> EventKind {
    EventKind::TextBlockEnd { block_id: block(), opaque: Default::default(), discarded: false }
}

fn model() -> EventKind {
    EventKind::model_call_start("m", 1)
}

fn model_end() -> EventKind {
    EventKind::model_call_end(StopReason::Stop, 0)
}

fn call(id: &str) -> [EventKind; 2] {
    let (tool_call_id, tool_call_name): (ToolCallId, Arc<str>) = (id.into(), "t".into());
    let opaque = Default::default();
    [
        EventKind::ToolCallStart {
            tool_call_id: tool_call_id.clone(),
            tool_call_name: tool_call_name.clone(),
        },
        EventKind::ToolCallEnd { tool_call_id, tool_call_name, opaque, discarded: false },
    ]
}

fn result(id: &str, state: ToolState) -> [EventKind; 2] {
    [
        EventKind::tool_result_start(ToolCallId::from(id), "t", json!({})),
        EventKind::tool_result_end(ToolCallId::from(id), "t", state, 0),
    ]
}

/// One event of an agent.
type Step = (Option<Arc<EventSource>>, EventKind);

/// Events of the agent that was asked.
fn own<const N: usize>(kinds: [EventKind; N]) -> Vec<Step> {
    kinds.map(|kind| (None, kind)).into()
}

/// Events of an agent below it.
fn of<const N: usize>(source: &Arc<EventSource>, kinds: [EventKind; N]) -> Vec<Step> {
    kinds.map(|kind| (Some(source.clone()), kind)).into()
}

/// Admits all events but the last; returns what becomes of that one.
#[track_caller]
fn last(steps: impl IntoIterator<Item = Vec<Step>>) -> Result<Admitted, String> {
    let mut admission = Admission::new(session(ASKED), 2);
    let mut steps = steps.into_iter().flatten().peekable();
    while let Some((source, kind)) = steps.next() {
        let admitted = admission.admit(RemoteEvent::new(kind).with_source(source));
        let admitted = admitted.map_err(|error| error.to_string());
        if steps.peek().is_none() {
            return admitted;
        }
        admitted.expect("an event before the last");
    }
    panic!("no event");
}

#[track_caller]
fn check(steps: impl IntoIterator<Item = Vec<Step>>, expected: &str) {
    let error = last(steps).expect_err("the last event");
    assert!(error.ends_with(expected), "{error:?} does not end with {expected:?}");
}

/// The agent that was asked has called a tool.
fn in_call() -> Vec<Step> {
    [own([start(), model()]), own(call("c")), own([model_end()])].concat()
}

#[test]
fn an_order_that_breaks_a_law_is_refused() {
    check([own([text()])], "TEXT_BLOCK_START: the invocation has not begun, or is over");
    check([own([start(), start()])], "AGENT_START: the agent begins twice");
    check([own([start(), end(), end()])], "AGENT_END: the invocation has not begun, or is over");
    check([own([start(), end(), text()])], "TEXT_BLOCK_START: the invocation has not begun, or is over");
    check([own([start(), model(), delta("x")])], "text block b is not open");
    check([own([start(), model(), text(), text()])], "block b begins within block b");
    check([own([start(), model(), text(), text_end(), text()])], "block b begins twice");
    check([own([start(), model(), text(), model()])], "a model call begins or ends within a block or a call");
    check([own([start(), model(), model()])], "model calls overlap, or one ends that has not begun");
    check([own([start(), model_end()])], "model calls overlap, or one ends that has not begun");
    check([own([start()]), own(call("c"))[..1].to_vec()], "call c begins outside a model call");
    check([own([start(), text()])], "block b begins outside a model call");
    let quiet = || model().with_purpose(CallPurpose::Compaction);
    check([own([start(), quiet(), text()])], "block b begins in a model call for compaction");
    let calls = own(call("c"))[..1].to_vec();
    check([own([start(), quiet()]), calls], "call c begins in a model call for compaction");
    let early = own(result("c", ToolState::Success))[..1].to_vec();
    check([own([start(), model()]), own(call("c")), early], "a result begins within a model call");
    check([in_call(), own([model()])], "a model call begins before call c has a result");
    check(
        [own([start()]), own(result("c", ToolState::Success))[..1].to_vec()],
        "call c can't go on like this",
    );
    check(
        [in_call(), own(result("c", ToolState::Success)), own(result("c", ToolState::Success))[..1].to_vec()],
        "call c can't go on like this",
    );
    check([own([start(), EventKind::gap(1, 3, 3, Default::default())])], "GAP: 3 events are missing");
    let denied =
        |id: &str| EventKind::AllToolsDenied { denied_tool_calls: vec![ToolCall::new(id, "t", "{}")] };
    check(
        [in_call(), own(result("c", ToolState::Success)), own([denied("c")])],
        "not every call was denied, or another is named",
    );
    check(
        [in_call(), own(result("c", ToolState::Denied)), own([denied("d")])],
        "not every call was denied, or another is named",
    );
    check(
        [in_call(), own(result("c", ToolState::Denied)), own([denied("c"), denied("c")])],
        "not every call was denied, or another is named",
    );
}

#[test]
fn agents_below_are_where_they_say() {
    let kid = || below(ASKED, "sub-kid", None);
    let called = |id| below(ASKED, "sub-kid", Some(id));
    check([of(&kid(), [start()])], "agent:a:sub-kid begins below an agent that is not running");
    check(
        [own([start(), end()]), of(&kid(), [start()])],
        "agent:a:sub-kid begins below an agent that is not running",
    );
    check(
        [own([start()]), of(&below("sub-none", "sub-kid", None), [start()])],
        "agent:a:sub-kid begins below an agent that is not running",
    );
    check(
        [own([start()]), of(&called("c"), [start()])],
        "agent:a:sub-kid was caused by call c, which is not open",
    );
    check([own([start()]), of(&kid(), [start(), start()])], "agent:a:sub-kid begins a turn within another");
    check(
        [own([start()]), of(&below(ASKED, ASKED, None), [start()])],
        "agent:a:sub-asked begins a turn within another",
    );
    check([own([start()]), of(&kid(), [start(), end(), text()])], "the invocation has not begun, or is over");
    check(
        [in_call(), of(&called("c"), [start()]), own(result("c", ToolState::Success))],
        "the result of call c comes before the end of its child",
    );
    let deeper = |parent: &str, id: &str| below(parent, id, None);
    check(
        [
            own([start()]),
            of(&kid(), [start()]),
            of(&deeper("sub-kid", "sub-2"), [start()]),
            of(&deeper("sub-2", "sub-3"), [start()]),
        ],
        "an agent at depth 3 below the remote, where 2 is the most",
    );
    let named = |id: &str| Arc::new(EventSource { agent_id: id.into(), ..(*kid()).clone() });
    for id in ["", "a/b", "a\nb", &"a".repeat(300)] {
        check([own([start()]), of(&named(id), [start()])], "an agent's id or name is not valid");
    }
}

#[test]
fn an_agent_below_is_one_agent_with_an_input_and_a_cause() {
    let kid = || below(ASKED, "sub-kid", None);
    let called = |id| below(ASKED, "sub-kid", Some(id));
    for other in [
        EventSource { turn: 2, agent_id: "b".into(), ..(*kid()).clone() },
        EventSource { turn: 2, agent_name: Some("b".into()), ..(*kid()).clone() },
        EventSource { turn: 2, label: Some("b".into()), ..(*kid()).clone() },
    ] {
        check(
            [own([start()]), of(&kid(), [start(), end()]), of(&Arc::new(other), [start()])],
            "agent:a:sub-kid is another agent than in its last turn",
        );
    }
    let input = |message| EventKind::agent_start("a", Role::Assistant, vec![Arc::new(message)]);
    check([own([start()]), of(&kid(), [input(Message::assistant("x"))])], "text and data of users");
    let over = [in_call(), own(result("c", ToolState::Success)), of(&called("c"), [start()])];
    check(over, "was caused by call c, which is not open");
    check([in_call(), of(&called("c"), [start()]), own([end()])], "it ends before a child that it waits for");
    // A turn is counted here, whatever the remote says.
    let late = Arc::new(EventSource { turn: 7, ..(*kid()).clone() });
    match last([own([start()]), of(&late, [start()])]) {
        Ok(Admitted::Start { source, .. }) => assert_eq!(source.turn, 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_child_that_starts_out_of_order_loses_its_call() {
    let calls = || [own([start(), model()]), own(call("c")), own(call("d")), own([model_end()])].concat();
    let (first, second) = (below(ASKED, "sub-1", Some("c")), below(ASKED, "sub-2", Some("d")));
    let cause = |steps: [Vec<Step>; 3]| match last(steps) {
        Ok(Admitted::Start { source, .. }) => source.parent_tool_call_id.map(|id| id.to_string()),
        other => panic!("{other:?}"),
    };
    assert_eq!(cause([calls(), of(&first, [start()]), of(&second, [start()])]).as_deref(), Some("d"));
    assert_eq!(cause([calls(), of(&second, [start()]), of(&first, [start()])]), None);
    // So do its siblings.
    let again = below(ASKED, "sub-3", Some("c"));
    let steps = [calls(), [of(&second, [start()]), of(&first, [start()])].concat(), of(&again, [start()])];
    assert_eq!(cause(steps), None);
}

#[test]
fn each_event_has_its_place() {
    let kid = || below(ASKED, "sub-kid", Some("c"));
    let id = || "confirm".parse::<ConfirmId>().unwrap();
    let calls = || vec![ToolCall::new("c", "t", "{}")];
    assert_eq!(last([own([start()])]), Ok(Admitted::Nothing));
    assert_eq!(last([own([start(), model(), text()])]), Ok(Admitted::Emit { invocation: 0, kind: text() }));
    assert!(matches!(last([in_call(), of(&kid(), [start()])]), Ok(Admitted::Start { parent: 0, .. })));
    assert_eq!(
        last([in_call(), of(&kid(), [start(), model(), text()])]),
        Ok(Admitted::Emit { invocation: 1, kind: text() })
    );
    assert!(matches!(
        last([in_call(), of(&kid(), [start(), end()])]),
        Ok(Admitted::End { invocation: 1, outcome: Outcome::Success, error: None })
    ));
    let running = [in_call(), of(&kid(), [start()]), own(result("c", ToolState::Running))];
    assert!(matches!(last(running), Ok(Admitted::Emit { .. })));
    let again = Arc::new(EventSource { turn: 2, ..(*kid()).clone() });
    let steps = [in_call(), of(&kid(), [start(), end()]), of(&again, [start(), model(), text()])];
    assert_eq!(last(steps), Ok(Admitted::Emit { invocation: 2, kind: text() }));
    assert_eq!(
        last([in_call(), own([EventKind::require_user_confirm(id(), calls())])]),
        Ok(Admitted::Ask { invocation: 0, id: id(), calls: calls() })
    );
    let answered = EventKind::UserConfirmResult {
        confirm_id: id(),
        confirm_results: vec![ConfirmResult::confirmed(calls().remove(0))],
    };
    assert!(
        matches!(last([own([start(), answered])]), Ok(Admitted::Answered { results, .. }) if results.len() == 1)
    );
    assert_eq!(
        last([in_call(), own([EventKind::require_external_execution(calls())])]),
        Ok(Admitted::Execute { invocation: 0, calls: calls() })
    );
    let task = EventKind::task_updated("task-1".parse().unwrap(), TaskStatus::Pending, TaskStatus::Running);
    assert_eq!(last([own([start(), task])]), Ok(Admitted::Nothing));
    let result = EventKind::AgentResult { result: Arc::new(Message::assistant("x")) };
    assert_eq!(last([own([start(), result])]), Ok(Admitted::Nothing));
    let unknown = EventKind::Custom { name: "n".to_owned(), value: json!(1) };
    assert!(matches!(last([own([start(), unknown])]), Ok(Admitted::Emit { .. })));
}

#[test]
fn a_hint_comes_between_turns_of_the_loop() {
    let hint =
        || EventKind::HintBlock { block_id: block(), hint_source: "s".to_owned(), hint: "h".to_owned() };
    let refused = "a hint comes within a model call, or before the results of calls";
    check([own([start(), model(), hint()])], refused);
    check([in_call(), own([hint()])], refused);
    let steps = [in_call(), own(result("c", ToolState::Success)), own([hint()])];
    assert!(matches!(last(steps), Ok(Admitted::Emit { .. })));
}

#[test]
fn an_agent_above_may_send_to_one_whose_parent_has_ended() {
    let kid = below(ASKED, "sub-kid", None);
    let deep = |turn| {
        Arc::new(EventSource { turn, ..(*below("sub-kid", "sub-deep", (turn == 2).then_some("c"))).clone() })
    };
    let before =
        [own([start()]), of(&kid, [start()]), of(&deep(1), [start(), end()]), of(&kid, [end()])].concat();
    let call = [own([model()]), own(call("c")), own([model_end()])].concat();
    let sent = [before.clone(), call, of(&deep(2), [start()])];
    assert!(matches!(last(sent), Ok(Admitted::Start { parent: 1, caller: 0, .. })));
    let orphan = Arc::new(EventSource { parent_tool_call_id: None, ..(*deep(2)).clone() });
    check([before, of(&orphan, [start()])], "begins below an agent that is not running");
}

#[test]
fn what_began_in_another_turn_is_not_shown() {
    assert_eq!(last([own([start()]), of(&below(ASKED, "sub-old", None), [text()])]), Ok(Admitted::Nothing));
}

#[test]
fn requests_are_about_open_calls_and_few() {
    let asks = |id: &str, many| {
        EventKind::require_external_execution(
            (0..many).map(|_| ToolCall::new(id, "t", "{}")).collect::<Vec<_>>(),
        )
    };
    check([in_call(), own([asks("d", 1)])], "call d is not open");
    check([in_call(), own([asks("c", 1_025)])], "more than 1024 requests in one turn");
}

#[test]
fn a_flood_is_ended() {
    let mut admission = Admission::new(session(ASKED), 2);
    own([start(), model(), text()])
        .into_iter()
        .for_each(|(_, kind)| _ = admission.admit(RemoteEvent::new(kind)).unwrap());
    let piece = "x".repeat(1 << 20);
    let refused = (0..65).find_map(|_| admission.admit(RemoteEvent::new(delta(&piece))).err());
    assert!(refused.unwrap().to_string().ends_with("more than 67108864 bytes in one turn"));

    let mut admission = Admission::new(session(ASKED), 2);
    admission.admit(RemoteEvent::new(start())).unwrap();
    let refused = (0..65).find_map(|_| {
        let end = EventKind::model_call_end(StopReason::Other(piece.clone()), 0);
        let pair = [model(), end].map(|kind| admission.admit(RemoteEvent::new(kind)));
        pair.into_iter().find_map(Result::err)
    });
    assert!(refused.unwrap().to_string().ends_with("more than 67108864 bytes in one turn"));

    let mut admission = Admission::new(session(ASKED), 2);
    admission.admit(RemoteEvent::new(start())).unwrap();
    let refused = (0..1_030).find_map(|number| {
        let source = below(ASKED, &format!("sub-{number}"), None);
        admission.admit(RemoteEvent::new(start()).with_source(Some(source))).err()
    });
    assert!(refused.unwrap().to_string().ends_with("more than 1024 invocations in one turn"));
}

#[test]
fn a_remote_takes_back_exactly_what_it_has_said() {
    let retry = |said: Discarded| {
        EventKind::model_retry(1, 0, Failure::new("transport", "cut")).with_taken_back(said)
    };
    let said = || Discarded::new(vec![block()], vec!["c".into()]);
    let [call_start, call_end] = call("c");
    let attempt = || {
        let (begins, ends) = (call_start.clone(), call_end.clone().with_discarded(true));
        own([start(), model(), text(), text_end(), begins, ends])
    };
    let more = "something else is taken back than it has said";
    check([attempt(), own([retry(Discarded::default())])], more);
    check([attempt(), own([retry(Discarded::new(vec![block()], vec![]))])], more);
    check([attempt(), own([model_end(), retry(said())])], more);
    check([attempt(), own([text()])], "what ends as discarded is not taken back");
    check([own([start(), model(), text(), retry(said())])], "is repeated within a block or a call");
    // What was taken back has no result, and nothing waits for it.
    let [begins, _] = result("c", ToolState::Success);
    check([attempt(), own([retry(said()), model_end(), begins])], "call c can't go on like this");
    let next = own([retry(said()), model_end(), model()]);
    assert!(matches!(last([attempt(), next]), Ok(Admitted::Emit { .. })));
}
