//! Answers in, steps out.

use mainstem_message::{ContentBlock, DataSource, Opaque, Role};

use super::*;

fn at(calls: u32, empty: u32, summed_up: bool) -> Progress {
    Progress { calls, empty, summed_up }
}

fn show(step: Step) -> String {
    match step {
        Step::Ask => "ask".to_owned(),
        Step::Act(calls) => {
            format!("act {}", calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>().join(" "))
        }
        Step::GoOn => "go on".to_owned(),
        Step::Remind => "remind".to_owned(),
        Step::SumUp => "sum up".to_owned(),
        Step::Finish(outcome) => outcome.as_str().to_owned(),
        Step::Fail(error) => error.to_string(),
    }
}

fn text(text: &str) -> ContentBlock {
    ContentBlock::text(text)
}

fn call(id: &str) -> ContentBlock {
    ContentBlock::ToolCall(ToolCall::new(id, "f", "{}"))
}

fn image() -> ContentBlock {
    let (media_type, source) = ("image/png".to_owned(), DataSource::Base64("AA==".to_owned()));
    ContentBlock::Data { media_type, source, opaque: Opaque::new() }
}

#[test]
fn after_an_answer() {
    use StopReason::*;
    #[track_caller]
    fn check(progress: Progress, stop: StopReason, content: Vec<ContentBlock>, expected: &str) {
        let answer = Message::new(Role::Assistant, content);
        assert_eq!(show(after_answer(progress, &answer, &stop)), expected);
    }
    let first = at(1, 0, false);
    check(first, Stop, vec![text("done")], "success");
    check(first, Stop, vec![image()], "success");
    check(first, Length, vec![text("cut of")], "success");
    check(first, Refusal, vec![text(" no\n")], "the model refused to answer: no");
    check(first, Refusal, vec![], "the model refused to answer");
    check(first, Paused, vec![], "go on");
    check(first, Paused, vec![text("I search.")], "go on");
    check(first, Paused, vec![call("x")], "act x");
    check(first, Other("eos".to_owned()), vec![text("done")], "success");
    // Calls are run, whatever else the answer has and whyever it stopped.
    check(first, ToolCalls, vec![call("x")], "act x");
    check(first, Stop, vec![text("let me see"), call("x"), call("y")], "act x y");
    check(first, Length, vec![call("x")], "act x");
    check(at(9, 2, false), ToolCalls, vec![call("x")], "act x");
    // Empty, blank and thinking-only answers do not count.
    check(first, Stop, vec![], "remind");
    check(first, Stop, vec![text(" \n\t")], "remind");
    check(first, Stop, vec![ContentBlock::thinking("hm")], "remind");
    check(at(2, 1, false), Stop, vec![], "remind");
    check(at(3, 2, false), Stop, vec![], "the model gave an empty answer");
    check(first, ContentFilter, vec![], "the service filtered the answer");
    check(first, ContentFilter, vec![ContentBlock::thinking("hm")], "the service filtered the answer");
    check(first, ContentFilter, vec![text("what is left")], "the service filtered the answer");
    // The call without tools is the last.
    check(at(3, 0, true), Stop, vec![text("what I have")], "max_iterations");
    check(at(3, 0, true), ToolCalls, vec![call("x")], "max_iterations");
    check(at(3, 2, true), Stop, vec![], "max_iterations");
}

#[test]
fn before_a_further_call() {
    #[track_caller]
    fn check(progress: Progress, max_iterations: u32, expected: &str) {
        assert_eq!(show(before_call(progress, max_iterations)), expected);
    }
    check(at(0, 0, false), 1, "ask");
    check(at(1, 0, false), 2, "ask");
    check(at(2, 0, false), 2, "sum up");
    check(at(3, 0, false), 2, "sum up");
    check(at(2, 0, true), 2, "ask");
}
