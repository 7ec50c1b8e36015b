//! Events in, messages out.

use mainstem_message::{
    ContentBlock, DataSource, Message, Opaque, Role, StopReason, ToolCall, ToolResult, ToolState,
};
use proptest::{prelude::*, sample::Index};
use serde_json::json;

use super::*;
use crate::{EventKind, EventSink, Origin, Outcome, SessionLog, fixture::*};

fn transcript(kinds: impl IntoIterator<Item = EventKind>) -> Transcript {
    let mut transcript = Transcript::new("r".parse().unwrap());
    kinds.into_iter().for_each(|kind| transcript.apply(&kind));
    transcript
}

/// Returns each message as its role, its id, and its blocks.
fn show(messages: &[Arc<Message>]) -> Vec<String> {
    let block = |block: &ContentBlock| match block {
        ContentBlock::Text { text, opaque } => format!("{text}{}", mark(opaque)),
        ContentBlock::Thinking { thinking, opaque } => format!("({thinking}){}", mark(opaque)),
        ContentBlock::Data { media_type, source: DataSource::Base64(data), .. } => {
            format!("{media_type}:{data}")
        }
        ContentBlock::ToolCall(call) => format!("{}({}){}", call.id, call.arguments, mark(&call.opaque)),
        ContentBlock::ToolResult(result) => {
            format!("{}={} {}", result.tool_call_id, result.text(), result.state.as_str())
        }
        other => format!("{other:?}"),
    };
    let show = |message: &Arc<Message>| {
        let role = serde_json::to_value(message.role).unwrap();
        let id = message.id.as_ref().map_or(String::new(), |id| format!(" {id}"));
        let content: Vec<_> = message.content.iter().map(block).collect();
        format!("{}{id}: {}", role.as_str().unwrap(), content.join(" | "))
    };
    messages.iter().map(show).collect()
}

fn mark(opaque: &Opaque) -> String {
    if opaque.is_empty() { String::new() } else { serde_json::to_string(opaque).unwrap() }
}

fn opaque(name: &str) -> Opaque {
    Opaque::from_iter([(name.to_owned(), json!(1))])
}

fn check(kinds: impl IntoIterator<Item = EventKind>, expected: &[&str]) {
    assert_eq!(show(transcript(kinds).messages()), expected);
}

#[test]
fn what_is_said_is_a_message() {
    check([start("go"), ask(), text_start("b"), text("b", "He"), text("b", "llo")], &["user: go"]);
    check(
        [start("go"), ask(), text_start("b"), text("b", "He"), text("b", "llo"), text_end("b"), answered()],
        &["user: go", "assistant r.0: Hello"],
    );
    check([start("go"), ask(), answered(), end(Outcome::Success)], &["user: go"]);
}

#[test]
fn blocks_keep_their_order_and_what_the_vendor_wants_back() {
    let data = |id: &str| EventKind::DataBlockStart {
        block_id: id.parse().unwrap(),
        media_type: "image/png".into(),
    };
    let bytes =
        |delta: &str| EventKind::DataBlockDelta { block_id: "3".parse().unwrap(), delta: delta.into() };
    check(
        [
            ask(),
            thinking_start("1"),
            thinking("1", "hm"),
            thinking_end("1", opaque("signature")),
            text_start("2"),
            text("2", "See:"),
            EventKind::TextBlockEnd {
                block_id: "2".parse().unwrap(),
                opaque: opaque("text"),
                discarded: false,
            },
            data("3"),
            bytes("iVBO"),
            bytes("Rw=="),
            EventKind::DataBlockEnd {
                block_id: "3".parse().unwrap(),
                opaque: Opaque::new(),
                discarded: false,
            },
            thinking_start("4"),
            thinking_end("4", opaque("encrypted")),
            answered(),
        ],
        &[r#"assistant r.0: (hm){"signature":1} | See:{"text":1} | image/png:iVBORw== | (){"encrypted":1}"#],
    );
}

#[test]
fn results_come_in_any_order_and_are_kept_in_the_order_of_the_calls() {
    let turn = [
        start("go"),
        ask(),
        call("1"),
        call("2"),
        arguments("1", "{\"a\""),
        arguments("2", "{}"),
        arguments("1", ":1}"),
        EventKind::ToolCallEnd {
            tool_call_id: "1".into(),
            tool_call_name: "search".into(),
            opaque: opaque("t"),
            discarded: false,
        },
        called("2"),
        answered(),
    ];
    let results = [
        tool_start("1"),
        tool_start("2"),
        output("1", "on"),
        output("2", "two"),
        tool_end("2", ToolState::Error),
        output("1", "e"),
    ];
    let said = ["user: go", r#"assistant r.0: 1({"a":1}){"t":1} | 2({})"#];
    check(turn.iter().chain(&results).cloned(), &said);
    let last = [tool_end("1", ToolState::Success)];
    check(
        turn.into_iter().chain(results).chain(last),
        &[said[0], said[1], "tool r.1: 1=one success | 2=two error"],
    );
}

#[test]
fn a_result_keeps_its_parts_apart() {
    let signed = ContentBlock::Text { text: "signed".into(), opaque: opaque("s") };
    let url = DataSource::Url("https://example.com/a.png".into());
    let image = ContentBlock::Data { media_type: "image/png".into(), source: url, opaque: Opaque::new() };
    let transcript = transcript([
        ask(),
        call("1"),
        called("1"),
        answered(),
        tool_start("1"),
        output("1", "a"),
        output("1", "b"),
        output_data("1", image.clone()),
        output_data("1", signed.clone()),
        output("1", "c"),
        tool_end("1", ToolState::Success),
    ]);
    let [ContentBlock::ToolResult(result)] = &transcript.messages()[1].content[..] else { panic!() };
    assert_eq!(result.content, [ContentBlock::text("ab"), image, signed, ContentBlock::text("c")]);
    assert_eq!(result.name, "search");
}

#[test]
fn hints_are_messages_of_the_user() {
    let turn = |id: &str| [ask(), text_start(id), text(id, id), text_end(id), answered()];
    let said = [vec![start("go")], turn("1").to_vec(), vec![hint("by the way")], turn("2").to_vec()];
    check(said.concat(), &["user: go", "assistant r.0: 1", "user: by the way", "assistant r.1: 2"]);
}

#[test]
fn a_call_whose_work_goes_on_in_the_background_is_answered() {
    check(
        [
            ask(),
            call("1"),
            called("1"),
            answered(),
            tool_start("1"),
            output("1", "task-1"),
            tool_end("1", ToolState::Running),
        ],
        &["assistant r.0: 1()", "tool r.1: 1=task-1 running"],
    );
}

#[test]
fn the_last_answer_is_the_models() {
    let mut transcript = transcript([start("go"), ask(), text_start("1"), text("1", "x"), text_end("1")]);
    assert!(transcript.last_answer().is_none());
    transcript.apply(&answered());
    transcript.apply(&hint("h"));
    assert_eq!(transcript.last_answer().unwrap().text(), "x");
}

#[test]
fn a_transcript_says_what_is_open_and_what_has_started() {
    let mut transcript = transcript([ask(), text_start("1")]);
    assert_eq!(transcript.open_block(), Some((BlockKind::Text, &"1".parse().unwrap())));
    let steps = [text_end("1"), call("c"), call("d"), called("c"), called("d"), answered()];
    steps.iter().for_each(|kind| transcript.apply(kind));
    assert_eq!(transcript.open_block(), None);
    let mut check = |kind: EventKind, expected: bool| {
        transcript.apply(&kind);
        assert_eq!(transcript.has_started(&"c".into()), expected);
    };
    check(tool_start("d"), false);
    check(tool_start("c"), true);
    check(tool_end("c", ToolState::Success), true);
}

/// A fold must survive any file.
#[test]
fn what_makes_no_sense_changes_nothing() {
    let nonsense =
        [text("1", "x"), output("1", "x"), tool_end("1", ToolState::Success), called("1"), answered()];
    check(nonsense.clone(), &[]);
    let said =
        [ask(), text_start("1"), text("1", "a"), text("2", "x"), text_end("2"), text("1", "b"), call("c")];
    let rest = [arguments("d", "x"), text("1", "c"), text_end("1"), text("1", "x"), called("c"), answered()];
    let expected = ["assistant r.0: abc | c()"];
    check(said.iter().chain(&rest).cloned(), &expected);
    check(said.into_iter().chain(rest).chain(nonsense), &expected);
    // A complete result stays as it is, also while others are incomplete.
    let two = [
        ask(),
        call("1"),
        call("2"),
        called("1"),
        called("2"),
        answered(),
        tool_start("1"),
        output("1", "a"),
    ];
    let late = [tool_end("1", ToolState::Success), output("1", "x"), tool_end("1", ToolState::Error)];
    let expected = ["assistant r.0: 1() | 2()", "tool r.1: 1=a success | 2= success"];
    check(two.into_iter().chain(late).chain([tool_end("2", ToolState::Success)]), &expected);
    // A model call without its end still has its text.
    check([ask(), text_start("1"), text("1", "a"), ask()], &["assistant r.0: a"]);
}

#[test]
fn two_calls_of_one_id_get_a_result_each() {
    let twice = [
        ask(),
        call("1"),
        arguments("1", "a"),
        called("1"),
        call("1"),
        arguments("1", "b"),
        called("1"),
        answered(),
    ];
    let results = [
        tool_start("1"),
        output("1", "x"),
        tool_end("1", ToolState::Success),
        tool_start("1"),
        output("1", "y"),
    ];
    let last = [tool_end("1", ToolState::Error)];
    check(
        twice.clone().into_iter().chain(results).chain(last),
        &["assistant r.0: 1(a) | 1(b)", "tool r.1: 1=x success | 1=y error"],
    );
    let mut cut = transcript(twice);
    close(&mut cut);
    assert_eq!(cut.messages()[1].tool_results().count(), 2);
}

/// Applies closings until there are none; returns them.
fn close(transcript: &mut Transcript) -> Vec<EventKind> {
    let mut closings = Vec::new();
    while let Some(kind) = transcript.next_closing(StopReason::Cancelled) {
        transcript.apply(&kind);
        closings.push(kind);
        assert!(closings.len() < 1000, "closing never ends: {closings:?}");
    }
    closings
}

#[test]
fn a_cut_invocation_is_closed_from_the_inside() {
    let check = |kinds: Vec<EventKind>, closings: &[EventKind], expected: &[&str]| {
        let mut transcript = transcript(kinds);
        assert_eq!(close(&mut transcript), closings);
        assert_eq!(show(transcript.messages()), expected);
    };
    let cut = || {
        let stop_reason = StopReason::Cancelled;
        EventKind::model_call_end(stop_reason, 0)
    };
    let never = "interrupted before it ended";
    let interrupted = |id: &str| tool_end(id, ToolState::Interrupted);
    check(vec![], &[], &[]);
    check(vec![start("go")], &[], &["user: go"]);
    check(vec![ask()], &[cut()], &[]);
    check(vec![ask(), text_start("1"), text("1", "He")], &[text_end("1"), cut()], &["assistant r.0: He"]);
    check(
        vec![ask(), thinking_start("1")],
        &[thinking_end("1", Opaque::new()), cut()],
        &["assistant r.0: ()"],
    );
    check(
        vec![ask(), call("1"), arguments("1", "{\"a"), call("2")],
        &[
            called("1"),
            called("2"),
            cut(),
            tool_start("1"),
            output("1", never),
            interrupted("1"),
            tool_start("2"),
            output("2", never),
            interrupted("2"),
        ],
        &[
            "assistant r.0: 1({\"a) | 2()",
            "tool r.1: 1=interrupted before it ended interrupted | 2=interrupted before it ended interrupted",
        ],
    );
    let turn = [ask(), call("1"), call("2"), call("3"), called("1"), called("2"), called("3"), answered()];
    let work = [
        tool_start("2"),
        tool_start("1"),
        output("1", "half"),
        tool_start("3"),
        tool_end("3", ToolState::Success),
    ];
    check(
        [turn.as_slice(), &work].concat(),
        &[interrupted("1"), output("2", never), interrupted("2")],
        &[
            "assistant r.0: 1() | 2() | 3()",
            "tool r.1: 1=half interrupted | 2=interrupted before it ended interrupted | 3= success",
        ],
    );
}

#[test]
fn interleaved_invocations_are_told_apart_in_the_order_of_their_start() {
    let turn = |id: &str, said: &str| vec![ask(), text_start(id), text(id, said), text_end(id), answered()];
    let of = |path: &'static str, said: &str| {
        let kinds = [vec![start(path)], turn("1", said), vec![end(Outcome::Success)]].concat();
        kinds.into_iter().map(move |kind| (path, kind)).collect::<Vec<_>>()
    };
    let (a, b) = (of("a", "Paris"), of("b", "Rome"));
    let twins = b.into_iter().zip(a).flat_map(|(b, a)| [b, a]);
    let mut events = events([("", start("compare"))].into_iter().chain(twins));
    let session = Arc::new(Origin::session("s".parse().unwrap(), None));
    events.push(AgentEvent::new(99, NOW, session, EventKind::Custom { name: "x".into(), value: json!(1) }));
    let all = fold(&events);
    let shown: Vec<_> = all.iter().map(|one| (one.reply_id.as_str(), show(one.messages()))).collect();
    assert_eq!(
        shown,
        [
            ("reply-", vec!["user: compare".to_owned()]),
            ("reply-b", vec!["user: b".into(), "assistant reply-b.0: Rome".into()]),
            ("reply-a", vec!["user: a".into(), "assistant reply-a.0: Paris".into()]),
        ]
    );
    assert_eq!(all[0].source, None);
    assert_eq!(all[1].source.as_deref(), Some(&source("b")));
}

/// The text and the tool calls of a model in one call, with their results.
#[derive(Clone, Debug)]
struct Turn {
    blocks: Vec<Block>,
    calls: Vec<Call>,
    order: Vec<Index>,
    hint: Option<String>,
}

#[derive(Clone, Debug)]
enum Block {
    Text(Vec<String>, Opaque),
    Thinking(Vec<String>, Opaque),
    Data(Vec<String>),
}

#[derive(Clone, Debug)]
struct Call {
    arguments: Vec<String>,
    output: Vec<String>,
    state: ToolState,
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let pieces = || prop::collection::vec("[a-z]{0,3}", 0..4);
    let any_opaque = || {
        prop::option::of("[a-z]{1,3}").prop_map(|name| name.map_or_else(Opaque::new, |name| opaque(&name)))
    };
    let block = prop_oneof![
        (pieces(), any_opaque()).prop_map(|(pieces, opaque)| Block::Text(pieces, opaque)),
        (pieces(), any_opaque()).prop_map(|(pieces, opaque)| Block::Thinking(pieces, opaque)),
        pieces().prop_map(Block::Data),
    ];
    let state = prop_oneof![Just(ToolState::Success), Just(ToolState::Error), Just(ToolState::Running)];
    let call = (pieces(), prop::collection::vec("[a-z]{1,3}", 0..3), state)
        .prop_map(|(arguments, output, state)| Call { arguments, output, state });
    let blocks = prop::collection::vec(block, 0..4);
    let calls = prop::collection::vec(call, 0..4);
    let order = prop::collection::vec(any::<Index>(), 40);
    (blocks, calls, order, prop::option::of("[a-z]{1,3}")).prop_map(|(blocks, calls, order, hint)| Turn {
        blocks,
        calls,
        order,
        hint,
    })
}

/// Mixes lists at random, each in its own order.
fn interleave(lists: Vec<Vec<EventKind>>, order: &mut impl Iterator<Item = Index>) -> Vec<EventKind> {
    let mut lists: Vec<_> = lists.into_iter().map(std::collections::VecDeque::from).collect();
    let mut mixed = Vec::new();
    loop {
        lists.retain(|list| !list.is_empty());
        if lists.is_empty() {
            return mixed;
        }
        let next = order.next().map_or(0, |index| index.index(lists.len()));
        mixed.extend(lists[next].pop_front());
    }
}

impl Turn {
    fn kinds(&self, turn: usize) -> Vec<EventKind> {
        let mut order = self.order.iter().copied();
        let mut kinds = vec![ask()];
        for (place, block) in self.blocks.iter().enumerate() {
            kinds.extend(block.kinds(&format!("{turn}.{place}")));
        }
        let ids: Vec<_> = (0..self.calls.len()).map(|place| format!("call-{turn}.{place}")).collect();
        // Calls begin in their order, and continue in any order.
        kinds.extend(ids.iter().map(|id| call(id)));
        let said = ids.iter().zip(&self.calls).map(|(id, call)| {
            call.arguments.iter().map(|delta| arguments(id, delta)).chain([called(id)]).collect()
        });
        kinds.extend(interleave(said.collect(), &mut order));
        kinds.push(answered());
        let done = ids.iter().zip(&self.calls).map(|(id, call)| {
            let output = call.output.iter().map(|delta| output(id, delta));
            [tool_start(id)].into_iter().chain(output).chain([tool_end(id, call.state)]).collect()
        });
        kinds.extend(interleave(done.collect(), &mut order));
        kinds.extend(self.hint.iter().map(|text| hint(text)));
        kinds
    }

    /// Returns the messages, without ids.
    fn messages(&self, turn: usize) -> Vec<Message> {
        let id = |place: usize| format!("call-{turn}.{place}");
        let mut said: Vec<_> = self.blocks.iter().map(Block::content).collect();
        let calls = self.calls.iter().enumerate();
        said.extend(calls.clone().map(|(place, call)| {
            ContentBlock::ToolCall(ToolCall::new(id(place), "search", call.arguments.concat()))
        }));
        let results = calls.map(|(place, call)| {
            let output = call.output.concat();
            let content = if output.is_empty() { vec![] } else { vec![ContentBlock::text(output)] };
            let (tool_call_id, name) = (id(place).into(), "search".to_owned());
            ContentBlock::ToolResult(ToolResult { tool_call_id, name, content, state: call.state })
        });
        let messages = [Message::new(Role::Assistant, said), Message::new(Role::Tool, results.collect())];
        let hint = self.hint.iter().map(Message::user);
        messages.into_iter().filter(|message| !message.content.is_empty()).chain(hint).collect()
    }
}

impl Block {
    fn kinds(&self, id: &str) -> Vec<EventKind> {
        let block_id = || id.parse().unwrap();
        let (first, delta, pieces, last): (_, fn(&str, &str) -> EventKind, _, _) = match self {
            Self::Text(pieces, opaque) => {
                let end = EventKind::TextBlockEnd {
                    block_id: block_id(),
                    opaque: opaque.clone(),
                    discarded: false,
                };
                (text_start(id), text, pieces, end)
            }
            Self::Thinking(pieces, opaque) => {
                (thinking_start(id), thinking, pieces, thinking_end(id, opaque.clone()))
            }
            Self::Data(pieces) => {
                let start =
                    EventKind::DataBlockStart { block_id: block_id(), media_type: "image/png".into() };
                let end =
                    EventKind::DataBlockEnd { block_id: block_id(), opaque: Opaque::new(), discarded: false };
                (start, data, pieces, end)
            }
        };
        [first].into_iter().chain(pieces.iter().map(|piece| delta(id, piece))).chain([last]).collect()
    }

    fn content(&self) -> ContentBlock {
        match self.clone() {
            Self::Text(pieces, opaque) => ContentBlock::Text { text: pieces.concat(), opaque },
            Self::Thinking(pieces, opaque) => ContentBlock::Thinking { thinking: pieces.concat(), opaque },
            Self::Data(pieces) => {
                let source = DataSource::Base64(pieces.concat());
                ContentBlock::Data { media_type: "image/png".into(), source, opaque: Opaque::new() }
            }
        }
    }
}

fn data(id: &str, delta: &str) -> EventKind {
    EventKind::DataBlockDelta { block_id: id.parse().unwrap(), delta: delta.into() }
}

fn any_invocation() -> impl Strategy<Value = Vec<Turn>> {
    prop::collection::vec(any_turn(), 0..4)
}

fn kinds(turns: &[Turn]) -> Vec<EventKind> {
    let turns = turns.iter().enumerate().flat_map(|(index, turn)| turn.kinds(index));
    [start("go")].into_iter().chain(turns).chain([end(Outcome::Success)]).collect()
}

proptest! {
    #[test]
    fn the_messages_are_what_was_said(turns in any_invocation()) {
        let transcript = transcript(kinds(&turns));
        let bare = |message: &Arc<Message>| Message::new(message.role, message.content.clone());
        let folded: Vec<_> = transcript.messages().iter().map(bare).collect();
        let said = turns.iter().enumerate().flat_map(|(index, turn)| turn.messages(index));
        prop_assert_eq!(folded, [Message::user("go")].into_iter().chain(said).collect::<Vec<_>>());
        let mut ids: Vec<_> = transcript.messages().iter().filter_map(|message| message.id.clone()).collect();
        let count = ids.len();
        ids.dedup();
        prop_assert_eq!(ids.len(), count, "each message has an id of its own");
        prop_assert_eq!(transcript.next_closing(StopReason::Cancelled), None);
    }

    #[test]
    fn an_invocation_can_be_cut_anywhere(turns in any_invocation()) {
        let kinds = kinds(&turns);
        for cut in 0..kinds.len() {
            let mut transcript = transcript(kinds[..cut].iter().cloned());
            let before = transcript.messages().to_vec();
            close(&mut transcript);
            prop_assert_eq!(transcript.open_block(), None);
            prop_assert_eq!(&transcript.messages()[..before.len()], &before[..]);
            let calls = transcript.messages().iter().flat_map(|message| message.tool_calls());
            let results = transcript.messages().iter().flat_map(|message| message.tool_results());
            prop_assert!(calls.map(|call| &call.id).eq(results.map(|result| &result.tool_call_id)));
        }
    }

    /// In any order, with any ids.
    #[test]
    fn closing_ends_after_any_nonsense(picks in prop::collection::vec((0..16usize, 0..3u8), 0..60)) {
        let kinds = picks.into_iter().map(|(pick, id)| {
            let id = id.to_string();
            let (id, error) = (id.as_str(), ToolState::Error);
            match pick {
                0 | 1 => ask(),
                2 => answered(),
                3 => text_start(id),
                4 => text(id, "x"),
                5 => text_end(id),
                6 => thinking_start(id),
                7 => thinking_end(id, Opaque::new()),
                8 | 9 => call(id),
                10 => called(id),
                11 => tool_start(id),
                12 => output(id, "x"),
                13 => output_data(id, ContentBlock::text("x")),
                14 => tool_end(id, error),
                _ => hint("x"),
            }
        });
        let mut transcript = transcript(kinds);
        close(&mut transcript);
        prop_assert_eq!(transcript.open_block(), None);
    }

    #[test]
    fn mixed_invocations_are_each_folded_alone(
        all in prop::collection::vec(any_invocation(), 1..4),
        order in prop::collection::vec(any::<Index>(), 200),
    ) {
        let paths = ["", "a", "b"];
        let alone: Vec<_> = all.iter().map(|turns| kinds(turns)).collect();
        let mut lists: Vec<_> = paths.iter().zip(&alone).map(|(path, kinds)| (*path, kinds.iter())).collect();
        let mut mixed = Vec::new();
        let mut order = order.into_iter();
        while !lists.is_empty() {
            let place = order.next().map_or(0, |index| index.index(lists.len()));
            match lists[place].1.next() {
                Some(kind) => mixed.push((lists[place].0, kind.clone())),
                None => _ = lists.remove(place),
            }
        }
        let events = events(mixed);
        for one in fold(&events) {
            let path = one.reply_id.as_str().trim_start_matches("reply-");
            let place = paths.iter().position(|known| *known == path).unwrap();
            let mut expected = Transcript::new(one.reply_id.clone());
            alone[place].iter().for_each(|kind| expected.apply(kind));
            prop_assert_eq!(one.messages(), expected.messages());
        }
    }
}

#[test]
fn a_checkpoint_replaces_what_was_said_before_it() {
    let log = SessionLog::new("s".parse().unwrap());
    let mut cursor = log.subscribe_from(1);
    let turn = |reply: &str, input: &str, answer: &str, checkpoint: Option<&str>| {
        let origin =
            Origin { reply_id: Some(reply.parse().unwrap()), ..Origin::session("s".parse().unwrap(), None) };
        let sink = EventSink::resumed(log.clone(), Arc::new(origin));
        let input = vec![Arc::new(Message::user(input))];
        let (name, role) = ("main".into(), Role::Assistant);
        let (parent_tool_call_id, settings, spec_version, spec) = Default::default();
        sink.emit(EventKind::AgentStart {
            name,
            role,
            input,
            parent_tool_call_id,
            settings,
            spec_version,
            spec,
        });
        if let Some(summary) = checkpoint {
            let messages = vec![Arc::new(Message::user(summary))];
            log.emit(EventKind::StateCheckpoint { agent_key: ROOT.parse().unwrap(), messages });
        }
        let hint = answer.to_owned();
        sink.emit(EventKind::HintBlock { block_id: "1".parse().unwrap(), hint_source: "test".into(), hint });
    };
    turn("one", "first", "answer 1", None);
    turn("two", "second", "answer 2", Some("a summary"));
    turn("three", "third", "answer 3", None);
    let events: Vec<_> = std::iter::from_fn(|| cursor.try_next()).collect();

    let mut root = Conversation::of(ROOT.parse().unwrap());
    events.iter().for_each(|event| root.apply(event));
    let texts: Vec<_> = root.messages().map(|message| message.text()).collect();
    assert_eq!(texts, ["a summary", "answer 2", "third", "answer 3"]);
    let folded = fold(&events);
    let texts = |one: &Invocation| one.messages().iter().map(|message| message.text()).collect::<Vec<_>>();
    assert_eq!(
        folded.iter().flat_map(texts).collect::<Vec<_>>(),
        ["a summary", "answer 2", "third", "answer 3"]
    );

    let mut another = Conversation::of("agent:kid:1".parse().unwrap());
    events.iter().for_each(|event| another.apply(event));
    assert!(!another.has_begun() && another.messages().next().is_none());
}

#[test]
fn what_is_taken_back_is_not_in_the_conversation() {
    use mainstem_message::Failure;
    let block = |id: &str| id.parse().unwrap();
    let again = || {
        let said = crate::Discarded::new(vec![block("1"), block("2")], vec!["a".into()]);
        EventKind::model_retry(1, 0, Failure::new("transport", "cut")).with_taken_back(said)
    };
    let failed = [
        start("go"),
        ask(),
        thinking_start("1"),
        thinking("1", "Hm."),
        thinking_end("1", Opaque::new()),
        text_start("2"),
        text("2", "I th"),
        text_end("2").with_discarded(true),
    ];
    let second = [text_start("3"), text("3", "There."), text_end("3"), answered()];
    let of = |kinds: Vec<EventKind>| show(transcript(kinds).messages());
    let repeated = of([failed.to_vec(), vec![again()], second.to_vec()].concat());
    assert_eq!(repeated, ["user: go", "assistant r.0: There."]);
    // The process ended before it took it back: what was complete stays.
    let cut = of([failed.to_vec(), vec![answered()]].concat());
    assert_eq!(cut, ["user: go", "assistant r.0: (Hm.)"]);
}
