//! Waiting for a child: until it answers, until the time is over, or not at all. What is not waited
//! for becomes a background task.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use mainstem_event::{CancelReason, Outcome};
use mainstem_message::{AgentKey, Failure, TaskId};
use mainstem_react::{AgentError, RunContext, RunOutcome};
use mainstem_task::{CancelTask, NewTask, TaskEnd};
use mainstem_tool::unless;

use crate::{
    error::SpawnError,
    fleet::Fleet,
    options::SpawnOptions,
    spawn::{
        deadline::Deadline,
        idle::Waiting,
        launch::{Child, Order},
        report::{Handover, NOTHING_SAID, Report, says_nothing},
        start_order::StartTicket,
    },
};

/// What a call waits at most, whatever the model wants.
pub(crate) const LONGEST: Duration = Duration::from_secs(600);

/// How often a child that is out of time looks whether there can be one more task.
const FULL: Duration = Duration::from_secs(1);

/// What a call waits for its child.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// `None` is not at all.
    time: Option<Duration>,
    /// What to do when the time is over: stop the child, or let it go on in the background.
    must_end: bool,
    /// More was asked for.
    is_clamped: bool,
}

impl Patience {
    /// From what the model asks for, what the agent's spec says, and what the caller of the run
    /// wants.
    pub(crate) fn new(asked: Option<u64>, usual: Duration, options: SpawnOptions) -> Self {
        let wanted = asked.map_or(usual, Duration::from_secs);
        let background = wanted.is_zero() && !options.force_sync;
        let wanted = if wanted.is_zero() { usual } else { wanted };
        Self {
            time: (!background).then_some(wanted.min(LONGEST)),
            must_end: options.force_sync,
            is_clamped: wanted > LONGEST,
        }
    }
}

impl Fleet {
    /// Starts a new child and attends to it.
    pub(crate) async fn spawn(
        self: &Arc<Self>,
        cx: &RunContext,
        order: Box<Order>,
        asked: Option<u64>,
    ) -> Result<Report, SpawnError> {
        let usual = self.admit(cx, &order.agent_id)?.spec.timeout.unwrap_or_else(|| self.limits().wait);
        let patience = Patience::new(asked, usual, SpawnOptions::of(cx));
        self.attend(cx, patience, |cx, start| self.launch(cx, *order, start)).await
    }

    /// Asks an idle child something further and attends to it.
    pub(crate) async fn send(
        self: &Arc<Self>,
        cx: &RunContext,
        key: &AgentKey,
        message: String,
        asked: Option<u64>,
    ) -> Result<Report, SpawnError> {
        let patience = Patience::new(asked, self.limits().wait, SpawnOptions::of(cx));
        // In a turn of its own after the present one; what has not begun in time is not sent.
        let mut deadline = Deadline::new(patience.time.unwrap_or_default());
        let _waiting = Waiting::of(cx);
        loop {
            tokio::select! {
                biased;
                () = self.roster.idle(key) => {}
                () = deadline.over() => return Err(SpawnError::Busy { key: key.to_string() }),
            }
            let begun =
                self.attend(cx, patience, |cx, start| self.relaunch(cx, key, message.clone(), start)).await;
            // Somebody else's message may have been faster.
            if !matches!(begun, Err(SpawnError::Busy { .. })) {
                return begun;
            }
        }
    }

    async fn attend(
        self: &Arc<Self>,
        cx: &RunContext,
        patience: Patience,
        launch: impl FnOnce(&RunContext, Option<StartTicket>) -> Result<Child, SpawnError>,
    ) -> Result<Report, SpawnError> {
        let start = self.starts.ticket(cx.session_id(), patience.time.is_none());
        let Some(time) = patience.time else {
            start.after_calls().await;
            self.admit_task(cx)?;
            let child = launch(&cx.clone().unawaited(), Some(start))?;
            return Box::pin(self.hand_over(cx, child, Handover::Accepted)).await;
        };
        let mut deadline = Deadline::new(time);
        let lent = self.slots.lend(cx);
        let report = self.wait_for(cx, &mut deadline, start, launch, patience).await;
        lent.take_back().await;
        report
    }

    async fn wait_for(
        self: &Arc<Self>,
        cx: &RunContext,
        deadline: &mut Deadline,
        start: StartTicket,
        launch: impl FnOnce(&RunContext, Option<StartTicket>) -> Result<Child, SpawnError>,
        patience: Patience,
    ) -> Result<Report, SpawnError> {
        if cx.is_cancelled() {
            return Err(SpawnError::Interrupted);
        }
        // The clock starts at the call, but what has not begun can't be handed over. One that waits
        // for a place lets others start before.
        let (mut place, start) = match self.slots.try_enter(cx) {
            Some(place) => {
                start.turn().await;
                (place, Some(start))
            }
            None => {
                drop(start);
                tokio::select! {
                    biased;
                    place = self.slots.enter(cx) => (place?, None),
                    never = tick(deadline) => match never {},
                }
            }
        };
        let mut child = match patience.must_end {
            true => launch(&cx.clone().with_deadline(cx.now().after(deadline.left())), start)?,
            false => launch(cx, start)?,
        };
        place.belongs_to(&child.source.agent_key);
        let report = |child: &Child, outcome: &RunOutcome| {
            Ok(Report::new(&child.source, outcome).clamped(patience.is_clamped))
        };
        if let Some(outcome) = in_time(cx, &mut child, deadline).await {
            return report(&child, &outcome);
        }
        if patience.must_end {
            child
                .cx
                .cancellation()
                .cancel(CancelReason::Timeout { after: patience.time.unwrap_or_default() });
            let outcome = child.work.as_mut().await;
            return report(&child, &outcome);
        }
        // What is not one task too many by then.
        while self.admit_task(cx).is_err() {
            if let Some(outcome) = in_time(cx, &mut child, &mut Deadline::new(FULL)).await {
                return report(&child, &outcome);
            }
        }
        // Its place is for those who are waited for.
        drop(place);
        Ok(Box::pin(self.hand_over(cx, child, Handover::Promoted)).await?.clamped(patience.is_clamped))
    }

    /// Makes a child a background task. If that fails, one that works already goes on where it is.
    pub(crate) async fn hand_over(
        self: &Arc<Self>,
        cx: &RunContext,
        child: Child,
        how: Handover,
    ) -> Result<Report, SpawnError> {
        let Child { source, cx: child_cx, label, task, turn, work } = child;
        let id = TaskId::new(cx.new_id("task-"));
        let new = NewTask {
            id: id.clone(),
            parent_agent_id: cx.agent().clone(),
            parent_session_id: cx.session_id().clone(),
            agent_key: source.agent_key.clone(),
            agent_id: source.agent_id.clone(),
            label,
            task,
            sink: child_cx.sink().clone(),
            cancel: cancel_of(&child_cx),
        };
        let fleet = self.clone();
        let work = Box::pin(async move {
            // Here, because the set polls this: the run may not be read. A new child has none that
            // wait.
            if how == Handover::Promoted {
                fleet.slots.notify_moved();
            }
            if let Some(turn) = turn {
                turn.await;
            }
            end_of(work.await)
        });
        match self.tasks.begin(new, work).await {
            Ok(_) => {
                self.roster.becomes_task(&source.agent_key, &id);
                Ok(Report::handed_over(&source, &id, how))
            }
            Err((error, work)) if how == Handover::Promoted => {
                let end = tethered(cx, &child_cx, work).await;
                Ok(Report::kept(&source, end, &error))
            }
            Err((error, work)) => {
                drop(work);
                if source.turn == 1 {
                    self.roster.forget(&source.agent_key);
                }
                Err(SpawnError::Task(error))
            }
        }
    }
}

/// Lets time pass.
async fn tick(deadline: &mut Deadline) -> Infallible {
    deadline.over().await;
    pending().await
}

/// The child's outcome, unless the time is over before. The parent's cancel is the child's.
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
    unless(interrupted, child.work.as_mut()).await
}

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

fn end_of(outcome: RunOutcome) -> TaskEnd {
    let failure = || {
        let nothing = || Failure::new("error", "it ended without an answer");
        outcome.error.as_ref().map_or_else(nothing, Failure::from)
    };
    match (outcome.outcome, &outcome.error) {
        (Outcome::MaxIterations, _) if says_nothing(outcome.answer.as_deref()) => {
            TaskEnd::Failed(Failure::new(Outcome::MaxIterations.as_str(), NOTHING_SAID))
        }
        (Outcome::Success | Outcome::MaxIterations, _) => {
            TaskEnd::Completed(outcome.answer.as_ref().map(|answer| answer.text()).unwrap_or_default())
        }
        (_, Some(AgentError::Cancelled(reason))) if outcome.outcome == Outcome::Cancelled => {
            TaskEnd::Cancelled { by: reason.by() }
        }
        _ => TaskEnd::Failed(failure()),
    }
}

/// Stops the agent of a context.
fn cancel_of(cx: &RunContext) -> CancelTask {
    let cancellation = cx.cancellation().clone();
    CancelTask::new(move |reason| cancellation.cancel(reason))
}
