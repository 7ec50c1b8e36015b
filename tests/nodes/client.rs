//! A client of a session: asks, reads, answers and cancels, whatever server it reaches.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::StreamExt;
use mainstem::{
    api::{AnySession, Code, Error, EventQuery, Host, JobState, NewJob, NewRun},
    client::Server,
    event::{AgentEvent, CancelReason, Decision, EventKind},
    message::{ContentBlock, DataSource, JobId, Message, Opaque, Role, SessionId},
};
use tokio::time::{Instant, sleep, timeout};

/// How long anything may take: the lease of a node, and its successor's start.
const PATIENCE: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(100);

/// How long a client waits that was told that there are too many requests.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// How long a reader waits for an event before it looks whether its session asks for something:
/// hundreds of readers that look more often are a load of their own.
const SILENCE: Duration = Duration::from_secs(10);

/// Does something until it succeeds; `done` says which refusals mean that it was done.
pub(crate) async fn until<T, F: Future<Output = Result<T, Error>>>(
    what: &str,
    mut attempt: impl FnMut() -> F,
    done: impl Fn(&Error) -> Option<T>,
) -> T {
    let begun = Instant::now();
    loop {
        match timeout(PATIENCE, attempt()).await.expect(what) {
            Ok(value) => return value,
            Err(error) => {
                if let Some(value) = done(&error) {
                    return value;
                }
                assert!(begun.elapsed() < PATIENCE, "{what}: {error}");
                let is_busy = error.problem().is_some_and(|problem| problem.status == 429);
                sleep(if is_busy { LONG_PAUSE } else { PAUSE }).await;
            }
        }
    }
}

/// Asks for a run with a key, reads it to its end, and approves what it asks for; cancels it after
/// so many events if `cancels` is set. Returns the events that it has seen.
pub(crate) async fn one_run(
    address: &str,
    session: &SessionId,
    key: &str,
    cancels: Option<usize>,
) -> Vec<AgentEvent> {
    read_run(address, session, NewRun::new(key), key, cancels).await
}

/// Does the same with a run that has a picture, which no other run has.
pub(crate) async fn one_run_with_picture(address: &str, session: &SessionId, key: &str) -> Vec<AgentEvent> {
    let source = DataSource::Base64(BASE64_STANDARD.encode(key.repeat(2_000)));
    let picture = ContentBlock::Data { media_type: "image/png".to_owned(), source, opaque: Opaque::new() };
    let message = Message::new(Role::User, vec![ContentBlock::text(key), picture]);
    read_run(address, session, NewRun::new(message), key, None).await
}

/// Does the same with a run that waits until the session is free.
pub(crate) async fn one_queued_run(address: &str, session: &SessionId, key: &str) -> Vec<AgentEvent> {
    read_run(address, session, NewRun { queue: true, ..NewRun::new(key) }, key, None).await
}

async fn read_run(
    address: &str,
    session: &SessionId,
    run: NewRun,
    key: &str,
    cancels: Option<usize>,
) -> Vec<AgentEvent> {
    let server = Server::at(address).unwrap();
    let remote = server.open(session.clone()).unwrap();
    let begin = || async {
        let begun = remote.run_with_key(key, run.clone()).await;
        if let Err(error) = &begun
            && error.problem().is_some_and(|problem| problem.code == Code::RunActive)
        {
            // A turn of a server that has ended was taken up: it may ask, too.
            answer_all(&remote).await;
        }
        begun
    };
    let begun = until(key, begin, |_| None).await;
    let began = Instant::now();
    let (mut run, mut events, mut seen) = (begun.run, begun.events, Vec::<AgentEvent>::new());
    loop {
        let last = || seen.last().map(ToString::to_string);
        assert!(began.elapsed() < 3 * PATIENCE, "{session}, {key}: {} is not over: {:?}", run.id(), last());
        let Ok(next) = timeout(SILENCE, events.next()).await else {
            // A run before it was taken up, and may ask, too.
            answer_all(&remote).await;
            continue;
        };
        match next {
            Some(Ok(event)) => {
                if let EventKind::RequireUserConfirm { confirm_id, .. } = &event.kind {
                    answer(&remote, &confirm_id.clone()).await;
                }
                seen.push(event);
                if cancels == Some(seen.len()) {
                    let _ = run.cancel(CancelReason::user("the test")).await;
                }
            }
            Some(Err(error)) if seen.is_empty() && is_unknown(&error) => {
                // Its server has ended before anything of the run was recorded.
                let again = until(key, begin, |_| None).await;
                (run, events) = (again.run, again.events);
            }
            Some(Err(_)) => {
                sleep(PAUSE).await;
                let after = seen.last().map_or(0, |event| event.seq);
                events = remote.events(EventQuery::after(after).with_run(run.id()));
            }
            None => return seen,
        }
    }
}

/// Adds a job, waits until its run has ended, and approves what it asks for.
pub(crate) async fn one_job(address: &str, session: &SessionId, key: &str) {
    let server = Server::at(address).unwrap();
    let id: JobId = key.parse().unwrap();
    let job = NewJob { id: Some(id.clone()), ..NewJob::new(NewRun::new(key)).with_session(session.clone()) };
    let exists = |error: &Error| error.has_code(&Code::Exists).then_some(());
    let add = || async { server.add_job(job.clone()).await.map(drop) };
    until(key, add, exists).await;
    let remote = server.open(session.clone()).unwrap();
    let began = Instant::now();
    loop {
        let view = until(key, || server.job(&id), |_| None).await;
        if view.status == JobState::Ended {
            return;
        }
        assert!(began.elapsed() < 3 * PATIENCE, "{view:?}");
        answer_all(&remote).await;
        sleep(PAUSE).await;
    }
}

/// Waits until a session asks for an approval.
pub(crate) async fn until_asked(session: &dyn AnySession) {
    let begun = Instant::now();
    while session.fleet().await.unwrap().confirmations.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "{} asks for nothing", session.id());
        sleep(PAUSE).await;
    }
}

/// Approves all that a session asks for.
pub(crate) async fn answer_all(session: &dyn AnySession) {
    for confirm in session.fleet().await.map(|fleet| fleet.confirmations).unwrap_or_default().keys() {
        answer(session, confirm).await;
    }
}

fn is_unknown(error: &Error) -> bool {
    error.problem().is_some_and(|problem| problem.code == Code::NotFound)
}

/// Approves a call. The question may be gone: its run was cut off, or cancelled, or another answer
/// was faster.
async fn answer(session: &dyn AnySession, id: &mainstem::message::ConfirmId) {
    let gone = |error: &Error| {
        let code = error.problem().map(|problem| problem.code.clone());
        matches!(code, Some(Code::NotAsked | Code::NotFound)).then_some(())
    };
    until("an approval", || session.confirm(id, Decision::Allow), gone).await;
}

/// Reads a session from its first event on, until it has this number.
pub(crate) async fn read_through(address: &str, session: &SessionId, last: u64) -> Vec<AgentEvent> {
    let server = Server::at(address).unwrap();
    let remote = server.open(session.clone()).unwrap();
    let mut seen = Vec::<AgentEvent>::new();
    let begun = Instant::now();
    while seen.last().is_none_or(|event| event.seq < last) {
        assert!(
            begun.elapsed() < PATIENCE,
            "{session} has {:?} of {last}",
            seen.last().map(|event| event.seq)
        );
        let mut events = remote.events(EventQuery::after(seen.last().map_or(0, |event| event.seq)));
        while let Ok(Some(Ok(event))) = timeout(Duration::from_secs(5), events.next()).await {
            let is_last = event.seq >= last;
            seen.push(event);
            if is_last {
                break;
            }
        }
    }
    seen
}
