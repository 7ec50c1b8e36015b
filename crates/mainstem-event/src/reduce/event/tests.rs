//! The v1 view of v2 timelines.

use std::sync::Arc;

use mainstem_message::{ContentBlock, DataSource, Failure, Message, Opaque, ToolState};
use serde_json::json;

use super::*;
use crate::{AgentEvent, EventKind, Origin, Outcome, fixture::*};

/// Returns each event as its type, `!` if it is the last of its message, source, and content.
fn project(options: &StreamOptions, events: &[AgentEvent]) -> Vec<String> {
    let mut projector = Projector::new(options.clone());
    let made = events.iter().filter_map(|event| projector.push(event));
    made.map(|event| {
        let kind = serde_json::to_value(event.kind).unwrap();
        let mark = if event.is_last { "!" } else { "" };
        let who = event.source.as_ref().map_or(String::new(), |source| format!(" {}", source.agent_id));
        format!("{}{mark}{who}: {}", kind.as_str().unwrap(), show(&event.message))
    })
    .collect()
}

fn show(message: &Message) -> String {
    let block = |block: &ContentBlock| match block {
        ContentBlock::Text { text, .. } => text.clone(),
        ContentBlock::Thinking { thinking, .. } => format!("({thinking})"),
        ContentBlock::ToolCall(call) => format!("{}({})", call.id, call.arguments),
        ContentBlock::ToolResult(result) => {
            let parts = result.content.iter().map(|part| part.as_text().unwrap_or("<data>"));
            format!(
                "{}={} {}",
                result.tool_call_id,
                parts.collect::<Vec<_>>().join("+"),
                result.state.as_str()
            )
        }
        other => format!("{other:?}"),
    };
    message.content.iter().map(block).collect::<Vec<_>>().join(" | ")
}

fn whole() -> StreamOptions {
    StreamOptions { incremental: false, ..StreamOptions::default() }
}

fn image() -> ContentBlock {
    let source = DataSource::Base64("iVBORw==".into());
    ContentBlock::Data { media_type: "image/png".into(), source, opaque: Opaque::new() }
}

/// Returns a run of two turns, with thinking, two tools at once, and a hint.
fn run() -> Vec<AgentEvent> {
    let kinds = [
        start("go"),
        ask(),
        thinking_start("1"),
        thinking("1", "h"),
        thinking("1", "m"),
        thinking_end("1", Opaque::new()),
        text_start("2"),
        text("2", "I'll "),
        text("2", "look"),
        text_end("2"),
        call("x"),
        arguments("x", "{}"),
        called("x"),
        call("y"),
        called("y"),
        answered(),
        tool_start("x"),
        tool_start("y"),
        output("x", "4"),
        output("y", "no"),
        output("x", "2"),
        tool_end("y", ToolState::Error),
        output_data("x", image()),
        tool_end("x", ToolState::Success),
        hint("psst"),
        ask(),
        text_start("3"),
        text("3", "Done."),
        text_end("3"),
        answered(),
        result("Done."),
        end(Outcome::Success),
    ];
    events(kinds.map(|kind| ("", kind)))
}

#[test]
fn pieces_carry_what_is_new() {
    assert_eq!(
        project(&StreamOptions::default(), &run()),
        [
            "REASONING: (h)",
            "REASONING: (m)",
            "REASONING: I'll ",
            "REASONING: look",
            "REASONING!: (hm) | I'll look | x({}) | y()",
            "TOOL_RESULT: x=4 running",
            "TOOL_RESULT: y=no running",
            "TOOL_RESULT: x=2 running",
            "TOOL_RESULT!: y=no error",
            "TOOL_RESULT: x=<data> running",
            "TOOL_RESULT!: x=42+<data> success",
            "HINT!: psst",
            "REASONING: Done.",
            "REASONING!: Done.",
            "AGENT_RESULT!: Done.",
        ]
    );
}

#[test]
fn or_all_that_was_said_so_far() {
    assert_eq!(
        project(&whole(), &run()),
        [
            "REASONING: (h)",
            "REASONING: (hm)",
            "REASONING: I'll ",
            "REASONING: I'll look",
            "REASONING!: (hm) | I'll look | x({}) | y()",
            "TOOL_RESULT: x=4 running",
            "TOOL_RESULT: y=no running",
            "TOOL_RESULT: x=42 running",
            "TOOL_RESULT!: y=no error",
            "TOOL_RESULT: x=42+<data> running",
            "TOOL_RESULT!: x=42+<data> success",
            "HINT!: psst",
            "REASONING: Done.",
            "REASONING!: Done.",
            "AGENT_RESULT!: Done.",
        ]
    );
}

/// Returns a run that reaches its limit of iterations.
fn limited() -> Vec<AgentEvent> {
    let turn = |id: &str, said: &str| [ask(), text_start(id), text(id, said), text_end(id), answered()];
    let limit = EventKind::ExceedMaxIters { max_iters: 1, current_iter: 1 };
    let closing = [result("In short"), end(Outcome::MaxIterations)];
    let kinds = [&turn("1", "First")[..], &[limit], &turn("2", "In short")[..], &closing].concat();
    events(kinds.into_iter().map(|kind| ("", kind)))
}

#[test]
fn after_the_limit_of_iterations_prose_is_a_summary() {
    let expected = [
        "REASONING: First",
        "REASONING!: First",
        "SUMMARY: In short",
        "SUMMARY!: In short",
        "AGENT_RESULT!: In short",
    ];
    assert_eq!(project(&StreamOptions::default(), &limited()), expected);
}

#[test]
fn each_option_leaves_out_what_it_says() {
    let all = || [run(), limited()].concat();
    let check = |set: fn(&mut StreamOptions), left_out: &[&str]| {
        let mut options = StreamOptions::default();
        set(&mut options);
        let mut expected = project(&StreamOptions::default(), &all());
        expected.retain(|line| !left_out.iter().any(|start| line.starts_with(start)));
        assert_eq!(project(&options, &all()), expected, "{options:?}");
    };
    check(|_| (), &[]);
    check(|o| o.include_reasoning_chunk = false, &["REASONING:"]);
    check(|o| o.include_reasoning_result = false, &["REASONING!:"]);
    check(|o| o.include_acting_chunk = false, &["TOOL_RESULT:"]);
    check(|o| o.include_summary_chunk = false, &["SUMMARY:"]);
    check(|o| o.include_summary_result = false, &["SUMMARY!:"]);
    check(|o| o.event_types = Some(vec![]), &[""]);
    check(|o| o.event_types = Some(vec![EventType::Hint]), &["REASONING", "TOOL", "SUMMARY", "AGENT"]);
    let results =
        |o: &mut StreamOptions| o.event_types = Some(vec![EventType::AgentResult, EventType::ToolResult]);
    check(results, &["REASONING", "HINT", "SUMMARY"]);
}

#[test]
fn a_turn_that_says_nothing_has_no_message() {
    let input = vec![Arc::new(Message::assistant("said before"))];
    let start = EventKind::AgentStart {
        name: "a".into(),
        role: mainstem_message::Role::Assistant,
        input,
        parent_tool_call_id: None,
        settings: None,
        spec_version: None,
        spec: None,
    };
    let said = [ask(), text_start("1"), text("1", "x"), text_end("1"), answered()];
    let kinds = [&[start, ask(), answered()], &said[..], &[ask(), answered()]].concat();
    let events = events(kinds.into_iter().map(|kind| ("", kind)));
    assert_eq!(project(&StreamOptions::default(), &events), ["REASONING: x", "REASONING!: x"]);
}

#[test]
fn children_have_their_source_and_are_told_apart() {
    let turn = |path: &'static str, said: &str| {
        [ask(), text_start("1"), text("1", said), text("1", "!"), text_end("1"), answered()]
            .map(|kind| (path, kind))
    };
    let mixed = turn("a", "A").into_iter().zip(turn("b", "B")).flat_map(|(a, b)| [a, b]);
    assert_eq!(
        project(&whole(), &events(mixed)),
        [
            "REASONING a: A",
            "REASONING b: B",
            "REASONING a: A!",
            "REASONING b: B!",
            "REASONING! a: A!",
            "REASONING! b: B!",
        ]
    );
}

#[test]
fn a_stream_joined_late_or_without_sense_does_no_harm() {
    let late: Vec<_> = run().split_off(7);
    let expected = ["REASONING: I'll ", "REASONING: I'll look", "TOOL_RESULT: x=4 running"];
    assert_eq!(project(&whole(), &late)[..3], expected);
    assert_eq!(
        project(&whole(), &run().split_off(18))[0],
        "HINT!: psst",
        "results of tools that never began"
    );
    let session = Arc::new(Origin::session("s".parse().unwrap(), None));
    let nobodys = AgentEvent::new(1, NOW, session, text("1", "x"));
    assert_eq!(project(&whole(), &[nobodys, gap(2, 3)]), [""; 0]);
}

#[test]
fn a_finished_invocation_leaves_nothing_behind() {
    let mut projector = Projector::new(StreamOptions::default());
    run().iter().for_each(|event| _ = projector.push(event));
    assert!(!format!("{projector:?}").contains("reply-"), "{projector:?}");
}

#[test]
fn the_json_says_is_last() {
    let mut projector = Projector::new(StreamOptions::default());
    let event = projector.push(&event(1, "a", hint("psst"))).unwrap();
    let json = serde_json::to_value(&event).unwrap();
    assert_eq!(json["type"], "HINT");
    assert_eq!(json["isLast"], true);
    assert_eq!(json["message"], json!(Message::user("psst")));
    assert_eq!(json["source"]["agentKey"], "agent:a");
    assert_eq!(serde_json::from_value::<Event>(json).unwrap(), event);
}

#[test]
fn an_answer_that_is_taken_back_is_a_hint_and_not_in_the_message() {
    let retry = EventKind::model_retry(1, 0, Failure::new("transport", "cut"));
    let said = crate::Discarded::new(vec!["1".parse().unwrap()], vec![]);
    let kinds = [
        start("go"),
        ask(),
        text_start("1"),
        text("1", "I th"),
        text_end("1").with_discarded(true),
        retry.with_taken_back(said),
        text_start("2"),
        text("2", "There."),
        text_end("2"),
        answered(),
    ];
    let events = events(kinds.map(|kind| ("", kind)));
    let hint = "HINT!: the answer was cut and begins again; what it said is taken back (transport: cut)";
    let shown = project(&whole(), &events);
    assert_eq!(shown, ["REASONING: I th", hint, "REASONING: There.", "REASONING!: There."]);
}
