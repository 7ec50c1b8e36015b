//! `Idempotency-Key`: a request that is sent twice begins one run.
//!
//! As the IETF draft (draft-ietf-httpapi-idempotency-key-header) has it: the same key and body join
//! the run that was begun, another body is
//! 422. Keys are valid for a day; a journal stores them with the sessions.

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

/// The most that a key may have, in bytes.
pub(crate) const LONGEST: usize = 255;

/// How many keys can be in use without waiting for each other.
const TURNS: usize = 64;

pub(crate) struct Once {
    /// For harnesses that have no journal.
    memory: Arc<dyn Journal>,
    hasher: RandomState,
    turns: Vec<Arc<Mutex<()>>>,
}

/// A request that has its effect once.
pub(crate) struct Asked<'a> {
    pub(crate) key: String,
    pub(crate) digest: &'a Digest,
    pub(crate) session: SessionId,
    /// What the run would be called.
    pub(crate) run: RunId,
}

impl Once {
    pub(crate) fn new() -> Self {
        let turns = (0..TURNS).map(|_| Arc::default()).collect();
        Self { memory: Arc::new(MemoryJournal::new()), hasher: RandomState::new(), turns }
    }

    /// Where those wait who ask with the same key.
    pub(crate) fn turn(&self, caller: &Caller, key: &str) -> Arc<Mutex<()>> {
        let hash = self.hasher.hash_one((&caller.tenant, key));
        self.turns[hash as usize % TURNS].clone()
    }

    /// What the run is called, and whether that was claimed before.
    pub(crate) async fn claim(
        &self,
        app: &App,
        caller: &Caller,
        asked: Asked<'_>,
    ) -> Result<(RunId, bool), Problem> {
        let Asked { key, digest, session, run } = asked;
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
                let detail = "something else was asked with this Idempotency-Key; use a new one";
                Err(Problem::new(Code::IdempotencyKeyReused, detail))
            }
        }
    }
}

/// The key of a request, if it has one.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().ok().map(str::trim).filter(|key| (1..=LONGEST).contains(&key.len()));
    let detail = "an Idempotency-Key has 1 to 255 visible ASCII characters";
    let wrong = || Problem::new(Code::BadIdempotencyKey, detail);
    key.map(|key| Some(key.to_owned())).ok_or_else(wrong)
}
