//! When it is kept beside a session's record what it comes to.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use mainstem_journal::{Journal, JournalError};
use mainstem_message::SessionId;
use mainstem_task::TaskSet;
use tokio::runtime::Handle;

use crate::past::Past;

/// After how many events there is another: an eighth of those that there are, within these limits.
/// The state of a longer session is larger, and takes longer to write.
const EVERY: (u64, u64) = (256, 4096);

/// While one is made.
const BUSY: u64 = u64::MAX;

pub(crate) struct Checkpoints {
    journal: Arc<dyn Journal>,
    /// The number up to which there is one.
    latest: Arc<AtomicU64>,
}

impl Checkpoints {
    pub(crate) fn new(journal: Arc<dyn Journal>, latest: u64) -> Self {
        Self { journal, latest: Arc::new(AtomicU64::new(latest)) }
    }

    /// Returns the journal of the session.
    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Makes another, if it is time for one, from what the journal has; the driver of the task set
    /// does it.
    pub(crate) fn begin(&self, id: &SessionId, last: u64, tasks: &TaskSet) {
        let before = self.latest.load(Ordering::Acquire);
        // Without a runtime there is no driver.
        let is_due = before != BUSY && last >= before + every(last) && Handle::try_current().is_ok();
        let taken = || self.latest.compare_exchange(before, BUSY, Ordering::AcqRel, Ordering::Relaxed);
        if !is_due || taken().is_err() {
            return;
        }
        let (journal, latest, id) = (self.journal.clone(), self.latest.clone(), id.clone());
        tasks.drive(async move {
            let made = make(&*journal, &id).await;
            // Another time, then.
            let made =
                made.inspect_err(|error| tracing::warn!(session = %id, %error, "no checkpoint was made"));
            latest.store(made.unwrap_or(before), Ordering::Release);
        });
    }
}

fn every(last: u64) -> u64 {
    (last / 8).clamp(EVERY.0, EVERY.1)
}

/// Up to where the session was looked at.
async fn make(journal: &dyn Journal, id: &SessionId) -> Result<u64, JournalError> {
    let last = journal.session(id).await?.map_or(0, |known| known.last);
    let mut past = Past::read_passing(journal, id, last, true).await?;
    past.keep(journal, id).await?;
    Ok(last)
}
