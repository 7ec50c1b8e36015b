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
use tokio::sync::Mutex;

/// How many sessions a list has at most.
const LISTED: usize = 1000;

/// How long a list is used: less than the interval in which a stream asks for one.
const FRESH: Duration = Duration::from_millis(400);

/// The last list, and when it was read.
type Last = Arc<Mutex<Option<(Instant, Arc<[LiveSession]>)>>>;

/// The last lists: of each tenant, and of all. There are as many as tenants with tokens.
#[derive(Default)]
pub(crate) struct LiveLists(DashMap<(Tenant, bool), Last>);

impl LiveLists {
    /// Returns the sessions of a tenant that are active. Streams that ask at once share a list.
    pub(crate) async fn list(
        &self,
        sessions: &Sessions,
        tenant: &Tenant,
        part: &Part,
    ) -> Result<Arc<[LiveSession]>, JournalError> {
        let last = self.0.entry((tenant.clone(), *part == Part::All)).or_default().clone();
        let mut last = last.lock().await;
        if let Some((_, list)) = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Ok(list.clone());
        }
        let list: Arc<[LiveSession]> = sessions.live(part, LISTED).await?.into();
        *last = Some((Instant::now(), list.clone()));
        Ok(list)
    }
}
