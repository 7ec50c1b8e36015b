//! A tenant's part of a store of jobs.

use std::sync::Arc;

use async_trait::async_trait;
use mainstem_message::{JobId, SessionId, TenantName};

use super::{Job, JobChange, JobFault, JobRun, JobStatus, JobStore, Take};
use crate::{JobListing, JournalError, Part};

/// A tenant's jobs as a separate store: other tenants' can't be read or changed. In the store
/// itself the ids of its jobs and their sessions begin with the tenant's name and a slash.
#[derive(Clone, Debug)]
pub struct ScopedJobs {
    whole: Arc<dyn JobStore>,
    tenant: TenantName,
}

impl ScopedJobs {
    /// Creates a tenant's part.
    pub fn new(whole: Arc<dyn JobStore>, tenant: TenantName) -> Self {
        Self { whole, tenant }
    }

    fn inner(&self, job: Job) -> Job {
        let session = |id: SessionId| id.scoped(&self.tenant);
        let last_run = job.last_run.map(|run| JobRun { session_id: session(run.session_id), ..run });
        Job { id: job.id.scoped(&self.tenant), session_id: job.session_id.map(session), last_run, ..job }
    }

    /// Returns the job as the tenant sees it; `None` if it is another's.
    fn outer(&self, job: Job) -> Option<Job> {
        job.id.unscoped(&self.tenant)?;
        Some(job.without_tenant())
    }
}

#[async_trait]
impl JobStore for ScopedJobs {
    async fn add(&self, job: Job) -> Result<bool, JournalError> {
        self.whole.add(self.inner(job)).await
    }

    async fn job(&self, id: &JobId) -> Result<Option<Job>, JournalError> {
        let found = self.whole.job(&id.scoped(&self.tenant)).await?;
        Ok(found.and_then(|job| self.outer(job)))
    }

    async fn jobs(&self, statuses: &[JobStatus]) -> Result<Vec<Job>, JournalError> {
        let all = self.whole.jobs(statuses).await?;
        Ok(all.into_iter().filter_map(|job| self.outer(job)).collect())
    }

    async fn list(&self, listing: &JobListing) -> Result<Vec<Job>, JournalError> {
        let after = listing.after.as_ref().map(|place| place.scoped(&self.tenant));
        let part = Part::Of(Some(self.tenant.clone()));
        let found = self.whole.list(&JobListing { part, after, ..listing.clone() }).await?;
        Ok(found.into_iter().filter_map(|job| self.outer(job)).collect())
    }

    /// Counts those of the part.
    async fn count(&self, _: Option<&TenantName>) -> Result<usize, JournalError> {
        self.whole.count(Some(&self.tenant)).await
    }

    async fn change(
        &self,
        id: &JobId,
        change: JobChange,
    ) -> Result<Option<Result<Job, JobFault>>, JournalError> {
        let changed = self.whole.change(&id.scoped(&self.tenant), change).await?;
        Ok(changed.and_then(|changed| changed.map(|job| self.outer(job)).transpose()))
    }

    /// Takes none: jobs are taken from the whole store, which is fair between tenants.
    async fn take(&self, _: Take) -> Result<Vec<Job>, JournalError> {
        Ok(Vec::new())
    }
}
