//! Runs and sessions as an API shows them. Pure.

use mainstem_api::{RunState, RunView, SessionState, SessionView};
use mainstem_event::Timestamp;
use mainstem_journal::SessionSummary;
use mainstem_message::{Failure, Message, RunId, SessionId};
use mainstem_react::RunOutcome;

use crate::{RunEnd, RunHandle, RunRecord, RunStatus, Session};

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
        let begun = begun(&self.id, session, self.first, self.began_at);
        ended(RunView { resumes: self.settings.resumes.clone(), ..begun }, self.end.clone())
    }
}

impl RunHandle {
    /// Returns the run as an API shows it.
    pub fn view(&self) -> RunView {
        let (session, status) = (self.session(), self.status());
        let record = session.runs().into_iter().rfind(|known| known.id == *self.id());
        // A queued run learns its first event when it begins, or never does.
        let queued = || {
            let begun = begun(self.id(), session.id(), self.first(), self.requested_at());
            RunView { resumes: self.resumes().cloned(), ..begun }
        };
        let begun = record.map_or_else(queued, |record| RunRecord { end: None, ..record }.view(session.id()));
        ended(RunView { status: (&status).into(), ..begun }, status.outcome().map(RunEnd::from))
    }
}

/// A run that has not ended.
fn begun(id: &RunId, session: &SessionId, first_seq: u64, created_at: Timestamp) -> RunView {
    RunView {
        id: id.clone(),
        session_id: session.clone(),
        status: RunState::Running,
        first_seq,
        created_at,
        resumes: None,
        reply: None,
        message: None,
        error: None,
        usage: None,
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

/// Returns an open session as an API shows it. A run is active until its end is recorded.
pub fn open(session: &Session) -> SessionView {
    let (created_at, first_seq) = (session.created_at(), session.first_seq());
    let (log, runs) = (session.log(), session.runs());
    let is_recorded = |seq: u64| log.failure().is_some() || log.committed().is_none_or(|last| last >= seq);
    let unrecorded = || runs.iter().rfind(|run| !run.never_began && !is_recorded(run.end_seq));
    let active = session.active().map(|run| run.id().clone());
    let active = active.or_else(|| Some(unrecorded()?.id.clone()));
    SessionView {
        id: session.id().clone(),
        state: if active.is_some() { SessionState::Running } else { SessionState::Idle },
        created_at,
        first_seq,
        last_seq: log.committed().unwrap_or_else(|| log.last_seq()),
        updated_at: session.fleet().at.max(created_at),
        last_run_at: runs.last().map_or(created_at, |run| run.began_at),
        active_run: active,
        queued_runs: session.queued().iter().map(|run| run.id().clone()).collect(),
        runs: runs.len() as u64,
        damage: None,
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
        last_run_at: summary.place.at,
        active_run: summary.unfinished.clone(),
        queued_runs: Vec::new(),
        runs: summary.runs,
        damage: summary.damage.clone(),
    }
}
