//! Runs that wait until their session is free. They are stored, so that any node finds them, and
//! so that the next process of the session begins them if theirs ends.

use std::{collections::VecDeque, future::ready, pin::pin, sync::Arc, time::Duration};

use futures_util::{StreamExt, future::select};
use mainstem::{
    event::CancelReason,
    journal::{Journal, JournalError, QueuedRun},
    message::Failure,
    policy::Tenant,
    prelude::{RunHandle, Session},
    session::{FoundRun, RunRecord, RunStatus},
};
use mainstem_api::NewRun;
use tokio::time::sleep;

use crate::{app::App, caller::Caller, problem::Problem, runs};

/// How often a stored run tries to begin for which this server has no room.
const INTERVAL: Duration = Duration::from_secs(1);

/// The code of the end of a stored run that can't begin at the process that has restored it.
const NOT_RESTORED: &str = "not_restored";

/// Stores a run that is queued, until it has begun or was cancelled.
///
/// # Errors
/// It can't be stored; it is cancelled then.
pub(crate) async fn store(
    app: &Arc<App>,
    caller: &Caller,
    run: &RunHandle,
    request: String,
) -> Result<(), Problem> {
    let Some(journal) = caller.harness.journal() else { return Ok(()) };
    // A session is found from its first event on.
    run.session().log().until_committed(1).await;
    let queued = QueuedRun { id: run.id().clone(), session: run.session().id().clone(), request };
    if let Err(error) = journal.queue_run(queued).await {
        run.cancel();
        return Err(app.unreadable(&error));
    }
    watch(app, journal.clone(), run.clone());
    Ok(())
}

/// Removes a stored run once it has begun or was cancelled. When this server stops, it leaves the
/// run to the next one.
fn watch(app: &Arc<App>, journal: Arc<dyn Journal>, run: RunHandle) {
    let (stop, tasks) = (app.stop.clone(), run.session().task_set().clone());
    let watch = async move {
        tokio::select! {
            () = run.begun() => {}
            () = stop.cancelled() => {
                if matches!(run.status(), RunStatus::Queued) {
                    run.cancel_because(CancelReason::Shutdown);
                }
                run.begun().await;
            }
        }
        let Some(record) = begun(&run).await else { return };
        // Another process has the session if it can't be recorded here.
        if run.session().log().until_committed(record.first).await {
            told(journal.unqueue_run(run.id()).await);
        }
    };
    // At a shutdown the run stays stored.
    tasks.drive_or(watch, || ());
}

/// Waits for the beginning of a run that is no longer queued; `None` if it is left to another
/// process.
async fn begun(run: &RunHandle) -> Option<RunRecord> {
    let (session, released) = (run.session(), pin!(run.released()));
    let record = || session.runs().into_iter().rfind(|known| known.id == *run.id());
    let events = session.log().committed_from(run.first());
    let begun = pin!(events.skip_while(|_| ready(record().is_none())).into_future());
    if record().is_none() {
        select(begun, released).await;
    }
    record()
}

/// Queues the stored runs of a session that was opened.
pub(crate) async fn restore(app: &Arc<App>, session: &Session, tenant: &Tenant) {
    let Ok(caller) = Caller::of(app, tenant.clone()) else { return };
    let Some(journal) = caller.harness.journal().cloned() else { return };
    let queued = journal.queued_runs(session.id()).await;
    let mut queued = VecDeque::from(told(queued).unwrap_or_default());
    restore_next(app, &caller, session, &mut queued).await;
    if queued.is_empty() {
        return;
    }
    let (app, session, tasks) = (app.clone(), session.clone(), session.task_set().clone());
    let rest = async move {
        while !queued.is_empty() && !app.stop.is_cancelled() {
            sleep(INTERVAL).await;
            restore_next(&app, &caller, &session, &mut queued).await;
        }
    };
    tasks.drive_or(rest, || ());
}

/// Queues stored runs as long as there is room for them.
async fn restore_next(app: &Arc<App>, caller: &Caller, session: &Session, queued: &mut VecDeque<QueuedRun>) {
    let Some(journal) = caller.harness.journal() else { return };
    while let Some(run) = queued.front() {
        match session.find_run(&run.id) {
            Some(FoundRun::Live(_)) => {}
            // Its process has ended before it was removed.
            Some(_) => _ = told(journal.unqueue_run(&run.id).await),
            None => match again(app, caller, session, run).await {
                Ok(Some(handle)) => watch(app, journal.clone(), handle),
                Ok(None) => return,
                Err(why) => {
                    tracing::warn!(session = %session.id(), run = %run.id, why, "a queued run can't begin");
                    session.never_began(&run.id, Failure::new(NOT_RESTORED, why));
                    session.log().until_committed(session.log().last_seq()).await;
                    told(journal.unqueue_run(&run.id).await);
                }
            },
        }
        queued.pop_front();
    }
}

/// Queues a stored run; `None` if there is no room for it.
async fn again(
    app: &Arc<App>,
    caller: &Caller,
    session: &Session,
    run: &QueuedRun,
) -> Result<Option<RunHandle>, String> {
    let Ok(share) = app.admit(&caller.tenant) else { return Ok(None) };
    let request: NewRun = serde_json::from_str(&run.request).map_err(|error| error.to_string())?;
    let queued = runs::queue_again(app, caller, session, request, run.id.clone(), share).await;
    queued.map(Some).map_err(|problem| problem.body().detail.clone())
}

/// Returns what was read or written; logs why nothing was.
fn told<T>(done: Result<T, JournalError>) -> Option<T> {
    done.inspect_err(|error| tracing::warn!(%error, "queued runs can't be read or written")).ok()
}
