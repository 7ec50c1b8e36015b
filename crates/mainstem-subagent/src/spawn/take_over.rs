//! Continues background tasks of an earlier process whose children run elsewhere.

use std::sync::Arc;

use mainstem_event::{
    ConfirmResult, EventKind, EventSink, Origin,
    fold::{RecordedInvocation, RecordedTurn},
};
use mainstem_message::{AgentKey, ConfirmId, Failure, ToolCall};
use mainstem_react::{AgentError, Bracket, RunContext};
use mainstem_task::TaskRecord;

use crate::{
    assembly::Assembly,
    error::SpawnError,
    fleet::Fleet,
    member::Member,
    spawn::{
        report::RESTARTED,
        roster::{Seat, recorded::RecordedRoster},
        runner::TurnInput,
        wait::{cancel_of, end_of},
    },
};

/// The reason of a request whose process has ended.
const ASKED_AGAIN: &str = "the process that asked has ended; what still needs an answer is asked again";

impl RecordedRoster {
    /// Returns `true` if a turn of a child goes on elsewhere after the process that began it has
    /// ended, and the agents of this assembly can continue it.
    pub fn can_continue(&self, assembly: &Assembly, child: &AgentKey) -> bool {
        let spawned = self.spawned_as(child);
        let entry = spawned.and_then(|(id, version, spec)| assembly.spawned_as(id, version, spec));
        entry.is_some_and(|entry| entry.agent.runner().continues().is_some())
    }
}

impl Fleet {
    /// Continues a [resumable](TaskRecord::is_resumable) task of an earlier process, whose child
    /// was [restored](Self::restore). The context is that of a root. Returns when this process
    /// executes the task, or another one does: then the child's turn ends here.
    ///
    /// # Errors
    /// The child does not exist or is running, its turns can't be continued, or the context has no
    /// fleet. The turn stays open.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn take_over(
        self: &Arc<Self>,
        cx: RunContext,
        task: TaskRecord,
        recorded: RecordedTurn,
    ) -> Result<(), SpawnError> {
        let root = Member::of(&cx)?;
        let Seat { lineage, source, history } = self.roster.continue_turn(&task.agent_key)?;
        let entry = &lineage.entry;
        let not_rebuilt =
            || SpawnError::NotRebuilt { key: task.agent_key.to_string(), id: source.agent_id.to_string() };
        let runner = entry.agent.runner().continues().ok_or_else(not_rebuilt)?;
        let account = root.account.for_child(&source, &entry.spec);
        let member = root.child(account, Some(lineage.clone()));
        let cx = cx.detachable_recorded_child(&recorded.own).with_attachment(member.clone());
        let watchdog = member.present(&cx, None);
        let (requests, began) = (open_requests(&recorded), recorded.clone());
        let input = TurnInput { cx: cx.clone(), history, task: task.task.clone(), watchdog };
        let turn = runner.continue_turn(input, recorded);
        let (sink, child) = (cx.sink().clone(), cx.clone());
        let work = Box::pin(async move {
            withdraw(&sink, requests);
            end_of(&turn.await, &child)
        });
        let (id, status) = (task.id.clone(), task.status);
        match self.tasks.take_over(task, cx.sink().clone(), cancel_of(&cx), work).await {
            Ok(_) => self.roster.becomes_task(&source.agent_key, &id),
            Err((error, work)) => {
                tracing::warn!(task = %id, %error, "a task of an earlier process can't be continued");
                // Its turn may be another process's: it is not stopped at the remote.
                drop(work);
                cx.sink().move_to_background(id.clone());
                close(&cx, &began);
                self.tasks.follow(&id, status, cx.sink().log());
            }
        }
        Ok(())
    }
}

/// Ends what is open of a turn in the log, without its runner.
fn close(cx: &RunContext, RecordedTurn { own, below, .. }: &RecordedTurn) {
    let (mut all, mut open) = (vec![cx.clone()], vec![Bracket::recorded(cx, own)]);
    for one in below {
        let child = all[one.caller].recorded_child(one);
        if !one.is_over {
            open.push(Bracket::recorded(&child, one));
        }
        all.push(child);
    }
    let failure = || Failure::new(RESTARTED, "another process continues it, or none could");
    while let Some(bracket) = open.pop() {
        bracket.close(Err(AgentError::Refused(failure())));
    }
}

/// A request of the earlier process, with the origin of its agent.
type OpenRequest = (Arc<Origin>, ConfirmId, Vec<ToolCall>);

fn open_requests(recorded: &RecordedTurn) -> Vec<OpenRequest> {
    let of = |one: &RecordedInvocation| {
        let requests = one.requests.iter();
        let of = |(id, calls): (&ConfirmId, &Vec<_>)| (one.origin.clone(), id.clone(), calls.clone());
        requests.map(of).collect::<Vec<_>>()
    };
    std::iter::once(&recorded.own).chain(&recorded.below).flat_map(of).collect()
}

/// Withdraws requests, so that they are not open beside those that repeat them.
fn withdraw(sink: &EventSink, requests: Vec<OpenRequest>) {
    for (origin, confirm_id, calls) in requests {
        let withdrawn = |call| ConfirmResult::withdrawn(call, ASKED_AGAIN);
        let confirm_results = calls.into_iter().map(withdrawn).collect();
        sink.resumed_child(&origin).emit(EventKind::UserConfirmResult { confirm_id, confirm_results });
    }
}
