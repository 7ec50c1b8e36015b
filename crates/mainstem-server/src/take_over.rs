//! Sessions whose node has ended in the middle of a run: another node takes them over.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use mainstem::{
    Harness,
    message::{Failure, SessionId, TenantName},
    policy::Tenant,
    prelude::{RunOptions, Session},
    session::OpenError,
};
use tokio::time::sleep;

use crate::{app::App, queue};

/// How often such sessions are looked for.
const INTERVAL: Duration = Duration::from_secs(2);

/// The interval of a process that does not share its journal.
const INTERVAL_ALONE: Duration = Duration::from_secs(30);

/// How often in a row a turn is taken up that ended with its node: the turn itself may be what ends
/// nodes.
const MOST: usize = 3;

/// What becomes of a run whose node has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a run is resumed or closed")]
pub enum OnLost {
    /// Another node takes its turn up, in a new run: results that are recorded are used, and calls
    /// that were cut off have a result that says so. A turn in which three nodes in a row have
    /// ended is not taken up again.
    #[default]
    Resume,
    /// It ends with an error; a caller may resume it.
    Close,
}

/// Takes over the sessions that have no node; never returns.
pub(crate) async fn take_over(app: &Arc<App>) -> Infallible {
    let Some(journal) = app.harness.journal() else { return pending().await };
    let interval = if journal.relay().is_some() { INTERVAL } else { INTERVAL_ALONE };
    loop {
        match journal.abandoned().await {
            Ok(sessions) => {
                for session in sessions {
                    take_over_one(app, &session).await;
                }
            }
            Err(error) => tracing::warn!(%error, "can't read which sessions have no node"),
        }
        sleep(interval).await;
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

/// Begins a run that resumes the turn of a run that was cut off, if opening the session has ended
/// one and nodes share the journal. Returns `false` if the tenant's share of runs is in use.
pub(crate) fn take_up_turn(app: &Arc<App>, session: &Session, tenant: &Tenant) -> bool {
    if !is_shared(app) || !session.has_cut_run() {
        return true;
    }
    let resumes = app.served.on_lost == OnLost::Resume;
    let share = resumes.then(|| app.admit(tenant)).transpose();
    let Ok(share) = share else { return false };
    if !session.take_cut_run() {
        return true;
    }
    app.metrics.taken_over();
    let id = session.id();
    tracing::info!(session = %id, "taken over: its node has ended in a run");
    let Some(share) = share else { return true };
    if is_given_up(session.runs().iter().map(|run| run.end.as_ref().and_then(|end| end.error.as_ref()))) {
        tracing::warn!(session = %id, "{MOST} nodes have ended in this turn; it is not taken up again");
        return true;
    }
    match session.resume(RunOptions::default()) {
        Ok(run) => _ = app.drive(run, share),
        Err(error) => tracing::warn!(session = %id, %error, "the turn that was cut off can't be taken up"),
    }
    true
}

/// Returns `true` if nodes share the journal.
pub(crate) fn is_shared(app: &App) -> bool {
    app.harness.journal().is_some_and(|journal| journal.relay().is_some())
}

/// Returns `true` if nodes take up a turn that was cut off, unless it [ends them](is_given_up).
pub(crate) fn takes_up(app: &App) -> bool {
    is_shared(app) && app.served.on_lost == OnLost::Resume
}

/// Returns `true` if a run has ended because its process has.
pub(crate) fn is_cut(error: Option<&Failure>) -> bool {
    error.is_some_and(|error| error.code == "restarted")
}

/// Returns `true` if the latest runs have ended with their processes; `errors` are those of a
/// session's runs, in order.
pub(crate) fn is_given_up<'a>(errors: impl DoubleEndedIterator<Item = Option<&'a Failure>>) -> bool {
    errors.rev().take_while(|error| is_cut(*error)).count() >= MOST
}
