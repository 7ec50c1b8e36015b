//! Children that are in no roster: each ends with the tool call that began it, and can't be sent
//! to. Works in a run without a fleet, too.

use std::{sync::Arc, time::Duration};

use mainstem_event::EventSource;
use mainstem_message::{Message, ReplyId};
use mainstem_policy::Amount;
use mainstem_react::{Agent, RunContext, RunOutcome};

use crate::{
    error::SpawnError,
    fleet::Limits,
    member::Member,
    spawn::{
        idle::{Waits, watch},
        launch::check_depth,
        runner::{Runner as _, RunningTurn, TurnInput},
    },
};

/// Checks that the caller may have one more child, and counts it.
pub(crate) fn admit(cx: &RunContext) -> Result<(), SpawnError> {
    let Ok(member) = Member::of(cx) else { return check_depth(cx, Limits::default().max_depth) };
    member.check_room(cx)?;
    member.account.reserve(Amount::spawn)?.settle(Some(Amount::spawn()));
    Ok(())
}

/// Runs a turn of such a child. Returns its outcome, and what was said in it.
pub(crate) async fn run(
    agent: &Agent,
    cx: &RunContext,
    source: &EventSource,
    history: Vec<Arc<Message>>,
    task: String,
) -> Result<(RunOutcome, Vec<Arc<Message>>), SpawnError> {
    let child = cx.child(source.clone(), ReplyId::from_lossy(cx.new_id("reply-")));
    let turn = |cx: &RunContext, waits, idle| agent.run_turn(turn(cx, history, task, waits, idle));
    let Ok(parent) = Member::of(cx) else {
        // The child limit and the limit of silence belong to a fleet.
        let outcome = turn(&child, Arc::default(), Duration::MAX).await;
        return Ok((outcome, child.messages()));
    };
    let member = parent.child(parent.account.clone(), parent.lineage.clone());
    let child = child.with_attachment(member.clone());
    let work = turn(&child, member.waits.clone(), parent.fleet.limits().idle);
    let outcome = with_permit(parent, cx, source, work).await?;
    Ok((outcome, child.messages()))
}

fn turn(
    cx: &RunContext,
    history: Vec<Arc<Message>>,
    task: String,
    waits: Arc<Waits>,
    idle: Duration,
) -> TurnInput {
    let watched = cx.clone();
    let watchdog = Box::pin(async move { watch(&watched, &waits, idle).await });
    TurnInput { cx: cx.clone(), history, task, watchdog }
}

/// Waits for a turn with the caller's permit released.
async fn with_permit(
    parent: &Member,
    cx: &RunContext,
    source: &EventSource,
    turn: RunningTurn,
) -> Result<RunOutcome, SpawnError> {
    let (limit, caller) = (&parent.fleet.child_limit, parent.caller(cx));
    let released = limit.release_while_waiting(caller);
    let mut permit = limit.acquire(caller).await?;
    permit.set_child(&source.agent_key);
    let outcome = turn.await;
    drop(permit);
    released.reacquire().await;
    Ok(outcome)
}
