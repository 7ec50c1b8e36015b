//! What stays of a conversation.

use std::slice;

use mainstem_message::{DataSource, ToolCall, ToolState};

use super::*;

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::user(text))
}

fn agent(text: &str) -> Arc<Message> {
    Arc::new(Message::assistant(text))
}

fn calls(tool: &str) -> Arc<Message> {
    let call = ContentBlock::ToolCall(ToolCall::new("c", tool, "{}"));
    Arc::new(Message::new(Role::Assistant, vec![call]))
}

fn result(tool: &str, content: Vec<ContentBlock>) -> ContentBlock {
    let (name, state) = (tool.to_owned(), ToolState::Success);
    ContentBlock::ToolResult(ToolResult { tool_call_id: "c".into(), name, content, state })
}

fn returns(tool: &str, text: &str) -> Arc<Message> {
    Arc::new(Message::new(Role::Tool, vec![result(tool, vec![ContentBlock::text(text)])]))
}

/// Messages as a text each, in brackets by role.
fn written(messages: &[Arc<Message>]) -> Vec<String> {
    let one = |message: &Arc<Message>| match message.tool_results().next() {
        Some(_) => message.tool_results().map(|result| format!("<{}>", result.text())).collect(),
        None if message.text().is_empty() => "call".to_owned(),
        None => message.text(),
    };
    messages.iter().map(one).collect()
}

#[test]
fn the_latest_messages_begin_where_a_result_has_its_call() {
    let check = |messages: &[Arc<Message>], bytes, expected: &[&str]| {
        let first = boundary(messages, bytes);
        assert_eq!(written(&messages[first..]), expected, "{bytes} bytes");
    };
    let all = [user("12345678"), calls("t"), returns("t", "1234567"), agent("1234"), user("12"), agent("1")];
    // A call has 3 bytes here, its result 8.
    check(&all, 100, &["12345678", "call", "<1234567>", "1234", "12", "1"]);
    check(&all, 25, &["call", "<1234567>", "1234", "12", "1"]);
    check(&all, 17, &["1234", "12", "1"]);
    check(&all, 7, &["1234", "12", "1"]);
    check(&all, 6, &["12", "1"]);
    check(&all, 1, &["1"]);
    check(&all, 0, &["1"]);
    // The last call and its results stay together, however long they are.
    check(&all[..3], 0, &["call", "<1234567>"]);
    check(&all[..3], 9, &["call", "<1234567>"]);
    check(&[], 9, &[]);
}

#[test]
fn a_turn_that_is_continued_works_on_the_request_before_it() {
    let check = |history: &[Arc<Message>], input: &[Arc<Message>], expected: &[&str]| {
        assert_eq!(written(&with_request(history, input.to_vec())), expected);
    };
    let reminder = || user("<system-reminder>\nGo on.\n</system-reminder>");
    let history = [user("first"), agent("yes"), user("second"), calls("t"), returns("t", "1"), reminder()];
    check(&history, &[user("third")], &["third"]);
    check(
        &history,
        &[user("third"), reminder()],
        &["third", "<system-reminder>\nGo on.\n</system-reminder>"],
    );
    check(&history, &[], &["second"]);
    // An answer that was cut, and what was said to an agent that works.
    check(&[&history[..3], &[agent("cut of")]].concat(), &[], &["second"]);
    check(&[&history[..5], &[user("rather")], &history[3..]].concat(), &[], &["second", "rather"]);
    check(&history, &[reminder()], &["second", "<system-reminder>\nGo on.\n</system-reminder>"]);
    let left = [text::summary("Ann"), text::retained("how to"), text::state(&["a task".into()])];
    check(&[&history[2..3], &left[..]].concat(), &[], &["second"]);
    check(&left, &[], &[]);
    check(&[], &[], &[]);
}

#[test]
fn results_are_shortened_in_the_middle() {
    let check = |message: &Arc<Message>, bytes: usize, expected: &str| {
        let once = with_short_results(slice::from_ref(message), bytes, |tool| tool == "load_skill");
        assert_eq!(written(&once), [expected]);
        let twice = with_short_results(&once, bytes, |tool| tool == "load_skill");
        assert_eq!(twice, once, "once is enough");
    };
    let long = "ä".repeat(60);
    check(&returns("read", "short"), 100, "<short>");
    let short = "<ääääääääää\n[… 90 bytes were removed to save space …]\näääää>";
    check(&returns("read", &long), 104, short);
    check(&returns("load_skill", &long), 104, &format!("<{long}>"));
    check(&user(&long), 104, &long);
    check(&agent(&long), 104, &long);
    let data = ContentBlock::Data {
        media_type: "image/png".into(),
        source: DataSource::Base64("AAAA".into()),
        opaque: mainstem_message::Opaque::new(),
    };
    let seen =
        Arc::new(Message::new(Role::Tool, vec![result("look", vec![ContentBlock::text("a cat"), data])]));
    check(&seen, 104, "<a cat[image/png was removed to save space]>");
}

#[test]
fn older_messages_are_summarized_except_what_lasts() {
    let check = |messages: &[Arc<Message>], bytes, notes: &str, summarized: &[&str], retained: &[&str]| {
        let older = older(messages, bytes, |tool| tool == "load_skill");
        assert_eq!(
            (older.notes.as_str(), &older.messages[..], &older.retained[..]),
            (
                notes,
                &summarized.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()[..],
                &retained.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()[..],
            )
        );
    };
    let said = [user("hi"), calls("t"), returns("t", "1"), agent("yes")];
    let rows = ["[user] hi\n", "[agent calls t] {}\n", "[result of t, success] 1\n", "[agent] yes\n"];
    check(&said, 9, "", &rows, &[]);
    let skill = [calls("load_skill"), returns("load_skill", "how to")];
    check(&skill, 9, "", &["[agent calls load_skill] {}\n"], &["how to"]);
    let both = ["[agent calls load_skill] {}\n", "[result of load_skill, success] how to\n"];
    check(&skill, 5, "", &both, &[]);
    // What an earlier compaction has left.
    let left = [text::summary("Ann likes tea."), text::retained("how to"), text::state(&["a task".into()])];
    check(&left, 9, "Ann likes tea.", &[], &["how to"]);
    check(&[&left[..], &skill[1..]].concat(), 99, "Ann likes tea.", &[], &["how to"]);
    check(&left, 5, "Ann likes tea.", &["[user] <retained>\nhow to\n</retained>\n"], &[]);
}

#[test]
fn a_text_is_cut_into_pieces_that_the_model_can_read() {
    let check = |texts: &[&str], bytes, expected: &[usize]| {
        let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
        let sizes: Vec<_> = pieces(&texts, bytes).iter().map(String::len).collect();
        assert_eq!(sizes, expected);
    };
    check(&[], 10, &[]);
    check(&["12345", "12345", "1"], 10, &[10, 1]);
    check(&["1", "12345", "12345"], 10, &[6, 5]);
    // Half a piece is the most of one message.
    let long = "x".repeat(1_000);
    check(&[&long, "1"], 400, &[pieces(slice::from_ref(&long), 400)[0].len() + 1]);
    assert!(pieces(&[long], 400)[0].len() <= 200);
}

#[test]
fn the_input_of_the_turn_stays() {
    let (asked, latest) = (user("Do it."), [calls("t"), returns("t", "1")]);
    let check = |notes: &str, latest: &[Arc<Message>], expected: &[&str]| {
        let new = replacement(notes, &["how to".into()], &["a task".into()], slice::from_ref(&asked), latest);
        let begin: Vec<_> =
            written(&new).iter().map(|text| text.lines().last().unwrap_or_default().to_owned()).collect();
        assert_eq!(begin, expected);
    };
    let (summary, retained, state) = ("</conversation-summary>", "</retained>", "</system-reminder>");
    check("n", &latest, &[summary, retained, state, "Do it.", "call", "<1>"]);
    check("", &latest, &[retained, state, "Do it.", "call", "<1>"]);
    let all = [slice::from_ref(&asked), &latest[..]].concat();
    check("n", &all, &[summary, retained, state, "Do it.", "call", "<1>"]);
}
