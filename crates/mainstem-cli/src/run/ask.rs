//! Questions to the person at the terminal: which wait, what is typed, what that means.

use std::{collections::VecDeque, future::pending, io, thread};

use mainstem::{
    message::{ConfirmId, ToolCall},
    prelude::Decision,
};
use mainstem_event::{AgentEvent, EventKind};
use serde_json::Value;
use tokio::sync::mpsc;

/// The questions of a run, one after another.
#[derive(Debug, Default)]
pub(super) struct Questions {
    waiting: VecDeque<Question>,
    lines: Option<mpsc::Receiver<String>>,
}

#[derive(Debug)]
struct Question {
    id: ConfirmId,
    text: String,
}

impl Questions {
    /// Takes in what happened; the question that is to be put now, if there is a new one.
    pub(super) fn event(&mut self, event: &AgentEvent) -> Option<String> {
        let asked = self.waiting.front().map(|question| question.id.clone());
        match &event.kind {
            EventKind::RequireUserConfirm { confirm_id, tool_calls } => {
                let calls = tool_calls.iter().map(|call| wants(event.agent_label(), call));
                let text = calls.collect::<Vec<_>>().join("\n");
                self.waiting.push_back(Question { id: confirm_id.clone(), text });
            }
            EventKind::UserConfirmResult { confirm_id, .. } => {
                self.waiting.retain(|question| question.id != *confirm_id);
            }
            _ => return None,
        }
        let now = self.waiting.front().filter(|question| asked.as_ref() != Some(&question.id))?;
        Some(format!("{}\n{HOW}", now.text))
    }

    /// Whether a question is open.
    pub(super) fn is_open(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// What is typed next.
    pub(super) async fn line(&mut self) -> Option<String> {
        if !self.is_open() {
            return pending().await;
        }
        // The thread waits for a line that may never come; it ends with the process.
        self.lines.get_or_insert_with(read).recv().await
    }

    /// The answer to the open question that a line means, or what to say to the person.
    pub(super) fn answer(&self, line: Option<&str>) -> Result<(ConfirmId, Decision), &'static str> {
        let id = self.waiting.front().map(|question| question.id.clone()).ok_or("")?;
        Ok((id, decision(line).ok_or(HOW)?))
    }
}

fn read() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    // Without a thread nobody can answer, which is what the end of stdin means, too.
    let _ = thread::Builder::new().name("answers".to_owned()).spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

const HOW: &str = "  y: yes · n [reason]: no · {…}: yes, with these arguments";

fn wants(agent: &str, call: &ToolCall) -> String {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
    match arguments.get("plan").and_then(Value::as_str).filter(|_| call.name == "plan_exit") {
        Some(plan) => format!("{agent} has a plan:\n{plan}"),
        None => format!("{agent} wants to run {} {}", call.name, call.arguments),
    }
}

/// What a line means; `None` is the end of stdin.
fn decision(line: Option<&str>) -> Option<Decision> {
    let Some(line) = line else { return Some(Decision::Deny("nobody answered".to_owned())) };
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or_else(|| (line.trim(), ""));
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" if rest.is_empty() => Some(Decision::Allow),
        "n" | "no" if rest.trim().is_empty() => Some(Decision::Deny("the person said no".to_owned())),
        "n" | "no" => Some(Decision::Deny(rest.trim().to_owned())),
        _ => serde_json::from_str(line).ok().filter(Value::is_object).map(Decision::AllowWith),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_line_means() {
        let deny = |reason: &str| Some(Decision::Deny(reason.to_owned()));
        for (line, expected) in [
            (Some("y"), Some(Decision::Allow)),
            (Some(" Yes "), Some(Decision::Allow)),
            (Some("n"), deny("the person said no")),
            (Some("no  not today "), deny("not today")),
            (Some(r#"{"at":"b"}"#), Some(Decision::AllowWith(json!({ "at": "b" })))),
            (Some(""), None),
            (Some("yes please"), None),
            (Some("[1]"), None),
            (Some("maybe"), None),
            (None, deny("nobody answered")),
        ] {
            assert_eq!(decision(line), expected, "{line:?}");
        }
    }
}
