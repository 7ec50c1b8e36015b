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
    time::{Instant, sleep, timeout},
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

/// How many parts of an answer may wait to be read.
const PARTS: i64 = 64;

/// How often they are counted while there are too many.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a sender of a request may take to read.
const READS: Duration = Duration::from_secs(30);

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
            Ok(Some(Waiting { owner, id, told, ready: VecDeque::new(), is_over: false }))
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
        let next = |(owner, mut taken): (Arc<Owner>, VecDeque<_>)| async move {
            while taken.is_empty() {
                taken = owner.run(take).await?.into();
            }
            let sql::Taken { id, asker, request } = taken.pop_front()?;
            let answer = Box::new(PostgresAnswer::new(owner.clone(), id, asker));
            Some((Asked { request, answer }, (owner, taken)))
        };
        stream::unfold(begin, next).boxed()
    }
}

/// Waits for requests to this node, and takes them.
async fn take(shared: Arc<Shared>) -> Vec<sql::Taken> {
    loop {
        let taken = async { sql::take(&shared.client().await?, shared.no(), TAKEN).await }.await;
        match taken {
            Ok(taken) if !taken.is_empty() => return taken,
            Ok(_) => {}
            Err(failure) => tracing::warn!(error = %failure, "can't read the requests of other nodes"),
        }
        let _ = timeout(LOOK, shared.asked.notified()).await;
    }
}

/// A request that waits for its answer. Dropping it withdraws the request.
struct Waiting {
    owner: Arc<Owner>,
    id: i64,
    told: watch::Receiver<()>,
    /// The parts that have come; the end of the answer is `None`.
    ready: VecDeque<Option<Vec<u8>>>,
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
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Ok(part.map_or(Next::End, Next::Part));
            }
            let id = self.id;
            let read = move |shared: Arc<Shared>| async move {
                repeat(|| async { sql::parts(&shared.client().await?, id).await }).await
            };
            self.ready = self.run(read).await?.into();
            if self.ready.is_empty() && timeout(LOOK, self.told.changed()).await.is_err() {
                let look = move |shared: Arc<Shared>| async move {
                    repeat(|| async { sql::standing(&shared.client().await?, id).await }).await
                };
                match self.run(look).await? {
                    Standing::Waits => {}
                    Standing::Untaken => return Ok(Next::Untaken),
                    Standing::Lost => return Err(lost()),
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
    fn new(owner: Arc<Owner>, id: i64, asker: i64) -> Self {
        Self { owner, id, asker, next: AtomicI64::new(0), has_ended: AtomicBool::new(false) }
    }

    async fn push(&self, part: Option<Vec<u8>>) -> Result<(), JournalError> {
        let (id, asker, no) = (self.id, self.asker, self.next.fetch_add(1, Ordering::Relaxed));
        let push = move |shared: Arc<Shared>| async move {
            let mut waiting = sql::answer(&shared.client().await?, id, asker, no, part.as_deref()).await?;
            if waiting == 0 {
                return Err(withdrawn());
            }
            let begun = Instant::now();
            while waiting >= PARTS {
                if begun.elapsed() > READS {
                    return Err(Failure::permanent("the sender of the request does not read its answer"));
                }
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
        self.has_ended.store(true, Ordering::Relaxed);
        self.push(None).await
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
            let _ = timeout(READS, told.changed()).await;
        }
    }
}

impl Drop for PostgresAnswer {
    fn drop(&mut self) {
        if !self.has_ended.load(Ordering::Relaxed) {
            withdraw(&self.owner, self.id);
        }
    }
}
