//! The person at the terminal: what is typed, which questions wait, what answers them.

use std::{
    collections::VecDeque,
    future::pending,
    io::{self, BufRead},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use mainstem::{
    message::{ConfirmId, ToolCall},
    prelude::Decision,
};
use mainstem_event::{AgentEvent, EventKind};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::progress::Progress;

/// The questions of a run, one after another.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    waiting: VecDeque<Question>,
    lines: Option<mpsc::Receiver<Line>>,
    /// The number of the question that was put last.
    put: Arc<AtomicU64>,
    /// Nothing more will be typed.
    is_over: bool,
}

#[derive(Debug)]
struct Question {
    id: ConfirmId,
    text: String,
    is_put: bool,
}

/// What was typed, and below which question.
#[derive(Debug, PartialEq)]
pub(crate) struct Line {
    text: String,
    below: u64,
}

impl Line {
    /// What was typed.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl Questions {
    /// Takes in what happened.
    pub(crate) fn event(&mut self, event: &AgentEvent) {
        match &event.kind {
            EventKind::RequireUserConfirm { confirm_id, tool_calls } => {
                let calls = tool_calls.iter().map(|call| wants(event.agent_label(), call));
                let text = calls.collect::<Vec<_>>().join("\n");
                self.waiting.push_back(Question { id: confirm_id.clone(), text, is_put: false });
            }
            EventKind::UserConfirmResult { confirm_id, .. } => {
                self.waiting.retain(|question| question.id != *confirm_id);
            }
            _ => {}
        }
    }

    /// The question that is to be put now, if there is a new one. What was typed before it does not
    /// answer it.
    fn put(&mut self) -> Option<String> {
        let question = self.waiting.front_mut().filter(|question| !question.is_put)?;
        question.is_put = true;
        forget_typed();
        self.put.fetch_add(1, Ordering::AcqRel);
        Some(format!("{}\n{HOW}", question.text))
    }

    /// Puts the question whose turn it is, if it is a new one.
    pub(crate) fn ask(&mut self, progress: &mut dyn Progress) {
        if let Some(question) = self.put() {
            progress.ask(&question);
        }
    }

    /// Takes in a line: the question that it answers, and how. If it is no answer, the person is
    /// told how to.
    pub(crate) fn heard(
        &mut self,
        line: Option<Line>,
        progress: &mut dyn Progress,
    ) -> Option<(ConfirmId, Decision)> {
        let answered = self.answer(line).unwrap_or_else(|how| {
            progress.ask(how);
            None
        });
        self.ask(progress);
        answered
    }

    /// Whether a question is open.
    pub(crate) fn is_open(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// What is typed next; `None` is the end of stdin.
    pub(crate) async fn line(&mut self) -> Option<Line> {
        if !self.is_open() {
            return pending().await;
        }
        self.typed().await
    }

    /// The same whether or not a question is open.
    pub(crate) async fn typed(&mut self) -> Option<Line> {
        if self.is_over {
            return None;
        }
        // The thread waits for a line that may never come; it ends with the process.
        self.lines.get_or_insert_with(|| read(self.put.clone())).recv().await
    }

    /// What a line means for the open question, which is answered by that; an error is what to say
    /// to the person.
    fn answer(&mut self, line: Option<Line>) -> Result<Option<(ConfirmId, Decision)>, &'static str> {
        self.is_over |= line.is_none();
        let is_old = |line: &Line| line.below != self.put.load(Ordering::Acquire);
        if line.as_ref().is_some_and(is_old) {
            return Ok(None);
        }
        let decision = decision(line.as_ref().map(|line| &*line.text)).ok_or(HOW)?;
        Ok(self.waiting.pop_front().map(|question| (question.id, decision)))
    }
}

fn read(put: Arc<AtomicU64>) -> mpsc::Receiver<Line> {
    let (sender, lines) = mpsc::channel(64);
    // If the thread can't be started, the closed channel means the same as the end of stdin: no
    // answer.
    let _ = thread::Builder::new().name("answers".to_owned()).spawn(move || {
        let mut lines = io::stdin().lock();
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            // Invalid UTF-8 is replaced, and reading continues.
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
            line.clear();
            if sender.blocking_send(Line { text, below: put.load(Ordering::Acquire) }).is_err() {
                return;
            }
        }
    });
    lines
}

/// Discards the terminal's unread input.
pub(crate) fn forget_typed() {
    #[cfg(unix)]
    {
        use rustix::termios::{QueueSelector, tcflush};
        // Of no use where stdin is no terminal, nor harm.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }
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
    use mainstem_event::{EventSink, Origin, SessionLog};
    use serde_json::json;

    use super::*;

    /// Two agents ask.
    fn asked() -> Questions {
        let mut questions = Questions::default();
        let log = SessionLog::new("s".into());
        let (sink, mut cursor) =
            (EventSink::root(log.clone(), Origin::session("s".into(), None)), log.subscribe_from(1));
        for id in ["one", "two"] {
            let tool_calls = vec![ToolCall::new("call-1", "poke", "{}")];
            let kind = EventKind::RequireUserConfirm { confirm_id: ConfirmId::new(id), tool_calls };
            sink.emit(kind);
            questions.event(&cursor.try_next().unwrap());
        }
        questions
    }

    fn typed(text: &str, below: u64) -> Option<Line> {
        Some(Line { text: text.to_owned(), below })
    }

    fn given(id: &str, decision: Decision) -> Result<Option<(ConfirmId, Decision)>, &'static str> {
        Ok(Some((ConfirmId::new(id), decision)))
    }

    #[test]
    fn each_question_has_its_own_answer() {
        let mut questions = asked();
        assert!(questions.put().is_some());
        assert_eq!(questions.put(), None, "it is put once");
        assert_eq!(questions.answer(typed("what?", 1)), Err(HOW));
        assert_eq!(questions.answer(typed("y", 1)), given("one", Decision::Allow));
        assert!(questions.put().is_some());
        assert_eq!(questions.answer(typed("y", 1)), Ok(None), "typed before the second was put");
        assert_eq!(questions.answer(typed("y", 2)), given("two", Decision::Allow));
        assert!(!questions.is_open());
    }

    #[tokio::test]
    async fn after_the_end_of_stdin_the_answer_is_no() {
        let mut questions = asked();
        let nobody = || Decision::Deny("nobody answered".to_owned());
        questions.put();
        assert_eq!(questions.answer(None), given("one", nobody()));
        questions.put();
        let line = questions.line().await;
        assert_eq!(questions.answer(line), given("two", nobody()));
        assert!(!questions.is_open());
    }

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
