//! Runs that wait until their session is free. They are stored, so that any node finds them, and
//! so that the next process of the session begins them if theirs ends.

use std::{future::ready, pin::pin, sync::Arc, time::Duration};

use futures_util::{StreamExt, future::select};
use mainstem::{
    event::CancelReason,
    journal::{Journal, JournalError, QueuedRun},
    message::Failure,
    policy::Tenant,
    prelude::{RunHandle, Session},
    session::{FoundRun, RunRecord, RunStatus},
};
use mainstem_api::{Code, NewRun};
use tokio::{sync::oneshot, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    app::{App, unrecorded},
    caller::Caller,
    problem::Problem,
    runs, take_over,
};

/// How long to wait before restoring a session is tried again.
const INTERVAL: Duration = Duration::from_secs(1);

/// Stores a queued run until it has begun or was cancelled. Dropping the future does not stop that.
///
/// # Errors
/// The run can't be stored, and was cancelled.
pub(crate) async fn store(
    app: &Arc<App>,
    caller: &Caller,
    run: &RunHandle,
    request: String,
) -> Result<(), Problem> {
    let Some(journal) = caller.harness.journal().cloned() else { return Ok(()) };
    let queued = QueuedRun { id: run.id().clone(), session: run.session().id().clone(), request };
    let (sender, stored) = oneshot::channel();
    let (app, run) = (app.clone(), run.clone());
    let tasks = run.session().task_set().clone();
    let work = async move {
        // A session is found once its first event is committed.
        let stored = match run.session().log().until_committed(1).await {
            true => journal.queue_run(queued).await.map_err(|error| app.unreadable(&error)),
            false => Err(unrecorded()),
        };
        let is_stored = stored.is_ok();
        let _ = sender.send(stored);
        if is_stored {
            watch(app.draining.clone(), journal, run).await;
        } else {
            run.cancel();
        }
    };
    // A shutdown drops the work, and the run stays stored.
    tasks.drive(work);
    stored.await.unwrap_or_else(|_| Err(unrecorded()))
}

/// Removes a stored run once it has begun or was cancelled. If this server drains before, the run
/// stays stored for another process.
async fn watch(draining: CancellationToken, journal: Arc<dyn Journal>, run: RunHandle) {
    tokio::select! {
        () = run.begun() => {}
        () = draining.cancelled() => {
            // An active run may end.
            let is_active = run.session().active().is_some_and(|active| active.id() == run.id());
            if !is_active && matches!(run.status(), RunStatus::Queued) {
                run.cancel_because(CancelReason::Shutdown);
            }
            run.begun().await;
        }
    }
    let Some(record) = begun(&run).await else { return };
    // If the event can't be committed, another process has the session.
    if run.session().log().until_committed(record.first).await {
        told(journal.unqueue_run(run.id()).await);
    }
}

/// Waits until a run is in its session's list of runs, and returns its record there. Returns `None`
/// if the run was released without one: it stays stored for another process.
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

/// Restores the work of a session whose earlier process has ended: resumes the turn that was cut
/// off, and queues the stored runs behind it. Anything that can't be restored at once is tried
/// again each second, in a task.
pub(crate) async fn restore(app: &Arc<App>, session: &Session, tenant: &Tenant) {
    if restore_now(app, session, tenant).await {
        return;
    }
    let (app, session, tenant) = (app.clone(), session.clone(), tenant.clone());
    let tasks = session.task_set().clone();
    let rest = async move {
        while !app.draining.is_cancelled() && !session.has_failed() {
            sleep(INTERVAL).await;
            if restore_now(&app, &session, &tenant).await {
                return;
            }
        }
    };
    tasks.drive(rest);
}

/// Returns `true` if everything is restored.
async fn restore_now(app: &Arc<App>, session: &Session, tenant: &Tenant) -> bool {
    if session.has_failed() {
        return false;
    }
    let Ok(caller) = Caller::of(app, tenant.clone()) else { return false };
    let Some(journal) = caller.harness.journal() else { return true };
    if !take_over::take_up_turn(app, session, tenant, &**journal).await {
        return false;
    }
    let Some(queued) = told(journal.queued_runs(session.id()).await) else { return false };
    for run in queued {
        let is_done = match session.find_run(&run.id) {
            Some(FoundRun::Live(_)) => true,
            // Its process ended after the run began, and before it was removed.
            Some(_) => told(journal.unqueue_run(&run.id).await).is_some(),
            None => match again(app, &caller, session, &run).await {
                Ok(handle) => {
                    let watch = watch(app.draining.clone(), journal.clone(), handle);
                    session.task_set().drive(watch);
                    true
                }
                Err(problem) => refuse(&**journal, session, &run, &problem).await,
            },
        };
        if !is_done {
            return false;
        }
    }
    true
}

/// Queues a stored run.
async fn again(
    app: &Arc<App>,
    caller: &Caller,
    session: &Session,
    run: &QueuedRun,
) -> Result<RunHandle, Problem> {
    let share = app.admit(&caller.tenant)?;
    let request = serde_json::from_str::<NewRun>(&run.request);
    let request = request.map_err(|error| Problem::new(Code::BadBody, error.to_string()))?;
    runs::queue_again(app, caller, session, request, run.id.clone(), share).await
}

/// Ends a stored run that can't begin. Returns `false` if it may begin later.
async fn refuse(journal: &dyn Journal, session: &Session, run: &QueuedRun, problem: &Problem) -> bool {
    let why = problem.body();
    if why.status == 429 || why.status >= 500 {
        return false;
    }
    tracing::warn!(session = %session.id(), run = %run.id, why = why.detail, "a queued run can't begin");
    session.never_began(&run.id, Failure::new(why.code.as_str(), why.detail.clone()));
    let is_recorded = session.log().until_committed(session.log().last_seq()).await;
    is_recorded && told(journal.unqueue_run(&run.id).await).is_some()
}

/// Returns what was read or written; logs why nothing was.
pub(crate) fn told<T>(done: Result<T, JournalError>) -> Option<T> {
    done.inspect_err(
        |error| tracing::warn!(%error, "what is stored beside a session can't be read or written"),
    )
    .ok()
}
