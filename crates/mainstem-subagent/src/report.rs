//! What a parent reads of its child: `key: value` lines, then the body.

use mainstem_event::{EventSource, Outcome};
use mainstem_message::Failure;
use mainstem_react::RunOutcome;
use mainstem_tool::ToolOutput;

/// How a child's turn ended.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    head: String,
    body: String,
    ok: bool,
}

impl Report {
    pub(crate) fn new(source: &EventSource, outcome: RunOutcome) -> Self {
        let EventSource { agent_key, agent_id, session_id, .. } = source;
        let head = format!("agent_key: {agent_key}\nagent_id: {agent_id}\nsession_id: {session_id}");
        let ok = matches!(outcome.outcome, Outcome::Success | Outcome::MaxIterations);
        let body = match (&outcome.answer, &outcome.error) {
            (Some(answer), _) => format!("reply:\n{}", answer.text()),
            (None, Some(error)) => format!("error: {}", Failure::from(error)),
            (None, None) => "reply:\n".to_owned(),
        };
        let status = if outcome.outcome == Outcome::Success { "completed" } else { outcome.outcome.as_str() };
        Self { head, body: format!("status: {status}\n{body}"), ok }
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.ok
    }

    pub(crate) fn text(&self) -> String {
        format!("{}\n{}", self.head, self.body)
    }
}

impl From<Report> for ToolOutput {
    /// The state says whether the child failed; no text is ever read for it.
    fn from(report: Report) -> Self {
        if report.ok { Self::from(report.text()) } else { Self::failed(report.text()) }
    }
}
