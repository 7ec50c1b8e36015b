//! What a session says of its runs to clients of LangGraph's API: states, questions, statuses.

use mainstem::{encode::LangGraphThread, event::EventKind, prelude::Session, session::FoundRun};
use mainstem_api::RunState;
use serde_json::{Value, json};
use tokio::task::yield_now;

use super::resume::Question;
use crate::{problem::Problem, runs::describe};

/// How many events are read before other tasks get their turn.
const AT_ONCE: usize = 1_024;

/// Returns the state of a thread before an event.
pub(super) async fn state_before(session: &Session, seq: u64) -> LangGraphThread {
    let (mut state, mut count) = (LangGraphThread::new(), 0_usize);
    let mut cursor = session.log().committed_from(1);
    while let Some(event) = cursor.at_hand().await {
        if event.seq >= seq {
            break;
        }
        state.apply(&event);
        count += 1;
        if count.is_multiple_of(AT_ONCE) {
            yield_now().await;
        }
    }
    state
}

/// The questions of a run.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// Those without an answer, in order.
    pub(super) open: Vec<Question>,
    /// The number of the last one that has an answer; 0 if there is none.
    pub(super) answered: u64,
}

/// Returns the questions of a run.
pub(super) async fn questions(run: &FoundRun) -> Questions {
    let (mut questions, mut count) = (Questions::default(), 0_usize);
    let mut cursor = run.session().log().committed_from(run.first());
    while let Some(event) = cursor.at_hand().await {
        count += 1;
        if count.is_multiple_of(AT_ONCE) {
            yield_now().await;
        }
        if event.run_id() != Some(run.id()) {
            continue;
        }
        match &event.kind {
            EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } => {
                let (id, calls) = (confirm_id.clone(), tool_calls.clone());
                questions.open.push(Question { seq: event.seq, id, calls });
            }
            EventKind::UserConfirmResult { confirm_id, .. } => questions.answer(confirm_id.as_str()),
            _ if event.is_run_end() => questions.open.clear(),
            _ => {}
        }
    }
    questions
}

impl Questions {
    fn answer(&mut self, id: &str) {
        let Some(place) = self.open.iter().position(|question| question.id.as_str() == id) else { return };
        self.answered = self.answered.max(self.open.remove(place).seq);
    }
}

/// Returns a run as LangGraph's server shows it.
///
/// # Errors
/// It has ended, and that can't be recorded.
pub(super) async fn run_view(run: &FoundRun, assistant: &str) -> Result<Value, Problem> {
    let view = describe(run).await?;
    let is_asking = view.status == RunState::Running && !questions(run).await.open.is_empty();
    Ok(json!({
        "run_id": view.id,
        "thread_id": view.session_id,
        "assistant_id": assistant,
        "created_at": view.created_at,
        "updated_at": view.created_at,
        "status": if is_asking { "interrupted" } else { status(view.status) },
        "metadata": {},
        "kwargs": {},
        "multitask_strategy": "enqueue",
    }))
}

fn status(state: RunState) -> &'static str {
    match state {
        RunState::Queued => "pending",
        RunState::Running => "running",
        RunState::Success => "success",
        RunState::Cancelled | RunState::Suspended => "interrupted",
        RunState::Timeout => "timeout",
        _ => "error",
    }
}
