//! Runs and sessions as an API shows them. Pure.

use mainstem_api::{RunState, RunView, SessionState, SessionView};
use mainstem_journal::SessionSummary;
use mainstem_message::{Failure, Message, SessionId};
use mainstem_react::RunOutcome;

use crate::{RunEnd, RunHandle, RunRecord, RunStatus};

impl From<&RunStatus> for RunState {
    fn from(status: &RunStatus) -> Self {
        match status {
            RunStatus::Queued => Self::Queued,
            RunStatus::Running => Self::Running,
            RunStatus::Ended(outcome) => outcome.outcome.into(),
            RunStatus::Dropped => Self::Dropped,
        }
    }
}

impl From<&RunOutcome> for RunEnd {
    fn from(outcome: &RunOutcome) -> Self {
        let error = outcome.error.as_ref().map(Failure::from);
        Self::new(outcome.outcome, error, outcome.answer.clone(), outcome.usage)
    }
}

impl RunRecord {
    /// Returns the run as an API shows it. A run without an end is shown as running.
    pub fn view(&self, session: &SessionId) -> RunView {
        let view = RunView {
            id: self.id.clone(),
            session_id: session.clone(),
            status: RunState::Running,
            first_seq: self.first,
            created_at: self.began_at,
            reply: None,
            message: None,
            error: None,
            usage: None,
        };
        ended(view, self.end.clone())
    }
}

impl RunHandle {
    /// Returns the run as an API shows it.
    pub fn view(&self) -> RunView {
        let session = self.session();
        let record = session.runs().into_iter().rfind(|known| known.id == *self.id());
        let status = self.status();
        let view = RunView {
            id: self.id().clone(),
            session_id: session.id().clone(),
            status: (&status).into(),
            first_seq: self.first(),
            created_at: record.map_or_else(|| self.requested_at(), |record| record.began_at),
            reply: None,
            message: None,
            error: None,
            usage: None,
        };
        ended(view, status.outcome().map(RunEnd::from))
    }
}

fn ended(view: RunView, end: Option<RunEnd>) -> RunView {
    let Some(end) = end else { return view };
    let answer = end.answer.as_deref();
    RunView {
        status: end.outcome.into(),
        reply: answer.map(Message::text),
        message: answer.cloned(),
        error: end.error,
        usage: Some(end.usage),
        ..view
    }
}

/// Returns a recorded session as an API shows it; `is_open` says whether a process has it open for
/// writing.
pub fn recorded(summary: &SessionSummary, is_open: bool) -> SessionView {
    let state = match &summary.unfinished {
        _ if summary.damage.is_some() => SessionState::Damaged,
        None => SessionState::Idle,
        Some(_) if is_open => SessionState::Running,
        Some(_) => SessionState::Unfinished,
    };
    SessionView {
        id: summary.id.clone(),
        state,
        created_at: summary.created_at,
        first_seq: summary.first,
        last_seq: summary.last,
        updated_at: summary.updated_at,
        active_run: summary.unfinished.clone(),
        queued_runs: Vec::new(),
        runs: summary.runs,
        damage: summary.damage.clone(),
    }
}
