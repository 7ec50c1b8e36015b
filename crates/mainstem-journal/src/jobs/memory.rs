//! Jobs in memory, for tests.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use mainstem_event::{Clock, SystemClock};
use mainstem_message::JobId;

use super::{Candidate, Job, JobChange, JobFault, JobStatus, JobStore, Take, choose, is_kept};
use crate::JournalError;

/// The jobs of one process, which are gone with it.
#[derive(Debug, Default)]
pub(crate) struct MemoryJobs(Mutex<BTreeMap<JobId, Job>>);

impl MemoryJobs {
    fn jobs(&self) -> MutexGuard<'_, BTreeMap<JobId, Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl JobStore for MemoryJobs {
    async fn add(&self, job: Job) -> Result<bool, JournalError> {
        let (mut jobs, now) = (self.jobs(), SystemClock.now());
        jobs.retain(|_, job| is_kept(job, now));
        let is_new = !jobs.contains_key(&job.id);
        jobs.entry(job.id.clone()).or_insert(job);
        Ok(is_new)
    }

    async fn job(&self, id: &JobId) -> Result<Option<Job>, JournalError> {
        Ok(self.jobs().get(id).cloned())
    }

    async fn jobs(&self, statuses: &[JobStatus]) -> Result<Vec<Job>, JournalError> {
        let is_asked = |job: &&Job| statuses.is_empty() || statuses.contains(&job.status);
        let mut found: Vec<_> = self.jobs().values().filter(is_asked).cloned().collect();
        found.sort_by(|one, other| (one.due_at, &one.id).cmp(&(other.due_at, &other.id)));
        Ok(found)
    }

    async fn change(
        &self,
        id: &JobId,
        change: JobChange,
    ) -> Result<Option<Result<Job, JobFault>>, JournalError> {
        let mut jobs = self.jobs();
        let Some(job) = jobs.get_mut(id) else { return Ok(None) };
        Ok(Some(job.apply(change, SystemClock.now()).map(|()| job.clone())))
    }

    async fn take(&self, take: Take) -> Result<Vec<Job>, JournalError> {
        let (mut jobs, now) = (self.jobs(), SystemClock.now());
        let lost =
            jobs.values_mut().filter(|job| job.status == JobStatus::Active && !take.held.contains(&job.id));
        lost.for_each(|job| _ = job.apply(JobChange::Lose, now));
        let of = |status| jobs.values().filter(move |job| job.status == status);
        let due: Vec<_> =
            of(JobStatus::Waiting).filter(|job| job.due_at <= now).map(Candidate::from).collect();
        let active: Vec<_> = of(JobStatus::Active).map(Candidate::from).collect();
        let mut taken = Vec::new();
        for id in choose(&due, &active, &take) {
            if let Some(job) = jobs.get_mut(&id).filter(|job| job.status == JobStatus::Waiting)
                && job.apply(JobChange::Take, now).is_ok()
            {
                taken.push(job.clone());
            }
        }
        Ok(taken)
    }
}
