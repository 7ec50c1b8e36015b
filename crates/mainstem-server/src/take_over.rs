//! Sessions whose node has ended in the middle of a run: another node takes them over.

use std::{
    collections::{BTreeSet, HashMap},
    convert::Infallible,
    future::pending,
    iter,
    sync::Arc,
    time::Duration,
};

use mainstem::{
    Harness,
    event::OnLost,
    journal::{Journal, JournalError},
    message::{Failure, SessionId, TenantName},
    policy::{Share, Tenant},
    prelude::{RunOptions, Session},
    session::{OpenError, RunRecord},
};
use tokio::time::{Instant, sleep};

use crate::{
    app::App,
    outage::Outage,
    queue::{self, told},
};

/// How often such sessions are looked for.
const INTERVAL: Duration = Duration::from_secs(2);

/// The interval of a process that does not share its journal.
const INTERVAL_ALONE: Duration = Duration::from_secs(30);

/// How long a session is left alone that could not be opened.
const PAUSE: Duration = Duration::from_secs(8);

/// How often in a row a turn is taken up that ended with its node: the turn itself may be what ends
/// nodes.
const MOST: usize = 3;

/// Takes over the sessions that have no node; never returns.
pub(crate) async fn take_over(app: &Arc<App>) -> Infallible {
    let Some(journal) = app.harness.journal() else { return pending().await };
    let mut outage = Outage::of("read which sessions have no node");
    loop {
        for session in outage.told(journal.abandoned().await).into_iter().flatten() {
            take_over_one(app, &session).await;
        }
        sleep(interval(app)).await;
    }
}

fn interval(app: &App) -> Duration {
    if is_shared(app) { INTERVAL } else { INTERVAL_ALONE }
}

/// Continues the background tasks that go on at remote agents since their executor has ended, by
/// opening their sessions; never returns.
pub(crate) async fn continue_tasks(app: &Arc<App>) -> Infallible {
    // A store that tenants share has the tasks of all.
    let tenants: BTreeSet<_> = app.tokens.tenants().filter(|_| !is_shared(app)).collect();
    let tenants = tenants.into_iter().filter_map(|tenant| {
        Some((Some(tenant.parse::<TenantName>().ok()?), app.harness.tenant(tenant).ok()?))
    });
    let outage = || Outage::of("read which tasks go on at remote agents");
    let harnesses = iter::once((None, app.harness.clone())).chain(tenants);
    let mut harnesses: Vec<_> = harnesses.map(|of| (of, outage())).collect();
    // When a session is tried again that another node has, or that can't be opened.
    let mut later = HashMap::new();
    loop {
        later.retain(|_, at| Instant::now() < *at);
        for ((tenant, harness), outage) in &mut harnesses {
            let sessions = outage.told(harness.tasks().resumable_sessions().await);
            continue_tasks_of(app, (tenant, harness), sessions.unwrap_or_default(), &mut later).await;
        }
        sleep(interval(app)).await;
    }
}

async fn continue_tasks_of(
    app: &Arc<App>,
    (tenant, harness): (&Tenant, &Harness),
    sessions: BTreeSet<SessionId>,
    later: &mut HashMap<SessionId, Instant>,
) {
    for id in sessions {
        let found = match tenant {
            Some(_) => Some((tenant.clone(), harness.clone(), id.clone())),
            None => of_tenant(app, &id),
        };
        let Some((tenant, harness, own)) = found else { continue };
        if harness.sessions().get(&own).is_some() || later.contains_key(&id) {
            continue;
        }
        match harness.sessions().find(&own).await {
            Ok(Some(session)) => {
                tracing::info!(session = %id, "continuing its tasks at remote agents");
                take_up(app, &session, &tenant).await;
                continue;
            }
            Ok(None) | Err(OpenError::Journal(JournalError::Busy { .. })) => {}
            Err(error) => {
                tracing::warn!(session = %id, %error, "a session with a task at a remote can't be opened");
            }
        }
        later.insert(id, Instant::now() + PAUSE);
    }
}

async fn take_over_one(app: &Arc<App>, id: &SessionId) {
    let Some((tenant, harness, own)) = of_tenant(app, id) else { return };
    // Opening ends what was cut off, for all nodes: one with room takes it up.
    if app.served.on_lost == OnLost::Resume && app.admit(&tenant).is_err() {
        return;
    }
    match harness.sessions().find(&own).await {
        // Opening it has ended what was cut off.
        Ok(Some(session)) => take_up(app, &session, &tenant).await,
        // Another node was faster.
        Ok(None) | Err(OpenError::Journal(_)) => {}
        Err(error) => tracing::warn!(session = %id, %error, "a session without a node can't be taken over"),
    }
}

/// Returns the tenant and the harness that a session belongs to, and the session's id there; `None`
/// if its tenant has no token here.
fn of_tenant(app: &App, id: &SessionId) -> Option<(Tenant, Harness, SessionId)> {
    let Some(tenant) = id.tenant() else { return Some((None, app.harness.clone(), id.clone())) };
    let tenant: TenantName = tenant.parse().ok()?;
    let own = id.unscoped(&tenant)?;
    let harness = app.harness.tenant(tenant.as_str()).ok()?;
    let tenant = Some(tenant);
    app.serves(&tenant).then_some((tenant, harness, own))
}

/// Restores the work of a session whose earlier process has ended, once since it was opened.
pub(crate) async fn take_up(app: &Arc<App>, session: &Session, tenant: &Tenant) {
    session.restore(|| Box::pin(queue::restore(app, session, tenant))).await;
}

/// Begins a run that resumes the turn of a run that was cut off, if there is one and nodes share
/// the journal. Returns `false` if that has to be tried again: the tenant's share of runs is in
/// use.
pub(crate) async fn take_up_turn(
    app: &Arc<App>,
    session: &Session,
    tenant: &Tenant,
    journal: &dyn Journal,
) -> bool {
    if !is_shared(app) || !session.has_cut_run() {
        return true;
    }
    let last = begun(session).pop();
    // Another run may have begun since; and a turn is not resumed because a compaction was cut off.
    let last = last.filter(|run| is_cut(error_of(run)) && !run.settings.compacts);
    let resumes = last.is_some_and(|run| takes_up(app, run.settings.on_lost));
    let share = resumes.then(|| app.admit(tenant)).transpose();
    let Ok(share) = share else { return false };
    if !session.take_cut_run() {
        return true;
    }
    app.metrics.taken_over();
    tracing::info!(session = %session.id(), "taken over: its node has ended in a run");
    // Should this node end before the run is recorded, another resumes the turn.
    if !share.is_some_and(|share| resume(app, session, share)) {
        told(journal.forget_cut(session.id()).await);
    }
    true
}

/// Returns the runs that have begun, in order.
fn begun(session: &Session) -> Vec<RunRecord> {
    let mut runs = session.runs();
    runs.retain(|run| !run.never_began);
    runs
}

fn error_of(run: &RunRecord) -> Option<&Failure> {
    run.end.as_ref()?.error.as_ref()
}

/// Begins a run that resumes the session's last turn, unless that turn ends nodes.
fn resume(app: &Arc<App>, session: &Session, share: Share) -> bool {
    let id = session.id();
    if is_given_up(begun(session).iter().map(error_of)) {
        tracing::warn!(session = %id, "{MOST} nodes have ended in this turn; it is not resumed again");
        return false;
    }
    match session.resume(RunOptions::default()) {
        Ok(run) => _ = app.drive(run, share),
        Err(error) => {
            tracing::warn!(session = %id, %error, "the turn that was cut off can't be resumed");
            return false;
        }
    }
    true
}

/// Returns `true` if nodes share the journal.
pub(crate) fn is_shared(app: &App) -> bool {
    app.harness.journal().is_some_and(|journal| journal.relay().is_some())
}

/// Returns `true` if nodes take up the turn of a run with this setting, unless the turn [ends
/// them](is_given_up).
pub(crate) fn takes_up(app: &App, on_lost: Option<OnLost>) -> bool {
    is_shared(app) && on_lost.unwrap_or(app.served.on_lost) == OnLost::Resume
}

/// Returns `true` if a run has ended because its process has.
pub(crate) fn is_cut(error: Option<&Failure>) -> bool {
    error.is_some_and(|error| error.code == "restarted")
}

/// Returns `true` if the latest runs have ended with their processes; `errors` are those of the
/// runs of a session that have begun, in order.
pub(crate) fn is_given_up<'a>(errors: impl DoubleEndedIterator<Item = Option<&'a Failure>>) -> bool {
    errors.rev().take_while(|error| is_cut(*error)).count() >= MOST
}
