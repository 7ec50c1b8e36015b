//! The text by which a parent learns of its child: `key: value` lines, then the body.

use std::sync::Arc;

use mainstem_event::{EventSource, Outcome, SendMode};
use mainstem_message::{AgentKey, ContentBlock, Failure, Message, Role, TaskId, ToolState};
use mainstem_react::RunOutcome;
use mainstem_task::{TaskEnd, TaskError};
use mainstem_tool::ToolOutput;

use crate::spawn::{unfinished::Unfinished, wait_time::LONGEST};

/// How a child's turn ended, or that it goes on in the background.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    head: String,
    body: String,
    state: ToolState,
    /// Whether the child failed with work that it can go on with.
    can_go_on: bool,
}

/// How a child became a background task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handover {
    /// At once.
    Accepted,
    /// Its call's time was over.
    Promoted,
}

impl Report {
    /// Creates the report of a turn with these messages.
    pub(crate) fn new(source: &EventSource, outcome: &RunOutcome, messages: &[Arc<Message>]) -> Self {
        let error = outcome.error.as_ref().map(Failure::from);
        let report = Self::of(source, outcome.outcome, outcome.answer.as_deref(), error.as_ref());
        report.with_unfinished(outcome.outcome, messages)
    }

    /// Adds what a turn has come to that failed, and how its child goes on.
    fn with_unfinished(mut self, outcome: Outcome, messages: &[Arc<Message>]) -> Self {
        let has_failed = self.state == ToolState::Error && outcome != Outcome::Cancelled;
        if let Some(unfinished) = Unfinished::of(messages).filter(|_| has_failed) {
            self.body.push_str(&format!("\n{unfinished}"));
            self.can_go_on = true;
        }
        self
    }

    /// Leaves out how to send to a child that can't be sent to.
    pub(crate) fn without_sending(mut self) -> Self {
        self.can_go_on = false;
        self
    }

    fn of(source: &EventSource, outcome: Outcome, answer: Option<&Message>, error: Option<&Failure>) -> Self {
        let is_empty = outcome == Outcome::MaxIterations && says_nothing(answer);
        let ok = matches!(outcome, Outcome::Success | Outcome::MaxIterations) && !is_empty;
        let body = match (answer, error) {
            _ if is_empty => format!("error: {NOTHING_SAID}"),
            (Some(answer), _) => format!("reply:\n{}", answer.text()),
            (None, Some(error)) => format!("error: {error}"),
            (None, None) => "reply:\n".to_owned(),
        };
        let status = if outcome == Outcome::Success { "completed" } else { outcome.as_str() };
        let state = if ok { ToolState::Success } else { ToolState::Error };
        Self { head: head(source), body: format!("status: {status}\n{body}"), state, can_go_on: false }
    }

    /// Returns the report of a turn that ended in an earlier process, or with it.
    pub(crate) fn recorded(
        source: &EventSource,
        outcome: Outcome,
        messages: &[Arc<Message>],
        error: Option<&Failure>,
    ) -> Self {
        let answer = messages.iter().rfind(|message| message.role == Role::Assistant).map(Arc::as_ref);
        match error {
            Some(error) if error.code == RESTARTED => {
                let body = format!("status: interrupted\nerror: {error}\n{CUT}");
                Self { head: head(source), body, state: ToolState::Interrupted, can_go_on: false }
            }
            _ => {
                let answered = matches!(outcome, Outcome::Success | Outcome::MaxIterations);
                let report = Self::of(source, outcome, answer.filter(|_| answered), error);
                report.with_unfinished(outcome, messages)
            }
        }
    }

    /// Reports that the child goes on in the background; `has` says which tools the caller has.
    pub(crate) fn handed_over(
        source: &EventSource,
        task: &TaskId,
        how: Handover,
        has: impl Fn(&str) -> bool,
    ) -> Self {
        let (status, note) = match how {
            Handover::Accepted => ("accepted", ACCEPTED),
            Handover::Promoted => ("promoted", PROMOTED),
        };
        let uses: Vec<_> = USES.iter().filter(|(tool, _)| has(tool)).collect();
        let uses: Vec<_> = uses.iter().map(|(tool, what)| format!("{tool} {what}")).collect();
        let uses = if uses.is_empty() { String::new() } else { format!(" {}.", uses.join(", ")) };
        let body = format!("status: {status}\ntask_id: {task}\n{note}{uses}");
        Self { head: head(source), body, state: ToolState::Running, can_go_on: false }
    }

    /// Reports the end of a child that could not become a background task.
    pub(crate) fn not_promoted(source: &EventSource, end: TaskEnd, why: &TaskError) -> Self {
        let (status, body, state) = match end {
            TaskEnd::Completed(reply) => ("completed", format!("reply:\n{reply}"), ToolState::Success),
            TaskEnd::Failed { error, partial } => {
                let partial = partial.map_or_else(String::new, |partial| format!("\n{partial}"));
                ("error", format!("error: {error}{partial}"), ToolState::Error)
            }
            TaskEnd::Cancelled { by } => ("cancelled", format!("error: cancelled by {by}"), ToolState::Error),
        };
        let note = format!(
            "note: it took longer than asked for, and could not go on in the background: {}",
            why.without_paths()
        );
        let body = format!("status: {status}\n{note}\n{body}");
        Self { head: head(source), body, state, can_go_on: false }
    }

    /// Reports that the message was handed to a running child.
    pub(crate) fn sent(key: &AgentKey, mode: SendMode) -> Self {
        let when = match mode {
            SendMode::Interrupt => "It stops what it is saying and reads the message at once",
            _ => "It reads the message before its next step",
        };
        let body =
            format!("status: sent\n{when}; its reply goes to the call that waits for its present turn.");
        Self { head: format!("agent_key: {key}"), body, state: ToolState::Success, can_go_on: false }
    }

    /// Adds that the wait was shorter than the model asked, if it was.
    pub(crate) fn clamped(self, is_clamped: bool) -> Self {
        let most = format!("timeout_seconds is {} at most", LONGEST.as_secs());
        self.noted(is_clamped.then_some(&most))
    }

    /// Adds a note about the call.
    pub(crate) fn noted(mut self, note: Option<&str>) -> Self {
        note.into_iter().for_each(|note| self.head.push_str(&format!("\nnote: {note}")));
        self
    }

    pub(crate) fn state(&self) -> ToolState {
        self.state
    }

    pub(crate) fn text(&self) -> String {
        let Self { head, body, .. } = self;
        if self.can_go_on { format!("{head}\n{body}\n{GO_ON}") } else { format!("{head}\n{body}") }
    }
}

/// Returns `true` if the answer has neither text nor data.
pub(crate) fn says_nothing(answer: Option<&Message>) -> bool {
    answer.is_none_or(|answer| answer.text().trim().is_empty() && !answer.content.iter().any(is_data))
}

fn is_data(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Data { .. })
}

/// The error of an agent that ended at its limit of iterations without an answer.
pub(crate) const NOTHING_SAID: &str =
    "it reached its limit of model calls and gave no answer; give it a smaller task, or more `steps`";

fn head(source: &EventSource) -> String {
    let EventSource { agent_key, agent_id, session_id, .. } = source;
    format!("agent_key: {agent_key}\nagent_id: {agent_id}\nsession_id: {session_id}")
}

/// The error code of invocations and tasks that were running when their process ended.
pub const RESTARTED: &str = "restarted";

/// How a child that failed goes on.
pub(crate) const GO_ON: &str = "note: all of this stays in its conversation: agent_send tells it to go on where it stopped, or in another way";

const CUT: &str =
    "It may have done part of its work. It still knows its conversation: agent_send tells it to go on.";

const ACCEPTED: &str =
    "It works in the background. You are told when it is done; go on with something else, or answer.";

const PROMOTED: &str = "It takes longer than you wanted to wait and goes on in the background, with all it has done so far. Do not start \
it again. You are told when it is done.";

/// What tools do with a background task.
const USES: [(&str, &str); 3] =
    [("task_wait", "waits for it"), ("task_output", "shows how it stands"), ("task_cancel", "stops it")];

impl From<Report> for ToolOutput {
    /// The state tells whether the child failed; the text is not parsed for that.
    fn from(report: Report) -> Self {
        Self::from(report.text()).with_state(report.state)
    }
}
