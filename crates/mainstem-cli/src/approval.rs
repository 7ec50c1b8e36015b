//! The person at the terminal: lines that are typed, open approvals, and their answers.

use std::{
    collections::VecDeque,
    future::pending,
    io::{self, BufRead},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc as requests,
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

/// The approvals of a run, one after another.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    waiting: VecDeque<Pending>,
    reader: Option<Reader>,
    /// The number of the question that was shown last.
    put: Arc<AtomicU64>,
    /// Whether stdin has ended.
    is_over: bool,
}

#[derive(Debug)]
struct Pending {
    id: ConfirmId,
    text: String,
    is_put: bool,
}

/// Reads stdin on a separate thread, each line when it is needed: between two lines, an editor may
/// read it.
#[derive(Debug)]
struct Reader {
    requests: requests::Sender<()>,
    lines: mpsc::Receiver<Line>,
    is_asked: bool,
}

/// A line that was typed, and the question above it.
#[derive(Debug, PartialEq)]
pub(crate) struct Line {
    text: String,
    below: u64,
}

impl Line {
    /// Returns the line.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl Approvals {
    /// Applies an event.
    pub(crate) fn event(&mut self, event: &AgentEvent) {
        match &event.kind {
            EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } => {
                let calls = tool_calls.iter().map(|call| wants(event.agent_label(), call));
                let text = calls.collect::<Vec<_>>().join("\n");
                self.waiting.push_back(Pending { id: confirm_id.clone(), text, is_put: false });
            }
            EventKind::UserConfirmResult { confirm_id, .. } => {
                self.waiting.retain(|question| question.id != *confirm_id);
            }
            _ => {}
        }
    }

    /// Returns the question to show now, if it is a new one. Lines that were typed before do not
    /// answer it.
    fn put(&mut self) -> Option<String> {
        let question = self.waiting.front_mut().filter(|question| !question.is_put)?;
        question.is_put = true;
        discard_typed();
        self.put.fetch_add(1, Ordering::AcqRel);
        Some(format!("{}\n{HOW}", question.text))
    }

    /// Shows the next question, if it is a new one.
    pub(crate) fn ask(&mut self, progress: &mut dyn Progress) {
        if let Some(question) = self.put() {
            progress.ask(&question);
        }
    }

    /// Takes a line, and returns the question that it answers and the decision. If the line is not
    /// an answer, shows how to answer.
    pub(crate) fn answer_with(
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

    /// Returns `true` if a question is open.
    pub(crate) fn is_open(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the next line that is typed; `None` at the end of stdin.
    pub(crate) async fn line(&mut self) -> Option<Line> {
        if !self.is_open() {
            return pending().await;
        }
        self.typed().await
    }

    /// Returns the next line, also while a question is open.
    pub(crate) async fn typed(&mut self) -> Option<Line> {
        if self.is_over {
            return None;
        }
        self.reader.get_or_insert_with(|| Reader::start(self.put.clone())).line().await
    }

    /// Returns `true` if the thread still waits for a line although the caller has stopped waiting.
    /// The thread gets the next line that is typed.
    pub(crate) fn is_reading(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.is_asked)
    }

    /// Returns the answer to the open question; the error is the text to show to the person.
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

impl Reader {
    fn start(put: Arc<AtomicU64>) -> Self {
        let (requests, asked) = requests::channel();
        let (sender, lines) = mpsc::channel(1);
        // If the thread can't be started, the closed channel has the effect of the end of stdin.
        // It may wait for a line until the process ends.
        let _ = thread::Builder::new().name("answers".to_owned()).spawn(move || {
            let mut line = Vec::new();
            while asked.recv().is_ok()
                && io::stdin().lock().read_until(b'\n', &mut line).is_ok_and(|read| read > 0)
            {
                // Invalid UTF-8 is replaced, and reading continues.
                let text = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
                line.clear();
                if sender.blocking_send(Line { text, below: put.load(Ordering::Acquire) }).is_err() {
                    return;
                }
            }
        });
        Self { requests, lines, is_asked: false }
    }

    /// Returns the next line; `None` at the end of stdin. If the future is dropped, the next call
    /// returns the line.
    async fn line(&mut self) -> Option<Line> {
        if !self.is_asked {
            self.is_asked = self.requests.send(()).is_ok();
        }
        let line = self.lines.recv().await;
        self.is_asked = false;
        line
    }
}

/// Discards the terminal's unread input.
pub(crate) fn discard_typed() {
    #[cfg(unix)]
    {
        use rustix::termios::{QueueSelector, tcflush};
        // This has no effect if stdin is not a terminal.
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

/// Returns the decision of a line; `None` is the end of stdin.
fn decision(line: Option<&str>) -> Option<Decision> {
    let Some(line) = line else { return Some(Decision::Deny("there was no answer".to_owned())) };
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or_else(|| (line.trim(), ""));
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" if rest.is_empty() => Some(Decision::Allow),
        "n" | "no" if rest.trim().is_empty() => Some(Decision::Deny("declined by the person".to_owned())),
        "n" | "no" => Some(Decision::Deny(rest.trim().to_owned())),
        _ => serde_json::from_str(line).ok().filter(Value::is_object).map(Decision::AllowWith),
    }
}

#[cfg(test)]
mod tests {
    use mainstem_event::{EventSink, Origin, SessionLog};
    use serde_json::json;

    use super::*;

    /// The events of two agents that ask.
    fn asked() -> Approvals {
        let mut approvals = Approvals::default();
        let log = SessionLog::new("s".parse().unwrap());
        let (sink, mut cursor) = (
            EventSink::root(log.clone(), Origin::session("s".parse().unwrap(), None)),
            log.subscribe_from(1),
        );
        for id in ["one", "two"] {
            let tool_calls = vec![ToolCall::new("call-1", "poke", "{}")];
            let kind = EventKind::require_user_confirm(ConfirmId::try_from(id).unwrap(), tool_calls);
            sink.emit(kind);
            approvals.event(&cursor.try_next().unwrap());
        }
        approvals
    }

    fn typed(text: &str, below: u64) -> Option<Line> {
        Some(Line { text: text.to_owned(), below })
    }

    fn given(id: &str, decision: Decision) -> Result<Option<(ConfirmId, Decision)>, &'static str> {
        Ok(Some((ConfirmId::try_from(id).unwrap(), decision)))
    }

    #[test]
    fn each_question_has_its_own_answer() {
        let mut approvals = asked();
        assert!(approvals.put().is_some());
        assert_eq!(approvals.put(), None, "it is put once");
        assert_eq!(approvals.answer(typed("what?", 1)), Err(HOW));
        assert_eq!(approvals.answer(typed("y", 1)), given("one", Decision::Allow));
        assert!(approvals.put().is_some());
        assert_eq!(approvals.answer(typed("y", 1)), Ok(None), "typed before the second was put");
        assert_eq!(approvals.answer(typed("y", 2)), given("two", Decision::Allow));
        assert!(!approvals.is_open());
    }

    #[tokio::test]
    async fn after_the_end_of_stdin_the_answer_is_no() {
        let mut approvals = asked();
        let no_answer = || Decision::Deny("there was no answer".to_owned());
        approvals.put();
        assert_eq!(approvals.answer(None), given("one", no_answer()));
        approvals.put();
        let line = approvals.line().await;
        assert_eq!(approvals.answer(line), given("two", no_answer()));
        assert!(!approvals.is_open());
    }

    #[test]
    fn what_a_line_means() {
        let deny = |reason: &str| Some(Decision::Deny(reason.to_owned()));
        for (line, expected) in [
            (Some("y"), Some(Decision::Allow)),
            (Some(" Yes "), Some(Decision::Allow)),
            (Some("n"), deny("declined by the person")),
            (Some("no  not today "), deny("not today")),
            (Some(r#"{"at":"b"}"#), Some(Decision::AllowWith(json!({ "at": "b" })))),
            (Some(""), None),
            (Some("yes please"), None),
            (Some("[1]"), None),
            (Some("maybe"), None),
            (None, deny("there was no answer")),
        ] {
            assert_eq!(decision(line), expected, "{line:?}");
        }
    }
}
