//! The sessions that are active, listed once for all streams of a tenant.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dashmap::DashMap;
use mainstem::{
    journal::{JournalError, Part},
    policy::Tenant,
    session::{LiveSession, Sessions},
};
use tokio::sync::{Mutex, Semaphore};

/// How many sessions a list has at most.
const LISTED: usize = 1000;

/// How long a list is used: less than the interval in which a stream asks for one.
const FRESH: Duration = Duration::from_millis(400);

/// The last list or why there is none, and when it was read.
type Last = Arc<Mutex<Option<(Instant, Result<Arc<[LiveSession]>, JournalError>)>>>;

/// How many states of sessions of other nodes are computed at once.
const FOLDS: usize = 2;

/// The last lists: of each tenant, and of all. There are as many as tenants with tokens.
pub(crate) struct LiveLists {
    lists: DashMap<(Tenant, bool), Last>,
    /// To compute the state of a long session takes seconds of a processor.
    pub(super) folds: Arc<Semaphore>,
}

impl Default for LiveLists {
    fn default() -> Self {
        Self { lists: DashMap::new(), folds: Arc::new(Semaphore::new(FOLDS)) }
    }
}

impl LiveLists {
    /// Returns the sessions of a tenant that are active. Streams that ask at once share a list, or
    /// the failure to read it: otherwise each would wait for a database that does not answer.
    pub(crate) async fn list(
        &self,
        sessions: &Sessions,
        tenant: &Tenant,
        part: &Part,
    ) -> Result<Arc<[LiveSession]>, JournalError> {
        let last = self.lists.entry((tenant.clone(), *part == Part::All)).or_default().clone();
        let mut last = last.lock().await;
        if let Some((_, list)) = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return list.clone();
        }
        let list = sessions.live(part, LISTED).await.map(Arc::from);
        *last = Some((Instant::now(), list.clone()));
        list
    }
}
