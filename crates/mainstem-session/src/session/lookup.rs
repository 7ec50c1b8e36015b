//! Finding the runs of a session: those of this process, and those that are recorded.

use mainstem_api::RunView;
use mainstem_message::RunId;

use super::{Session, lock};
use crate::{RunHandle, RunRecord};

/// A run of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FoundRun {
    /// It is queued or active in this process.
    Live(RunHandle),
    /// It is over, or an earlier process began it.
    Recorded {
        /// Its session.
        session: Session,
        /// What is recorded of it.
        record: Box<RunRecord>,
    },
}

impl FoundRun {
    /// Returns its id.
    pub fn id(&self) -> &RunId {
        match self {
            Self::Live(handle) => handle.id(),
            Self::Recorded { record, .. } => &record.id,
        }
    }

    /// Returns its session.
    pub fn session(&self) -> &Session {
        match self {
            Self::Live(handle) => handle.session(),
            Self::Recorded { session, .. } => session,
        }
    }

    /// Returns the lowest possible number of its events.
    pub fn first(&self) -> u64 {
        match self {
            Self::Live(handle) => handle.first(),
            Self::Recorded { record, .. } => record.first,
        }
    }

    /// Returns the handle of a run that is queued or active.
    pub fn handle(&self) -> Option<&RunHandle> {
        match self {
            Self::Live(handle) => Some(handle),
            Self::Recorded { .. } => None,
        }
    }

    /// Returns `true` if the run has ended.
    pub fn is_over(&self) -> bool {
        match self {
            Self::Live(handle) => handle.status().is_over(),
            Self::Recorded { record, .. } => record.end.is_some(),
        }
    }

    /// Waits until the record has the end of a run that is over; returns at once while it goes on.
    /// Returns `false` if the record has failed before: what follows a crash may then be different.
    ///
    /// Dropping the future changes nothing.
    pub async fn until_end_committed(&self) -> bool {
        let seq = match self {
            Self::Live(handle) => handle.session().end_seq_of(handle.id()),
            Self::Recorded { record, .. } => record.end_seq,
        };
        seq == 0 || self.session().log().until_committed(seq).await
    }

    /// Returns the run as an API shows it.
    pub fn view(&self) -> RunView {
        match self {
            Self::Live(handle) => handle.view(),
            Self::Recorded { session, record } => record.view(session.id()),
        }
    }
}

impl Session {
    /// Returns the run of this id; `None` if the session has none.
    pub fn find_run(&self, id: &RunId) -> Option<FoundRun> {
        if let Some(handle) = self.live(id) {
            return Some(FoundRun::Live(handle));
        }
        let record = lock(&self.0.runs).iter().rfind(|run| run.id == *id).cloned()?;
        Some(self.recorded(record))
    }

    /// Returns its runs: those that have begun, in order, then those that are queued.
    pub fn find_runs(&self) -> Vec<FoundRun> {
        let (active, queued) = (self.active(), self.queued());
        let found = |record: RunRecord| match &active {
            Some(handle) if *handle.id() == record.id => FoundRun::Live(handle.clone()),
            _ => self.recorded(record),
        };
        let mut runs: Vec<_> = self.runs().into_iter().map(found).collect();
        // One that is about to begin may be both queued and active.
        for live in active.iter().chain(&queued) {
            if runs.iter().all(|run| run.id() != live.id()) {
                runs.push(FoundRun::Live(live.clone()));
            }
        }
        runs
    }

    fn recorded(&self, record: RunRecord) -> FoundRun {
        FoundRun::Recorded { session: self.clone(), record: Box::new(record) }
    }

    /// Returns `true` if the run is queued or active.
    pub(crate) fn is_live(&self, id: &RunId) -> bool {
        self.live(id).is_some()
    }

    /// Returns `true` if the run has begun in this session.
    pub(crate) fn has_run(&self, id: &RunId) -> bool {
        lock(&self.0.runs).iter().any(|run| run.id == *id)
    }

    /// Returns the number of the event with the run's end; 0 if it has not ended in this process.
    fn end_seq_of(&self, id: &RunId) -> u64 {
        lock(&self.0.runs).iter().rfind(|run| run.id == *id).map_or(0, |run| run.end_seq)
    }

    fn live(&self, id: &RunId) -> Option<RunHandle> {
        self.active().into_iter().chain(self.queued()).find(|run| run.id() == id)
    }
}
