//! Whether sessions can be recorded.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::{sync::Mutex, time::Instant};

use crate::{
    app::{App, unreadable, unrecorded},
    problem::Problem,
};

/// The journal is not written more often to find out whether it can be.
const PROBE_EVERY: Duration = Duration::from_millis(100);

/// What is known of the journal. It is written as a probe only after something has failed.
#[derive(Default)]
pub(crate) struct Health {
    has_failed: AtomicBool,
    /// When the journal was last found to fail.
    probed: Mutex<Option<Instant>>,
}

impl Health {
    /// A session's record, or an attempt to open one, has failed.
    pub(crate) fn failed(&self) {
        self.has_failed.store(true, Ordering::Release);
    }

    /// Whether runs can be recorded.
    pub(crate) async fn check(&self, app: &App) -> Result<(), Problem> {
        if app.has_lost_session() {
            self.failed();
        }
        let Some(journal) = app.harness.journal().filter(|_| self.has_failed.load(Ordering::Acquire)) else {
            return Ok(());
        };
        let mut probed = self.probed.lock().await;
        if probed.is_some_and(|at| at.elapsed() < PROBE_EVERY) {
            return Err(unrecorded());
        }
        let written = journal.flush().await;
        *probed = written.is_err().then(Instant::now);
        written.map_err(|error| unreadable(&error))?;
        self.has_failed.store(false, Ordering::Release);
        app.close_lost();
        Ok(())
    }
}
