//! Requests to the node that has a session open, carried by the database.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{
    FutureExt, StreamExt,
    stream::{self, BoxStream},
};
use mainstem_journal::{Answer, Asked, JournalError, Parts, Relay};
use mainstem_message::SessionId;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use crate::{
    error::{Failure, Result},
    node::{Owner, Shared, repeat},
    sql::relay::{self as sql, Standing},
};

/// How often a request is looked at if no notice comes.
const LOOK: Duration = Duration::from_secs(1);

/// How many requests are taken at once.
const TAKEN: i64 = 32;

/// How many parts of an answer may be stored: those that wait to be read, and those read last.
const PARTS: i64 = 64;

/// How often they are counted while there are too many.
const PAUSE: Duration = Duration::from_millis(200);

/// How often it is checked that the node of a sender is alive.
const CHECK: Duration = Duration::from_secs(30);

/// The channel of a node, on which it is told of requests (`asked`) and of changes of one (its
/// number).
pub(crate) fn channel(node: i64) -> String {
    format!("mainstem_node_{node}")
}

#[derive(Clone)]
pub(crate) struct PostgresRelay {
    owner: Arc<Owner>,
}

impl PostgresRelay {
    pub(crate) fn new(owner: Arc<Owner>) -> Self {
        Self { owner }
    }
}

impl fmt::Debug for PostgresRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresRelay").field("place", &self.owner.shared.place()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Relay for PostgresRelay {
    async fn ask(&self, session: &SessionId, request: Vec<u8>) -> Result<Option<Parts>, JournalError> {
        let (owner, id) = (self.owner.clone(), session.clone());
        let begin = move |shared: Arc<Shared>| async move {
            let asked = sql::ask(&shared.client().await?, &id, shared.no(), &request).await?;
            let Some(id) = asked else { return Ok(None) };
            let told = shared.answers.subscribe(id);
            Ok(Some(Waiting { owner, id, told, ready: VecDeque::new(), next: 0, is_over: false }))
        };
        let place = self.owner.shared.place();
        let failed = |failure: Failure| failure.of_journal("send a request by", place);
        let begun = self.owner.run(begin).await.ok_or(JournalError::Closed)?;
        let Some(mut waiting) = begun.map_err(failed)? else { return Ok(None) };
        match waiting.next().await {
            Ok(Next::Part(part)) => waiting.ready.push_front(Some(part)),
            Ok(Next::End) => waiting.ready.push_front(None),
            Ok(Next::Untaken) => return Ok(None),
            Err(failure) => return Err(failed(failure)),
        }
        Ok(Some(stream::unfold(waiting, part).boxed()))
    }

    fn asked(&self) -> BoxStream<'static, Asked> {
        let begin = (self.owner.clone(), VecDeque::new());
        let next = |(owner, mut asked): (Arc<Owner>, VecDeque<Asked>)| async move {
            while asked.is_empty() {
                let taken = owner.run(take).await?;
                // One that is dropped is withdrawn.
                asked = taken.into_iter().map(|taken| PostgresAnswer::to(taken, owner.clone())).collect();
            }
            let first = asked.pop_front()?;
            Some((first, (owner, asked)))
        };
        stream::unfold(begin, next).boxed()
    }
}

/// Takes the requests to this node. If it finds no request, waits up to a second for one.
async fn take(shared: Arc<Shared>) -> Vec<sql::Taken> {
    let taken = async { sql::take(&shared.client().await?, shared.no(), TAKEN).await }.await;
    match taken {
        Ok(taken) => {
            if taken.is_empty() {
                let _ = timeout(LOOK, shared.asked.notified()).await;
            }
            shared.answering().extend(taken.iter().map(|taken| taken.id));
            taken
        }
        Err(failure) => {
            tracing::warn!(error = %failure, "can't read the requests of other nodes");
            sleep(PAUSE).await;
            disown(&shared).await;
            Vec::new()
        }
    }
}

/// Gives up the requests that were taken by a statement whose answer was lost: their senders get an
/// error.
async fn disown(shared: &Shared) {
    let mine: Vec<i64> = shared.answering().iter().copied().collect();
    let disown = || async { sql::disown(&shared.client().await?, shared.no(), &mine).await };
    if let Err(failure) = repeat(disown).await {
        tracing::warn!(error = %failure, "can't give up requests of other nodes");
    }
}

/// A request that waits for its answer. Dropping it withdraws the request.
struct Waiting {
    owner: Arc<Owner>,
    id: i64,
    told: watch::Receiver<()>,
    /// The parts that have come; the end of the answer is `None`.
    ready: VecDeque<Option<Vec<u8>>>,
    /// The number of the part after those.
    next: i64,
    is_over: bool,
}

enum Next {
    Part(Vec<u8>),
    End,
    /// No node has taken it, and none will.
    Untaken,
}

impl Waiting {
    async fn next(&mut self) -> Result<Next> {
        let mut is_last = false;
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Ok(part.map_or(Next::End, Next::Part));
            }
            let (id, from) = (self.id, self.next);
            let read = move |shared: Arc<Shared>| async move {
                repeat(|| async { sql::parts(&shared.client().await?, id, from).await }).await
            };
            self.ready = self.run(read).await?.into();
            self.next += self.ready.len() as i64;
            let is_told = !self.ready.is_empty() || timeout(LOOK, self.told.changed()).await.is_ok();
            if !is_told {
                let look = move |shared: Arc<Shared>| async move {
                    repeat(|| async { sql::standing(&shared.client().await?, id).await }).await
                };
                match self.run(look).await? {
                    Standing::Waits => {}
                    Standing::Untaken => return Ok(Next::Untaken),
                    // Its last parts may have come since they were read.
                    Standing::Lost if is_last => return Err(lost()),
                    Standing::Lost => is_last = true,
                }
            }
        }
    }

    async fn run<T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
        &self,
        request: impl FnOnce(Arc<Shared>) -> F,
    ) -> Result<T> {
        self.owner.run(request).await.unwrap_or_else(|| Err(Failure::permanent("its node has ended")))
    }
}

fn withdrawn() -> Failure {
    Failure::permanent("the request was withdrawn")
}

fn lost() -> Failure {
    Failure::permanent(
        "the node that had the session has ended before it answered; what was asked may be done",
    )
}

/// Returns the next part of an answer.
async fn part(mut waiting: Waiting) -> Option<(Result<Vec<u8>, JournalError>, Waiting)> {
    if waiting.is_over {
        return None;
    }
    let failed = match waiting.next().await {
        Ok(Next::Part(part)) => return Some((Ok(part), waiting)),
        Ok(Next::End) => return None,
        Ok(Next::Untaken) => lost(),
        Err(failure) => failure,
    };
    waiting.is_over = true;
    let error = failed.of_journal("receive an answer by", waiting.owner.shared.place());
    Some((Err(error), waiting))
}

impl Drop for Waiting {
    fn drop(&mut self) {
        withdraw(&self.owner, self.id);
    }
}

/// Removes a request, and tells the other side.
fn withdraw(owner: &Owner, id: i64) {
    let withdraw = move |shared: Arc<Shared>| async move {
        repeat(|| async { sql::withdraw(&shared.client().await?, id).await }).await
    };
    // The first poll hands it to the node's thread; its result is not needed.
    let _ = owner.run(withdraw).now_or_never();
}

struct PostgresAnswer {
    owner: Arc<Owner>,
    id: i64,
    asker: i64,
    next: AtomicI64,
    has_ended: AtomicBool,
}

impl PostgresAnswer {
    fn to(taken: sql::Taken, owner: Arc<Owner>) -> Asked {
        let sql::Taken { id, asker, request } = taken;
        let (next, has_ended) = (AtomicI64::new(0), AtomicBool::new(false));
        Asked { request, answer: Box::new(Self { owner, id, asker, next, has_ended }) }
    }

    async fn push(&self, part: Option<Vec<u8>>) -> Result<(), JournalError> {
        let (id, asker, no) = (self.id, self.asker, self.next.fetch_add(1, Ordering::Relaxed));
        // Nothing follows the end, and the asker withdraws what it has read to the end.
        let is_end = part.is_none();
        let push = move |shared: Arc<Shared>| async move {
            let push =
                || async { sql::answer(&shared.client().await?, id, asker, no, part.as_deref()).await };
            let mut waiting = repeat(push).await?;
            if waiting == 0 {
                return Err(withdrawn());
            }
            while waiting >= PARTS && !is_end {
                sleep(PAUSE).await;
                waiting = sql::waiting(&shared.client().await?, id).await?.ok_or_else(withdrawn)?;
            }
            Ok(())
        };
        let pushed = self.owner.run(push).await.ok_or(JournalError::Closed)?;
        pushed.map_err(|failure| failure.of_journal("answer by", self.owner.shared.place()))
    }
}

#[async_trait]
impl Answer for PostgresAnswer {
    async fn send(&self, part: Vec<u8>) -> Result<(), JournalError> {
        self.push(Some(part)).await
    }

    async fn end(&self) -> Result<(), JournalError> {
        self.push(None).await?;
        self.has_ended.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn withdrawn(&self) {
        let mut told = self.owner.shared.answers.subscribe(self.id);
        loop {
            let id = self.id;
            let look = move |shared: Arc<Shared>| async move {
                repeat(|| async { sql::waiting(&shared.client().await?, id).await }).await
            };
            match self.owner.run(look).await {
                Some(Ok(Some(_))) => {}
                Some(Ok(None)) | None => return,
                Some(Err(failure)) => {
                    tracing::warn!(error = %failure, "can't read a request of another node")
                }
            }
            let _ = timeout(CHECK, told.changed()).await;
        }
    }
}

impl Drop for PostgresAnswer {
    fn drop(&mut self) {
        self.owner.shared.answering().remove(&self.id);
        if !self.has_ended.load(Ordering::Relaxed) {
            withdraw(&self.owner, self.id);
        }
    }
}
