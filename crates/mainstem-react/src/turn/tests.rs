//! Deltas in, events out.

use std::{fmt::Write, sync::Arc, time::Duration};

use mainstem_event::{AgentEvent, Origin, Outcome, Rollup, Timestamp, fold::Transcript};
use mainstem_message::{ContentBlock, DataSource, Failure, RateLimit, Role, ToolState};
use mainstem_testing::{laws, render};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::*;
use crate::AnswerLimits;

/// An invocation in which some ids of calls are taken.
#[derive(Default)]
struct Fake {
    events: Vec<EventKind>,
    taken: Vec<ToolCallId>,
    ids: u32,
}

impl Scope for Fake {
    fn emit(&mut self, kind: EventKind) {
        self.events.push(kind);
    }

    fn is_taken(&self, id: &ToolCallId) -> bool {
        self.taken.contains(id)
    }

    fn new_call_id(&mut self) -> ToolCallId {
        self.ids += 1;
        format!("new-{}", self.ids).into()
    }
}

/// Returns events in short: `text 1.1` and `call a search` begin, `1.1 "Hi"` continues, `1.1 end`
/// ends.
fn show(kind: &EventKind) -> String {
    use EventKind::*;
    let sealed =
        |opaque: &Opaque| if opaque.is_empty() { String::new() } else { format!(" {}", json!(opaque)) };
    let gone = |discarded: &bool| if *discarded { " discarded" } else { "" };
    match kind {
        TextBlockStart { block_id } => format!("text {block_id}"),
        ThinkingBlockStart { block_id } => format!("thinking {block_id}"),
        DataBlockStart { block_id, media_type } => format!("{media_type} {block_id}"),
        TextBlockDelta { block_id, delta }
        | ThinkingBlockDelta { block_id, delta }
        | DataBlockDelta { block_id, delta } => format!("{block_id} {delta:?}"),
        TextBlockEnd { block_id, opaque, discarded }
        | ThinkingBlockEnd { block_id, opaque, discarded }
        | DataBlockEnd { block_id, opaque, discarded } => {
            format!("{block_id} end{}{}", sealed(opaque), gone(discarded))
        }
        ToolCallStart { tool_call_id, tool_call_name } => format!("call {tool_call_id} {tool_call_name}"),
        ToolCallDelta { tool_call_id, delta } => format!("{tool_call_id} {delta:?}"),
        ToolCallEnd { tool_call_id, opaque, discarded, .. } => {
            format!("{tool_call_id} end{}{}", sealed(opaque), gone(discarded))
        }
        ModelRetry { discarded, .. } if !discarded.is_empty() => {
            let ids = discarded.blocks.iter().map(|id| id.as_str());
            let ids = ids.chain(discarded.tool_calls.iter().map(|id| id.as_str()));
            format!("again without [{}]", ids.collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}

/// Checks the events of deltas; after `|` come those of the end of the answer. An error stands
/// where it occurs.
#[track_caller]
fn check(deltas: impl IntoIterator<Item = ModelDelta>, expected: &str) {
    check_with(&[], deltas, expected);
}

#[track_caller]
fn check_with(taken: &[&str], deltas: impl IntoIterator<Item = ModelDelta>, expected: &str) {
    let mut fake = Fake { taken: taken.iter().map(|id| (*id).into()).collect(), ..Fake::default() };
    let mut turn = Turn::new("1".to_owned(), Length::new(AnswerLimits::default(), 0));
    let mut said = String::new();
    for delta in deltas {
        let result = turn.push(delta, &mut fake);
        said.extend(fake.events.drain(..).map(|kind| show(&kind) + ", "));
        if let Err(error) = result {
            write!(said, "error: {error}, ").unwrap();
        }
    }
    turn.finish(&mut fake);
    let end: Vec<_> = fake.events.iter().map(show).collect();
    assert_eq!(format!("{} | {}", said.trim_end_matches(", "), end.join(", ")).trim(), expected);
}

fn text(delta: &str) -> ModelDelta {
    ModelDelta::Text(delta.to_owned())
}

fn thinking(delta: &str) -> ModelDelta {
    ModelDelta::Thinking(delta.to_owned())
}

fn data_start() -> ModelDelta {
    ModelDelta::DataStart { media_type: "image/png".to_owned() }
}

fn data(delta: &str) -> ModelDelta {
    ModelDelta::Data(delta.to_owned())
}

fn sealed() -> Opaque {
    Opaque::from_iter([("sig".to_owned(), json!(1))])
}

fn block_end(opaque: Opaque) -> ModelDelta {
    ModelDelta::BlockEnd { opaque }
}

fn call(slot: usize, id: &str) -> ModelDelta {
    ModelDelta::CallStart { slot, id: Some(id.into()), name: "f".to_owned() }
}

fn unnamed(slot: usize) -> ModelDelta {
    ModelDelta::CallStart { slot, id: None, name: "f".to_owned() }
}

fn arguments(slot: usize, delta: &str) -> ModelDelta {
    ModelDelta::CallArguments { slot, delta: delta.to_owned() }
}

fn call_end(slot: usize, opaque: Opaque) -> ModelDelta {
    ModelDelta::CallEnd { slot, opaque }
}

fn retry() -> ModelDelta {
    ModelDelta::Retry { attempt: 1, wait: Duration::ZERO, error: Failure::new("transport", "cut") }
}

#[test]
fn a_repeated_call_takes_back_what_it_has_said() {
    // Before the first piece there is nothing to take back.
    check([retry(), text("a")], r#"MODEL_RETRY #1 in 0 ms (transport: cut), text 1.1, 1.1 "a" | 1.1 end"#);
    check(
        [text("a"), retry(), text("b")],
        r#"text 1.1, 1.1 "a", 1.1 end discarded, again without [1.1], text 1.2, 1.2 "b" | 1.2 end"#,
    );
    // What was complete, too; ids are never used again, and fragments belong to the new calls.
    check(
        [thinking("a"), call(0, "x"), arguments(0, "{"), call(1, "y"), call_end(1, Opaque::new()), retry()],
        r#"thinking 1.1, 1.1 "a", 1.1 end, call x f, x "{", call y f, y end, x end discarded, again without [1.1 x y] |"#,
    );
    check(
        [call(0, "x"), arguments(0, "{"), retry(), call(0, "x"), arguments(0, "}")],
        r#"call x f, x "{", x end discarded, again without [x], call x~2 f, x~2 "}" | x~2 end"#,
    );
    check(
        [call(0, "x"), retry(), arguments(0, "}")],
        "call x f, x end discarded, again without [x], error: a fragment of tool call 0, which never began |",
    );
}

#[test]
fn a_repeated_call_counts_the_usage_of_all_attempts_and_the_length_of_the_last() {
    let (mut fake, limits) = (Fake::default(), AnswerLimits::default().with_answer(4));
    let mut turn = Turn::new("1".to_owned(), Length::new(limits, 0));
    let used = |input| ModelDelta::Usage(Usage::new(input, 1));
    for delta in [text("abc"), used(1), used(5), retry(), text("abc"), retry(), text("abcd"), used(7)] {
        turn.push(delta, &mut fake).unwrap();
    }
    let usages: Vec<_> = turn.attempts().map(|attempt| attempt.usage).collect();
    assert_eq!(usages, [Usage::new(5, 1), Usage::new(7, 1)]);
    assert!(turn.push(text("e"), &mut fake).is_err());
}

#[test]
fn a_block_ends_where_other_content_begins() {
    check([], "|");
    check([text("a"), text("b")], r#"text 1.1, 1.1 "a", 1.1 "b" | 1.1 end"#);
    check(
        [thinking("a"), text("b"), thinking("c")],
        r#"thinking 1.1, 1.1 "a", 1.1 end, text 1.2, 1.2 "b", 1.2 end, thinking 1.3, 1.3 "c" | 1.3 end"#,
    );
    check(
        [text("a"), data_start(), data("AA"), data("=="), text("b")],
        r#"text 1.1, 1.1 "a", 1.1 end, image/png 1.2, 1.2 "AA", 1.2 "==", 1.2 end, text 1.3, 1.3 "b" | 1.3 end"#,
    );
    check([data_start(), data_start()], "image/png 1.1, 1.1 end, image/png 1.2 | 1.2 end");
    check([text("a"), call(0, "x")], r#"text 1.1, 1.1 "a", 1.1 end, call x f | x end"#);
    check(
        [text("a"), block_end(Opaque::new()), text("b")],
        r#"text 1.1, 1.1 "a", 1.1 end, text 1.2, 1.2 "b" | 1.2 end"#,
    );
}

#[test]
fn empty_fragments_say_nothing() {
    check([text(""), thinking("")], "|");
    check([text("a"), thinking(""), text("b")], r#"text 1.1, 1.1 "a", 1.1 "b" | 1.1 end"#);
    check([data_start(), data("")], "image/png 1.1 | 1.1 end");
    check([call(0, "x"), arguments(0, "")], "call x f | x end");
}

#[test]
fn what_the_vendor_wants_back_stays_with_its_block() {
    check([thinking("a"), block_end(sealed())], r#"thinking 1.1, 1.1 "a", 1.1 end {"sig":1} |"#);
    check([text("a"), block_end(sealed())], r#"text 1.1, 1.1 "a", 1.1 end {"sig":1} |"#);
    check([data_start(), block_end(sealed())], r#"image/png 1.1, 1.1 end {"sig":1} |"#);
    check([call(0, "x"), call_end(0, sealed())], r#"call x f, x end {"sig":1} |"#);
    // A signature without text is a block of its own; an end without a block emits nothing.
    check([block_end(sealed())], r#"thinking 1.1, 1.1 end {"sig":1} |"#);
    check([block_end(Opaque::new())], "|");
    check(
        [text("a"), block_end(sealed()), block_end(sealed())],
        r#"text 1.1, 1.1 "a", 1.1 end {"sig":1}, thinking 1.2, 1.2 end {"sig":1} |"#,
    );
}

#[test]
fn calls_interleave() {
    check(
        [
            call(0, "x"),
            call(1, "y"),
            arguments(0, "{"),
            arguments(1, "["),
            arguments(0, "}"),
            call_end(1, Opaque::new()),
        ],
        r#"call x f, call y f, x "{", y "[", x "}", y end | x end"#,
    );
    // Text may come in between, and the call continues.
    check(
        [call(0, "x"), text("a"), arguments(0, "{}")],
        r#"call x f, text 1.1, 1.1 "a", x "{}" | 1.1 end, x end"#,
    );
    // A slot that is used again belongs to the newer call.
    check(
        [call(0, "x"), call_end(0, Opaque::new()), call(0, "y"), arguments(0, "1")],
        r#"call x f, x end, call y f, y "1" | y end"#,
    );
    check([call(0, "x"), call(0, "y"), arguments(0, "1")], r#"call x f, call y f, y "1" | x end, y end"#);
    check([call(7, "x"), arguments(7, "1")], r#"call x f, x "1" | x end"#);
}

#[test]
fn ids_of_calls_are_unique_within_the_reply() {
    check([unnamed(0), unnamed(1)], "call new-1 f, call new-2 f | new-1 end, new-2 end");
    check([call(0, "")], "call new-1 f | new-1 end");
    check(
        [call(0, "x"), call(1, "x"), call(2, "x")],
        "call x f, call x~2 f, call x~3 f | x end, x~2 end, x~3 end",
    );
    check(
        [call(0, "x~2"), call(1, "x"), call(2, "x")],
        "call x~2 f, call x f, call x~3 f | x~2 end, x end, x~3 end",
    );
    check_with(&["x"], [call(0, "x")], "call x~2 f | x~2 end");
    check_with(&["x", "x~2"], [call(0, "x")], "call x~3 f | x~3 end");
    check_with(&["new-1"], [unnamed(0)], "call new-1~2 f | new-1~2 end");
}

#[test]
fn fragments_of_nothing_are_errors() {
    let call_of_nothing = "error: a fragment of tool call 3, which never began |";
    check([arguments(3, "x")], call_of_nothing);
    check([call_end(3, Opaque::new())], call_of_nothing);
    check(
        [call(3, "x"), call_end(3, Opaque::new()), call_end(3, Opaque::new())],
        &format!("call x f, x end, {call_of_nothing}"),
    );
    let bytes_of_nothing = "error: bytes of a data block that never began |";
    check([data("AA")], bytes_of_nothing);
    check([text("a"), data("AA")], &format!(r#"text 1.1, 1.1 "a", {bytes_of_nothing} 1.1 end"#));
    check(
        [data_start(), block_end(Opaque::new()), data("AA")],
        &format!("image/png 1.1, 1.1 end, {bytes_of_nothing}"),
    );
}

#[test]
fn decorators_report_between_blocks() {
    let failure = || Failure::new("rate_limited", "slow down");
    check(
        [
            ModelDelta::Retry { attempt: 1, wait: Duration::from_millis(1500), error: failure() },
            ModelDelta::Fallback { from: "big".into(), to: "small".into(), reason: failure() },
            ModelDelta::NotStreaming { reason: "no SSE".to_owned() },
            text("a"),
        ],
        r#"MODEL_RETRY #1 in 1500 ms (rate_limited: slow down), MODEL_FALLBACK big → small (rate_limited: slow down), STREAM_FALLBACK no SSE, text 1.1, 1.1 "a" | 1.1 end"#,
    );
    check(
        [ModelDelta::Retry { attempt: 2, wait: Duration::MAX, error: failure() }],
        &format!("MODEL_RETRY #2 in {} ms (rate_limited: slow down) |", u64::MAX),
    );
}

#[test]
fn a_wait_for_a_rate_limit_is_an_event() {
    let wait = |wait| ModelDelta::RateLimitWait {
        limit: RateLimit::Tokens,
        wait,
        ahead: 2,
        refusal: wait.map(|_| Failure::new("rate_limited", "slow down")),
    };
    check(
        [
            wait(Some(Duration::from_millis(1500))),
            wait(None),
            ModelDelta::RateLimitPassed { waited: Duration::from_millis(2100) },
            ModelDelta::RateLimits(Box::default()),
            text("a"),
        ],
        r#"RATE_LIMIT_WAIT tokens behind 2, in 1500 ms (rate_limited: slow down), RATE_LIMIT_WAIT tokens behind 2, RATE_LIMIT_PASSED after 2100 ms, text 1.1, 1.1 "a" | 1.1 end"#,
    );
}

#[test]
fn usage_and_reason_are_the_latest() {
    let (mut fake, mut turn) =
        (Fake::default(), Turn::new("1".to_owned(), Length::new(AnswerLimits::default(), 0)));
    assert_eq!((turn.usage, &turn.stop), (None, &None));
    for delta in [
        ModelDelta::Usage(Usage::new(5, 0)),
        ModelDelta::Stop(StopReason::Length),
        ModelDelta::Usage(Usage::new(5, 7)),
        ModelDelta::Stop(StopReason::Stop),
    ] {
        turn.push(delta, &mut fake).unwrap();
    }
    assert_eq!((turn.usage, turn.stop), (Some(Usage::new(5, 7)), Some(StopReason::Stop)));
    assert_eq!(fake.events, []);
}

fn any_delta() -> impl Strategy<Value = ModelDelta> {
    let word = || prop_oneof![Just(""), Just("a"), Just("bc")];
    let opaque = || prop_oneof![3 => Just(Opaque::new()), 1 => Just(sealed())];
    let id = prop_oneof![Just(None), Just(Some("")), Just(Some("x")), Just(Some("x~2"))];
    prop_oneof![
        4 => word().prop_map(text),
        3 => word().prop_map(thinking),
        1 => Just(data_start()),
        2 => word().prop_map(data),
        2 => opaque().prop_map(block_end),
        3 => (0..3_usize, id).prop_map(|(slot, id)| ModelDelta::CallStart {
            slot,
            id: id.map(Into::into),
            name: "f".to_owned(),
        }),
        4 => (0..3_usize, word()).prop_map(|(slot, delta)| arguments(slot, delta)),
        2 => (0..3_usize, opaque()).prop_map(|(slot, opaque)| call_end(slot, opaque)),
        1 => Just(ModelDelta::NotStreaming { reason: "why not".to_owned() }),
    ]
}

/// Returns the whole invocation around a turn: every call has a result.
fn invocation(turn: Vec<EventKind>) -> Vec<AgentEvent> {
    use EventKind::*;
    let calls = turn.iter().filter_map(|kind| match kind {
        ToolCallEnd { tool_call_id, tool_call_name, .. } => {
            Some((tool_call_id.clone(), tool_call_name.clone()))
        }
        _ => None,
    });
    let results = calls.flat_map(|(tool_call_id, tool_call_name)| {
        let (id, name) = (tool_call_id.clone(), tool_call_name.clone());
        let start = EventKind::tool_result_start(tool_call_id, tool_call_name, Value::Null);
        let state = ToolState::Success;
        [start, EventKind::tool_result_end(id, name, state, 0)]
    });
    let start = EventKind::agent_start("a", Role::Assistant, vec![]);
    let asked = EventKind::model_call_start("m", 1);
    let answered = EventKind::model_call_end(StopReason::Stop, 0);
    let (usage, outcome) = (Rollup::default(), Outcome::Error);
    let end = EventKind::agent_end(outcome, usage, 0);
    let kinds: Vec<_> = [start, asked]
        .into_iter()
        .chain(turn.iter().cloned())
        .chain([answered])
        .chain(results)
        .chain([end])
        .collect();
    let origin =
        Origin { reply_id: Some("r".parse().unwrap()), ..Origin::session("s".parse().unwrap(), None) };
    let origin = Arc::new(origin);
    let event = |(seq, kind)| AgentEvent::new(seq, Timestamp::from_micros(0), origin.clone(), kind);
    (1..).zip(kinds).map(event).collect()
}

/// The content of a message, joined by kind.
#[derive(Debug, Default, PartialEq)]
struct Joined {
    text: String,
    thinking: String,
    data: String,
    arguments: String,
}

impl Joined {
    fn pushed(&mut self, delta: &ModelDelta) {
        match delta {
            ModelDelta::Text(delta) => self.text += delta,
            ModelDelta::Thinking(delta) => self.thinking += delta,
            ModelDelta::Data(delta) => self.data += delta,
            // Calls interleave, and a multiset of letters is the same in any order.
            ModelDelta::CallArguments { delta, .. } => self.arguments += delta,
            _ => {}
        }
    }

    fn folded(events: &[AgentEvent]) -> Self {
        let mut transcript = Transcript::new("r".parse().unwrap());
        events.iter().for_each(|event| transcript.apply(&event.kind));
        let mut said = Self::default();
        for block in transcript.messages().iter().flat_map(|message| &message.content) {
            match block {
                ContentBlock::Text { text, .. } => said.text += text,
                ContentBlock::Thinking { thinking, .. } => said.thinking += thinking,
                ContentBlock::Data { source: DataSource::Base64(bytes), .. } => said.data += bytes,
                ContentBlock::ToolCall(call) => said.arguments += &call.arguments,
                _ => {}
            }
        }
        said
    }

    /// Sorts the letters of the arguments.
    fn sorted(mut self) -> Self {
        let mut letters: Vec<_> = self.arguments.chars().collect();
        letters.sort_unstable();
        self.arguments = letters.into_iter().collect();
        self
    }
}

proptest! {
    #[test]
    fn any_deltas_make_a_lawful_stream_that_says_them(deltas in vec(any_delta(), 0..40)) {
        let (mut fake, mut turn, mut said) = (Fake::default(), Turn::new("1".to_owned(), Length::new(AnswerLimits::default(), 0)), Joined::default());
        for delta in deltas {
            if turn.push(delta.clone(), &mut fake).is_ok() {
                said.pushed(&delta);
            }
        }
        turn.finish(&mut fake);
        let events = invocation(fake.events);
        prop_assert_eq!(laws(&events), Ok(()), "{}", render(&events));
        prop_assert_eq!(Joined::folded(&events).sorted(), said.sorted());
    }
}

#[test]
fn an_answer_beyond_a_limit_is_cut_off_there() {
    #[track_caller]
    fn check(deltas: Vec<ModelDelta>, expected: &str) {
        let limits = AnswerLimits::new().with_answer(100).with_arguments(20).with_turn(110).with_blocks(3);
        let (mut fake, mut turn) = (Fake::default(), Turn::new("1".to_owned(), Length::new(limits, 30)));
        let mut emitted = 0;
        let error = deltas.into_iter().find_map(|delta| {
            emitted += 1;
            turn.push(delta, &mut fake).err()
        });
        let error = error.map_or_else(|| "none".to_owned(), |error| format!("{emitted}: {error}"));
        assert_eq!(error, expected);
    }
    let text = |count: usize| ModelDelta::Text("x".repeat(count));
    let thinking = |count: usize| ModelDelta::Thinking("x".repeat(count));
    let start = |slot| ModelDelta::CallStart { slot, id: None, name: "t".into() };
    let arguments = |slot, count: usize| ModelDelta::CallArguments { slot, delta: "x".repeat(count) };
    check(vec![text(40), text(40)], "none");
    check(
        vec![text(40), text(40), text(1)],
        "3: the model said too much and was cut off: 110 bytes is the limit for a turn",
    );
    check(
        vec![text(101)],
        "1: the model said too much and was cut off: 100 bytes is the limit for an answer",
    );
    check(vec![thinking(1), text(1), thinking(1)], "none");
    check(
        vec![thinking(1), text(1), thinking(1), text(1)],
        "4: the model said too much and was cut off: 3 blocks and tool calls is the limit for an answer",
    );
    check(vec![start(0), start(1), arguments(0, 20), arguments(1, 20)], "none");
    check(
        vec![start(0), arguments(0, 20), arguments(0, 1)],
        "3: the model said too much and was cut off: 20 bytes is the limit for the arguments of a tool call",
    );
    check(
        (0..4).map(start).collect(),
        "4: the model said too much and was cut off: 3 blocks and tool calls is the limit for an answer",
    );
}
