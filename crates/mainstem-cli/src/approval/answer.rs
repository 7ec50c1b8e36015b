//! What a typed line means as an answer. Pure.

use mainstem::{policy::Pattern, prelude::Decision};
use serde_json::Value;

use super::{always::covers, question::Question};

/// The answer to a question.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Decide(Decision),
    /// Yes, and to all calls that these patterns cover.
    Always(Vec<Pattern>),
    /// Show all of what is asked.
    View,
}

/// Reads an answer; `None` is the end of stdin.
///
/// # Errors
/// The line is not an answer; the text says what to type.
pub(super) fn answer(line: Option<&str>, question: &Question) -> Result<Answer, String> {
    let deny = |reason: &str| Ok(Answer::Decide(Decision::Deny(reason.to_owned())));
    let Some(line) = line else { return deny("there was no answer") };
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or_else(|| (line.trim(), ""));
    let rest = rest.trim();
    match (&*word.to_ascii_lowercase(), rest) {
        ("y" | "yes", "") => Ok(Answer::Decide(Decision::Allow)),
        ("n" | "no", "") => deny("declined by the person"),
        ("n" | "no", reason) => deny(reason),
        ("a" | "always", pattern) => always(pattern, question).map(Answer::Always),
        ("v" | "view", "") => Ok(Answer::View),
        _ => match serde_json::from_str(line) {
            Ok(arguments @ Value::Object(_)) => Ok(Answer::Decide(Decision::AllowWith(arguments))),
            Err(error) if line.trim_start().starts_with('{') => Err(format!("  not valid JSON: {error}")),
            _ => Err("  type y, n, n and a reason, a, v, or arguments in { }".to_owned()),
        },
    }
}

/// Returns the patterns of `a` or `a PATTERN`, which cover what is asked.
fn always(pattern: &str, question: &Question) -> Result<Vec<Pattern>, String> {
    question.check_always()?;
    let patterns = match pattern {
        "" => question.suggested(),
        pattern => vec![pattern.parse::<Pattern>().map_err(|error| format!("  {error}"))?],
    };
    let tool = question.calls.first().map_or("", |call| &*call.name);
    if patterns.is_empty() {
        return Err(format!(
            "  no pattern covers just this; write one, such as `a {tool}` for all its calls"
        ));
    }
    let is_covered = question.calls.iter().all(|call| patterns.iter().any(|pattern| covers(pattern, call)));
    is_covered
        .then_some(patterns)
        .ok_or_else(|| format!("  {pattern} does not cover this; `a {tool}` covers all calls of {tool}"))
}

#[cfg(test)]
mod tests {
    use mainstem::message::ToolCall;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_line_means() {
        let command = json!({ "command": "cargo test -q" });
        let calls = vec![ToolCall::new("1", "shell", command.to_string())];
        let question = Question::new("q".parse().unwrap(), "main", calls);
        let deny = |reason: &str| Ok(Answer::Decide(Decision::Deny(reason.to_owned())));
        let allow = || Ok(Answer::Decide(Decision::Allow));
        let always = |pattern: &str| Ok(Answer::Always(vec![pattern.parse().unwrap()]));
        for (line, expected) in [
            (Some("y"), allow()),
            (Some(" Yes "), allow()),
            (Some("n"), deny("declined by the person")),
            (Some("no  not today "), deny("not today")),
            (Some("v"), Ok(Answer::View)),
            (Some("a"), always("shell(command: cargo test -q)")),
            (Some("always"), always("shell(command: cargo test -q)")),
            (Some("a shell"), always("shell")),
            (Some("a shell(cargo *)"), always("shell(cargo *)")),
            (Some(r#"{"at":"b"}"#), Ok(Answer::Decide(Decision::AllowWith(json!({ "at": "b" }))))),
            (None, deny("there was no answer")),
        ] {
            assert_eq!(answer(line, &question), expected, "{line:?}");
        }
        for (line, expected) in [
            ("", "type y, n"),
            ("yes please", "type y, n"),
            ("[1]", "type y, n"),
            ("maybe", "type y, n"),
            ("{at: 1}", "not valid JSON: key must be a string at line 1 column 2"),
            ("a shell(", "column 7: expected \")\""),
            ("a shell(git *)", "shell(git *) does not cover this; `a shell` covers"),
        ] {
            let error = answer(Some(line), &question).unwrap_err();
            assert!(error.contains(expected), "{line:?}: {error}");
        }
    }

    #[test]
    fn an_answer_to_a_question_of_an_agent_is_not_for_all() {
        let check = |tool: &str, line: &str| {
            let question = Question::new("q".parse().unwrap(), "main", vec![ToolCall::new("1", tool, "{}")]);
            assert!(answer(Some(line), &question).is_err(), "{tool} {line}");
        };
        check("plan_exit", "a");
        check("plan_exit", "a *");
        check("request_input", "a");
        check("two*", "a");
    }
}
