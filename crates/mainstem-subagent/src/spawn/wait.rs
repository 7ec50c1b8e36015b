//! Waits for a child until it answers, or until the time is over. A child without a waiting call
//! becomes a background task.

use std::{convert::Infallible, future::pending, time::Duration};

use mainstem_event::{CancelReason, Outcome};
use mainstem_message::{AgentKey, Failure, TaskId};
use mainstem_react::{AgentError, RunContext, RunOutcome};
use mainstem_task::{CancelTask, NewTask, TaskEnd};
use mainstem_tool::unless;

use crate::{
    error::SpawnError,
    member::Member,
    spawn::{
        child_limit::ChildPermit,
        deadline::Deadline,
        idle::Waiting,
        launch::{Child, Order},
        report::{Handover, NOTHING_SAID, Report, says_nothing},
        start_order::StartTicket,
        unfinished::Unfinished,
        wait_time::WaitTime,
    },
};

/// How often a child that is out of time checks whether there may be one more task.
const FULL: Duration = Duration::from_secs(1);

impl Member {
    /// Starts a new child and waits for it.
    pub(crate) async fn spawn(
        &self,
        cx: &RunContext,
        order: Box<Order>,
        asked: Option<u64>,
    ) -> Result<Report, SpawnError> {
        let usual = order.entry.spec.timeout.unwrap_or_else(|| self.fleet.limits().wait);
        let wait = WaitTime::new(asked, usual, &self.options);
        self.launch_and_wait(cx, wait, |cx, start| self.launch(cx, *order, start)).await
    }

    /// Sends a child a message for a turn of its own, after the present one, and waits for it.
    pub(crate) async fn send(
        &self,
        cx: &RunContext,
        key: &AgentKey,
        message: String,
        asked: Option<u64>,
    ) -> Result<Report, SpawnError> {
        let wait = WaitTime::new(asked, self.fleet.limits().wait, &self.options);
        // A turn that has not started in time is not sent.
        let mut deadline = Deadline::new(wait.time.unwrap_or_default());
        let _waiting = Waiting::new(&self.waits);
        loop {
            tokio::select! {
                biased;
                () = self.fleet.roster.idle(key) => {}
                () = deadline.over() => return Err(SpawnError::Busy { key: key.to_string() }),
            }
            let relaunch = |cx: &_, start| self.relaunch(cx, key, message.clone(), start);
            let ended = self.launch_and_wait(cx, wait, relaunch).await;
            // Another message may have been first.
            if !matches!(ended, Err(SpawnError::Busy { .. })) {
                return ended;
            }
        }
    }

    async fn launch_and_wait(
        &self,
        cx: &RunContext,
        wait: WaitTime,
        launch: impl FnOnce(&RunContext, Option<StartTicket>) -> Result<Child, SpawnError>,
    ) -> Result<Report, SpawnError> {
        let start = self.fleet.starts.ticket(cx.session_id(), wait.time.is_none());
        let Some(time) = wait.time else {
            start.after_calls().await;
            self.check_task_limit(cx)?;
            let child = launch(&cx.clone().unawaited(), Some(start))?;
            return Box::pin(self.hand_over(cx, child, Handover::Accepted)).await;
        };
        let mut deadline = Deadline::new(time);
        let released = self.fleet.child_limit.release_while_waiting(self.caller(cx));
        let report = self.wait_for(cx, &mut deadline, start, launch, wait).await;
        released.reacquire().await;
        report
    }

    async fn wait_for(
        &self,
        cx: &RunContext,
        deadline: &mut Deadline,
        start: StartTicket,
        launch: impl FnOnce(&RunContext, Option<StartTicket>) -> Result<Child, SpawnError>,
        wait: WaitTime,
    ) -> Result<Report, SpawnError> {
        if cx.is_cancelled() {
            return Err(SpawnError::Interrupted);
        }
        let mut permit = self.acquire_permit(cx, deadline, &start).await?;
        let start = Some(start);
        let mut child = match wait.must_end {
            true => launch(&cx.clone().with_deadline(cx.now().after(deadline.left())), start)?,
            false => launch(cx, start)?,
        };
        permit.set_child(&child.source.agent_key);
        let report = |child: &Child, outcome: &RunOutcome| {
            let report = Report::new(&child.source, outcome, &child.cx.latest_messages());
            let report = if self.has_tool("agent_send") { report } else { report.without_sending() };
            Ok(report.clamped(wait.is_clamped))
        };
        if let Some(outcome) = in_time(cx, &mut child, deadline).await {
            return report(&child, &outcome);
        }
        if wait.must_end {
            let after = wait.time.unwrap_or_default();
            child.cx.cancellation().cancel(CancelReason::Timeout { after });
            let outcome = child.turn.as_mut().await;
            return report(&child, &outcome);
        }
        // Until there may be one more task.
        while self.check_task_limit(cx).is_err() {
            if let Some(outcome) = in_time(cx, &mut child, &mut Deadline::new(FULL)).await {
                return report(&child, &outcome);
            }
        }
        // Permits are for children whose calls wait.
        drop(permit);
        Ok(Box::pin(self.hand_over(cx, child, Handover::Promoted)).await?.clamped(wait.is_clamped))
    }

    /// Waits for a permit to start a child. The call's time passes meanwhile, but a child that has
    /// not started can't be handed over.
    async fn acquire_permit(
        &self,
        cx: &RunContext,
        deadline: &mut Deadline,
        start: &StartTicket,
    ) -> Result<ChildPermit<'_>, SpawnError> {
        let limit = &self.fleet.child_limit;
        if let Some(permit) = limit.try_acquire(self.caller(cx)) {
            start.turn().await;
            return Ok(permit);
        }
        start.queue();
        let acquired = async {
            let permit = limit.acquire(self.caller(cx)).await?;
            start.after_permitted().await;
            Ok(permit)
        };
        tokio::select! {
            biased;
            permit = acquired => permit,
            never = tick(deadline) => match never {},
        }
    }

    /// Makes a child a background task. If that fails, a running child continues in its call.
    pub(crate) async fn hand_over(
        &self,
        cx: &RunContext,
        child: Child,
        how: Handover,
    ) -> Result<Report, SpawnError> {
        let Child { source, cx: child_cx, task, start, turn } = child;
        let id = TaskId::from_lossy(cx.new_id("task-"));
        let new = NewTask {
            id: id.clone(),
            parent_agent_id: cx.agent().clone(),
            parent_session_id: cx.session_id().clone(),
            agent_key: source.agent_key.clone(),
            agent_id: source.agent_id.clone(),
            label: source.label.as_deref().map(str::to_owned),
            task,
            is_resumable: child_cx.sink().log().committed().is_some()
                && self.fleet.roster.can_continue(&source.agent_key),
            sink: child_cx.sink().clone(),
            cancel: cancel_of(&child_cx),
        };
        let (fleet, own) = (self.fleet.clone(), child_cx.clone());
        let work = Box::pin(async move {
            // Here, because the task set polls this even if the run is not read. Below a new child
            // no agent waits yet.
            match (how, start) {
                // It has started.
                (Handover::Promoted, _) => fleet.child_limit.notify_promoted(),
                (Handover::Accepted, Some(start)) => start.await,
                (Handover::Accepted, None) => {}
            }
            end_of(&turn.await, &own)
        });
        let fleet = &self.fleet;
        match fleet.tasks.begin(new, work).await {
            Ok(_) => {
                fleet.roster.becomes_task(&source.agent_key, &id);
                Ok(Report::handed_over(&source, &id, how, |tool| self.has_tool(tool)))
            }
            Err((error, work)) if how == Handover::Promoted => {
                let end = tethered(cx, &child_cx, work).await;
                Ok(Report::not_promoted(&source, end, &error))
            }
            Err((error, work)) => {
                drop(work);
                if source.turn == 1 {
                    fleet.roster.forget(&source.agent_key);
                }
                Err(SpawnError::Task(error))
            }
        }
    }
}

/// Lets the time pass.
async fn tick(deadline: &mut Deadline) -> Infallible {
    deadline.over().await;
    pending().await
}

/// Returns the child's outcome; `None` if the time is over first. A cancel of the parent cancels
/// the child.
async fn in_time(cx: &RunContext, child: &mut Child, deadline: &mut Deadline) -> Option<RunOutcome> {
    let tether = async {
        cx.cancelled().await;
        cx.pass_cancel_to(&child.cx);
        pending().await
    };
    let interrupted = async {
        tokio::select! {
            biased;
            never = tether => match never {},
            () = deadline.over() => {}
        }
    };
    unless(interrupted, child.turn.as_mut()).await
}

/// Waits for the work of a child. A cancel of the parent cancels the child.
async fn tethered<T>(cx: &RunContext, child: &RunContext, work: impl Future<Output = T>) -> T {
    let tether = async {
        cx.cancelled().await;
        cx.pass_cancel_to(child);
        pending::<Infallible>().await
    };
    tokio::select! {
        biased;
        end = work => end,
        never = tether => match never {},
    }
}

/// Returns how a task ends whose child has this outcome and context.
pub(crate) fn end_of(outcome: &RunOutcome, cx: &RunContext) -> TaskEnd {
    let failure = || {
        let nothing = || Failure::new("error", "it ended without an answer");
        outcome.error.as_ref().map_or_else(nothing, Failure::from)
    };
    let failed = |error| {
        let unfinished = Unfinished::of(&cx.latest_messages());
        TaskEnd::Failed { error, partial: unfinished.map(|unfinished| unfinished.to_string()) }
    };
    match (outcome.outcome, &outcome.error) {
        (Outcome::MaxIterations, _) if says_nothing(outcome.answer.as_deref()) => {
            failed(Failure::new(Outcome::MaxIterations.as_str(), NOTHING_SAID))
        }
        (Outcome::Success | Outcome::MaxIterations, _) => {
            TaskEnd::Completed(outcome.answer.as_ref().map(|answer| answer.text()).unwrap_or_default())
        }
        (_, Some(AgentError::Cancelled(reason))) if outcome.outcome == Outcome::Cancelled => {
            TaskEnd::Cancelled { by: reason.by() }
        }
        _ => failed(failure()),
    }
}

/// Returns what cancels the agent of a context.
pub(crate) fn cancel_of(cx: &RunContext) -> CancelTask {
    let cancellation = cx.cancellation().clone();
    CancelTask::new(move |reason| cancellation.cancel(reason))
}
