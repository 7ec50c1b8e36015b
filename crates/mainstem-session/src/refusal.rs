//! Errors of sessions as problems of the API.

use mainstem_api::{Code, Problem};
use mainstem_journal::JournalError;
use mainstem_message::Failure;
use mainstem_subagent::{AnswerError, SpawnError};
use mainstem_task::TaskError;

use crate::{DeleteError, NothingToResume, RunActive};

impl From<RunActive> for Problem {
    fn from(error: RunActive) -> Self {
        let problem = Self::new(Code::RunActive, error.to_string());
        match error.run {
            Some(run) => problem.with_member("run_id", run.as_str()),
            None => problem,
        }
    }
}

impl From<NothingToResume> for Problem {
    fn from(error: NothingToResume) -> Self {
        let code = match error {
            NothingToResume::Active => Code::RunActive,
            NothingToResume::New | NothingToResume::Answered => Code::NothingToResume,
        };
        Self::new(code, error.to_string())
    }
}

/// Why a message did not reach an agent.
pub fn no_message(error: &SpawnError) -> Problem {
    let code = match error {
        SpawnError::UnknownChild { .. } => Code::UnknownAgent,
        SpawnError::OnlyWithinTurn => Code::OnlyWithinTurn,
        _ => Code::AgentClosed,
    };
    Problem::new(code, error.to_string())
}

/// Why an agent can't lead a run.
pub fn no_leader(why: &Failure) -> Problem {
    let code = match &*why.code {
        "only_spawned" => Code::OnlySpawned,
        "unknown_agent" => Code::UnknownAgent,
        _ => Code::AgentUnusable,
    };
    Problem::new(code, &*why.message)
}

/// Why an answer was not accepted.
pub fn no_answer(error: &AnswerError) -> Problem {
    Problem::new(Code::NotAsked, error.to_string())
}

/// Why a task can't be read or changed.
pub fn no_tasks(error: &TaskError) -> Problem {
    match error {
        TaskError::Unknown { id } => Problem::not_found("task", id.as_str()),
        TaskError::NotOver { .. } => Problem::new(Code::TaskRunning, error.to_string()),
        error => Problem::new(Code::TasksUnreadable, error.to_string()),
    }
}

/// Why a session can't be read, changed or deleted.
pub fn no_session(error: &JournalError) -> Problem {
    match error {
        JournalError::Unknown { session } => Problem::not_found("session", session.as_str()),
        JournalError::Busy { .. } => Problem::new(Code::SessionBusy, error.to_string()),
        error => Problem::new(Code::JournalUnavailable, error.to_string()),
    }
}

/// Why a session can't be deleted.
pub fn not_deleted(error: &DeleteError) -> Problem {
    match error {
        DeleteError::Unknown { session } => Problem::not_found("session", session.as_str()),
        DeleteError::InUse(_) => Problem::new(Code::SessionBusy, error.to_string()),
        DeleteError::Journal(error) => no_session(error),
        DeleteError::Tasks(error) => no_tasks(error),
        DeleteError::Files { .. } => Problem::new(Code::JournalUnavailable, error.to_string()),
    }
}
