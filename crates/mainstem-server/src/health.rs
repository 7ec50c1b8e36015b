//! Whether sessions can be recorded.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mainstem::{
    event::{AgentEvent, Clock, EventKind, Origin, SystemClock},
    journal::{Journal, JournalError},
    message::{SessionId, TenantName},
};
use tokio::{sync::Mutex, time::Instant};

use crate::{
    app::{App, unrecorded},
    problem::Problem,
};

/// The id of the session that a probe writes. It is as a tenant's, so no caller can name it, and a
/// tenant's name begins with a letter or digit.
fn probe_id() -> SessionId {
    SessionId::from_lossy("probe").scoped(&TenantName::from_lossy("_server"))
}

/// The size of a probe: enough to need further blocks of the disk.
const PROBE_BYTES: usize = 16 << 10;

/// The shortest interval between probes.
const PROBE_EVERY: Duration = Duration::from_millis(100);

/// The journal's last known state. A probe is written only after a failure.
#[derive(Default)]
pub(crate) struct Health {
    has_failed: AtomicBool,
    /// When the journal was last found to fail.
    probed: Mutex<Option<Instant>>,
}

impl Health {
    /// Notes that a session's record, or an attempt to open one, has failed.
    pub(crate) fn failed(&self) {
        self.has_failed.store(true, Ordering::Release);
    }

    /// Checks that runs can be recorded.
    pub(crate) async fn check(&self, app: &App) -> Result<(), Problem> {
        let sessions = app.harness.sessions().store();
        if sessions.has_failed() {
            self.failed();
        }
        let Some(journal) = app.harness.journal() else { return Ok(()) };
        journal.ready().await.map_err(|error| app.unreadable(&error))?;
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut probed = self.probed.lock().await;
        if probed.is_some_and(|at| at.elapsed() < PROBE_EVERY) {
            return Err(unrecorded());
        }
        let written = probe(&**journal).await;
        *probed = written.is_err().then(Instant::now);
        written.map_err(|error| {
            tracing::error!(%error, "sessions can't be recorded");
            unrecorded()
        })?;
        self.has_failed.store(false, Ordering::Release);
        sessions.close_failed();
        Ok(())
    }
}

/// Writes a session's first event as a probe, and deletes it.
async fn probe(journal: &dyn Journal) -> Result<(), String> {
    let id = probe_id();
    let said = |error: JournalError| error.to_string();
    let record = match journal.open(&id).await {
        // Another process is finding out the same.
        Err(JournalError::Busy { .. }) => return journal.flush().await.map_err(said),
        record => record.map_err(said)?,
    };
    let origin = Origin::session(id.clone(), None);
    let kind = EventKind::Custom { name: "probe".into(), value: "x".repeat(PROBE_BYTES).into() };
    record.append(&AgentEvent::new(record.position().last + 1, SystemClock.now(), Arc::new(origin), kind));
    let written = journal.flush().await;
    let failure = record.failure();
    drop(record);
    journal.delete(&id).await.and(written).map_err(said)?;
    failure.map_or(Ok(()), |why| Err(why.to_string()))
}
