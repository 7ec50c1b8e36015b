//! `Idempotency-Key`: a request that is sent twice has its effect once.
//!
//! This follows draft-ietf-httpapi-idempotency-key-header: a request with the same key and body
//! gets the run that the first one began, and one with another body is refused with 422. Keys are
//! valid for a day; a journal stores them with the sessions.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use axum::http::HeaderMap;
use mainstem::{
    event::{Clock, SystemClock},
    journal::{Claim, Claimed, Journal, MemoryJournal, Scoped},
    message::{RunId, SessionId},
};
use mainstem_api::Code;
use tokio::sync::Mutex;

use crate::{app::App, body::Digest, caller::Caller, problem::Problem};

/// The longest key, in bytes.
pub(crate) const MAX_KEY: usize = 255;

/// The number of locks that keys are distributed over.
const LOCKS: usize = 64;

/// Claims of idempotency keys.
pub(crate) struct Idempotency {
    /// For harnesses that have no journal.
    memory: Arc<dyn Journal>,
    hasher: RandomState,
    locks: Vec<Arc<Mutex<()>>>,
}

/// A request with a key.
pub(crate) struct KeyedRequest<'a> {
    pub(crate) key: String,
    pub(crate) digest: &'a Digest,
    pub(crate) session: SessionId,
    /// The id of the run, if the request begins one.
    pub(crate) run: RunId,
}

impl Idempotency {
    pub(crate) fn new() -> Self {
        let locks = (0..LOCKS).map(|_| Arc::default()).collect();
        Self { memory: Arc::new(MemoryJournal::new()), hasher: RandomState::new(), locks }
    }

    /// Returns the lock that requests with the same key hold in turn.
    pub(crate) fn lock(&self, caller: &Caller, key: &str) -> Arc<Mutex<()>> {
        let hash = self.hasher.hash_one((&caller.tenant, key));
        self.locks[hash as usize % LOCKS].clone()
    }

    /// Claims the key. Returns the id of the request's run, and whether an earlier request has
    /// claimed the key.
    pub(crate) async fn claim(
        &self,
        app: &App,
        caller: &Caller,
        request: KeyedRequest<'_>,
    ) -> Result<(RunId, bool), Problem> {
        let KeyedRequest { key, digest, session, run } = request;
        let claim = Claim {
            key,
            digest: digest.to_string(),
            session: session.clone(),
            run: run.clone(),
            at: SystemClock.now(),
        };
        let claimed = match (caller.harness.journal(), &caller.tenant) {
            (Some(journal), _) => journal.claim(claim).await,
            (None, Some(tenant)) => Scoped::new(self.memory.clone(), tenant.clone()).claim(claim).await,
            (None, None) => self.memory.claim(claim).await,
        };
        match claimed.map_err(|error| app.unreadable(&error))? {
            Claimed::New => Ok((run, false)),
            Claimed::Same { session: same, run } if same == session => Ok((run, true)),
            Claimed::Same { .. } | Claimed::Other => {
                let detail = "this Idempotency-Key was used for another request; use a new one";
                Err(Problem::new(Code::IdempotencyKeyReused, detail))
            }
        }
    }
}

/// Returns the key of a request, if it has one.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().ok().map(str::trim).filter(|key| (1..=MAX_KEY).contains(&key.len()));
    let detail = "an Idempotency-Key has 1 to 255 visible ASCII characters";
    let wrong = || Problem::new(Code::BadIdempotencyKey, detail);
    key.map(|key| Some(key.to_owned())).ok_or_else(wrong)
}
