//! The sessions that are active, listed once for all streams of a tenant.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dashmap::DashMap;
use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use mainstem::{
    journal::{JournalError, Part},
    policy::Tenant,
    session::{LiveSession, Sessions},
};

/// How many sessions a list has at most.
const LISTED: usize = 1000;

/// How long a list is used: less than the interval in which a stream asks for one.
const FRESH: Duration = Duration::from_millis(400);

/// The sessions that are active, or why they can't be listed.
pub(crate) type Listed = Result<Arc<[LiveSession]>, JournalError>;

/// A list that is read, and when that was done. Any waiter that is polled reads it: one that is not
/// polled, because its reader does not read, delays no other.
type Reading = Shared<BoxFuture<'static, (Instant, Listed)>>;

/// The last lists: of each tenant, and of all. There are as many as tenants with tokens.
#[derive(Default)]
pub(crate) struct LiveLists(DashMap<(Tenant, bool), Reading>);

impl LiveLists {
    /// Returns the sessions of a tenant that are active. Streams that ask at once share a list, or
    /// the failure to read it: otherwise each would wait for a database that does not answer.
    pub(crate) async fn list(&self, sessions: &Sessions, tenant: &Tenant, part: &Part) -> Listed {
        let reading = self.reading(sessions, tenant, part);
        reading.await.1
    }

    fn reading(&self, sessions: &Sessions, tenant: &Tenant, part: &Part) -> Reading {
        let key = (tenant.clone(), *part == Part::All);
        let is_fresh = |last: &Reading| last.peek().is_none_or(|(at, _)| at.elapsed() < FRESH);
        let mut last = self.0.entry(key).or_insert_with(|| read(sessions.clone(), part.clone()));
        if !is_fresh(&last) {
            *last = read(sessions.clone(), part.clone());
        }
        last.clone()
    }
}

fn read(sessions: Sessions, part: Part) -> Reading {
    let read = async move {
        let listed = sessions.live(&part, LISTED).await.map(Arc::from);
        (Instant::now(), listed)
    };
    read.boxed().shared()
}
